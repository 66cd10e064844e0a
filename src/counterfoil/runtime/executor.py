"""The product's hands: store commands to the store, sends and looks to the providers."""

from __future__ import annotations

import contextvars
import functools
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

import msgspec

from counterfoil.domain.action import Order
from counterfoil.domain.answer import Answer, Silent
from counterfoil.domain.canonical import parse
from counterfoil.domain.command import Amend, Claim, Command, Propose, Reply, Settle
from counterfoil.domain.errors import CounterfoilError, NotRecorded, StoreUnsafe, Unavailable, UnknownAction
from counterfoil.plans.effects import (
    Effect,
    Find,
    Form,
    Hand,
    Look,
    Now,
    Others,
    Redraw,
    Rejudge,
    Send,
    Uptime,
    Validate,
)
from counterfoil.plans.late import late
from counterfoil.plans.noting import note
from counterfoil.ports.provider import Fences, SendOrder
from counterfoil.ports.store import Store
from counterfoil.runtime import objects
from counterfoil.runtime.drawing import Drawer
from counterfoil.runtime.drive import drive
from counterfoil.runtime.governance import Governance
from counterfoil.runtime.quiescence import Roster
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.spool import Spool

T = TypeVar("T")

_COMMANDS = frozenset({Claim, Propose, Settle, Amend})
_NEVER_BEGUN = Silent(may_have_left=False, reason="caller_gone")
_TOO_LATE = Silent(may_have_left=False, reason="deadline")
"""The claim stood in a queue, or its process was paused, for longer than its sender may take: nothing leaves."""

INSIST_MAX = 3
"""Further tries to store an answer, each after the store's own busy time-out."""
INSIST_FIRST_SECONDS = 0.05
"""Before the first of them; doubled each time. Long enough for another process's commit, short for a caller."""


class Executor:
    """Carries effects out, blocking or on an event loop; it decides nothing."""

    def __init__(
        self,
        store: Store,
        roster: Roster,
        drawer: Drawer,
        registry: dict[str, Registered],
        spool: Spool,
        governance: Governance,
    ) -> None:
        self._store = store
        self._governance = governance
        self._spool = spool
        self._roster = roster
        self._drawer = drawer
        self._registry = registry
        self.detached: set[str] = set()
        """Tokens whose caller has gone while a thread still sends: still in hand."""
        self._others: dict[type, Callable[[Any], Any]] = {
            Validate: self._validate,
            Find: lambda e: store.find(e.intent.tenant, e.intent.actor, e.intent.action, e.intent.key),
            Redraw: lambda _: drawer.draw(),
            Rejudge: self._rejudge,
            Form: self._form,
            Send: self._send,
            Look: self._look,
            Others: lambda e: objects.others(store, e),
            Hand: lambda e: roster.hand(e.attempt.worker, e.attempt.token),
            Now: lambda _: store.now(),
            Uptime: lambda _: store.uptime(),
        }

    def perform(self, effect: Effect) -> Any:
        """Carry an effect out in the calling thread."""
        kind = type(effect)
        if kind in _COMMANDS:
            try:
                return self._store.write(effect)  # type: ignore[arg-type]
            except (Unavailable, StoreUnsafe):
                observed = _observation(effect)  # type: ignore[arg-type]
                if observed is None:
                    raise  # nothing was observed that could be lost: the caller may ask again
                return self._insist(effect, *observed)  # type: ignore[arg-type]
        return self._others[kind](effect)

    async def aperform(self, effect: Effect) -> Any:
        """Carry an effect out without holding up the event loop."""
        if type(effect) in _COMMANDS:
            return await self._awrite(effect)  # type: ignore[arg-type]
        if isinstance(effect, Send):
            return await self._asend(effect)
        if isinstance(effect, Validate):
            return await self._avalidate(effect)
        if isinstance(effect, Redraw):
            return self._drawer.draw()
        if isinstance(effect, Uptime):
            return self._store.uptime()
        import asyncio

        return await asyncio.to_thread(self._others[type(effect)], effect)

    async def _awrite(self, command: Command) -> Reply:
        try:
            return await self._store.awrite(command)
        except (Unavailable, StoreUnsafe):
            observed = _observation(command)
            if observed is None:
                raise
            import asyncio

            return await _to_the_end(asyncio.to_thread(self._insist, command, *observed))

    def _insist(self, command: Command, operation: str, record: bytes, body: bytes | None) -> Reply:
        """Write an answer again a few times, then put it beside the store: it is never dropped silently."""
        for attempt in range(INSIST_MAX):
            time.sleep(INSIST_FIRST_SECONDS * 2**attempt)
            try:
                return self._store.write(command)
            except (Unavailable, StoreUnsafe):
                continue
        spooled = self._spool.put(operation, record, body)
        raise NotRecorded(operation, spooled=spooled)

    def registered(self, action: str) -> Registered:
        """The registered action of a name; raises `UnknownAction`."""
        found = self._registry.get(action)
        if found is None:
            raise UnknownAction(action, known=tuple(sorted(self._registry)))
        return found

    # -- sending -------------------------------------------------------------------------------------------------------

    def _in_time(self, effect: Send) -> SendOrder | None:
        """The write with what is left of its claim's time, so that its last byte leaves by then; None: nothing is left.

        What counts from the deadline, absence and the use of a key, would be wrong about a byte that left after it.
        """
        left, order = effect.deadline - self._store.now(), effect.order
        if left <= 0.0:
            return None
        return order if order.deadline_seconds <= left else msgspec.structs.replace(order, deadline_seconds=left)

    def _send(self, effect: Send) -> Answer:
        order = self._in_time(effect)
        if order is None:
            return _TOO_LATE
        registered = self._registry.get(effect.action.name) or self.registered(effect.action.name)
        provider: Any = registered.provider
        effect.flight.noter = functools.partial(self._note, effect)
        try:
            if effect.fence is not None:
                return _fence(provider, order, effect, effect.fence)
            if registered.awaited:
                import asyncio

                return asyncio.run(provider.asend(order, effect.flight, effect.arguments))  # type: ignore[no-any-return]
            if registered.takes_arguments:
                return provider.send(order, effect.flight, effect.arguments)  # type: ignore[no-any-return]
            return provider.send(order, effect.flight)  # type: ignore[no-any-return]
        finally:
            effect.flight.ended = self._store.uptime()

    async def _asend(self, effect: Send) -> Answer:
        registered = self.registered(effect.action.name)
        if registered.awaited:
            order = self._in_time(effect)
            if order is None:
                return _TOO_LATE
            provider: Any = registered.provider
            try:
                if effect.fence is not None:
                    return _fence(provider, order, effect, effect.fence)
                return await provider.asend(order, effect.flight, effect.arguments)  # type: ignore[no-any-return]
            finally:
                effect.flight.ended = self._store.uptime()
        import asyncio

        wait, context = _Wait(), contextvars.copy_context()
        sending = asyncio.get_running_loop().run_in_executor(None, context.run, self._send_for, effect, wait)
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            # The thread cannot be cancelled: what it hears is kept as late evidence.
            flight = effect.flight
            self.detached.add(effect.token)
            flight.detached = wait.leave()
            flight.answer = wait.answer
            if not flight.detached:
                self.detached.discard(effect.token)
            raise

    def _send_for(self, effect: Send, wait: _Wait) -> Answer:
        """Send in this thread, unless the caller went before it began."""
        if not wait.begin():
            return _NEVER_BEGUN
        answer: Answer | None = None
        try:
            answer = self._send(effect)
            return answer
        finally:
            if wait.end(answer):
                self._keep_late(effect, answer)

    def _note(self, effect: Send, external_id: str) -> bool:
        """Make the write's own name durable from within its send; what the store cannot take now is not."""
        try:
            return drive(note(effect.operation, effect.attempt, effect.token, external_id), self)
        except CounterfoilError:
            return False

    def _keep_late(self, effect: Send, answer: Answer | None) -> None:
        """The caller has gone: what its thread heard is evidence all the same, and the thread writes no more."""
        try:
            if answer is not None:
                draw, sent = self._drawer.draw(), effect.order.payload
                plan = late(effect.operation, effect.action, effect.attempt, answer, draw, sent, fence=effect.fence)
                drive(plan, self)
        except CounterfoilError:
            return  # it waits in the spool, or reads as unknown: nobody is left to be told
        finally:
            self.detached.discard(effect.token)
            self._roster.in_hand.discard(effect.token)

    def _look(self, effect: Look) -> tuple[Answer, ...]:
        return self.registered(effect.action.name).provider.look(effect.order)

    # -- permission ----------------------------------------------------------------------------------------------------

    def _rejudge(self, effect: Rejudge) -> Order:
        self._governance.refresh()
        registered = self.registered(effect.order.action.name)
        return msgspec.structs.replace(effect.order, terms=registered.terms(effect.order.value))

    def _form(self, effect: Form) -> str:
        written = self.registered(effect.action.name).provider.form(effect.order)
        return "wd1:" + hashlib.sha256(written).hexdigest()

    # -- the semantic check --------------------------------------------------------------------------------------------

    def _validate(self, effect: Validate) -> str | None:
        said = self._check(effect)
        if isinstance(said, Coroutine):
            import asyncio

            return _reason(asyncio.run(said))
        return _reason(said)

    async def _avalidate(self, effect: Validate) -> str | None:
        said = self._check(effect)
        return _reason(await said if isinstance(said, Awaitable) else said)

    def _check(self, effect: Validate) -> Any:
        check = self.registered(effect.order.action.name).check
        if check is None:
            return None
        return check(**parse(effect.order.intent.payload))  # type: ignore[arg-type]


def _fence(provider: object, order: SendOrder, effect: Send, index: int) -> Answer:
    """Send a fence where the adapter knows how; never the write itself in its place."""
    if not hasattr(provider, "fence"):
        return Silent(may_have_left=False, reason="no_fence")
    return cast("Fences", provider).fence(order, effect.flight, index)


class _Wait:
    """One send in a thread and whether its caller still waits: exactly one of the two records the answer."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._begun = self._over = self._gone = False
        self.answer: Answer | None = None

    def begin(self) -> bool:
        """The thread is about to send; False when its caller has gone and nothing may leave any more."""
        with self._guard:
            self._begun = not self._gone
            return self._begun

    def leave(self) -> bool:
        """The caller goes; True when the send is under way, and the thread must record what it hears."""
        with self._guard:
            self._gone = True
            return self._begun and not self._over

    def end(self, answer: Answer | None) -> bool:
        """The thread has its answer, or none; True when the caller has gone."""
        with self._guard:
            self._over, self.answer = True, answer
            return self._gone


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await a durable write to its end; a cancellation meanwhile is kept, and raised only then."""
    import asyncio

    task = asyncio.ensure_future(work)
    interruption: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            interruption = error
    if interruption is not None:
        task.exception()  # looked at, so that nobody complains of it: what was interrupted is told of that
        raise interruption
    return task.result()


def _observation(command: Command) -> tuple[str, bytes, bytes | None] | None:
    """What a command would lose if it were given up: its operation, record and body; None where it is nothing."""
    if isinstance(command, Settle):
        return command.id, command.record, command.body
    if isinstance(command, Amend) and command.record is not None:
        return command.operation, command.record, command.body
    return None


def _reason(said: object) -> str | None:
    """A check allows with None or True, and refuses with a reason or False."""
    if said is None or said is True:
        return None
    return "the action's check refused" if said is False else str(said)
