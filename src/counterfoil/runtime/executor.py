"""The product's hands: store commands to the store, sends and looks to the providers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from counterfoil.domain.answer import Answer
from counterfoil.domain.command import Amend, Claim, Command, Reply, Settle
from counterfoil.domain.errors import NotRecorded, Unavailable, UnknownAction
from counterfoil.domain.canonical import parse
from counterfoil.plans.effects import Effect, Find, Hand, Look, Now, Redraw, Send, Validate
from counterfoil.plans.late import late
from counterfoil.ports.store import Store
from counterfoil.runtime.drive import drive
from counterfoil.runtime.drawing import Drawer
from counterfoil.runtime.quiescence import Roster
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.spool import Spool

_COMMANDS = frozenset({Claim, Settle, Amend})

INSIST_MAX = 3
"""Further tries to store an answer, each after the store's own busy time-out."""
INSIST_FIRST_SECONDS = 0.05
"""Before the first of them; doubled each time. Long enough for another process's commit, short for a caller."""


class Executor:
    """Carries effects out, blocking or on an event loop; it decides nothing."""

    def __init__(
        self, store: Store, roster: Roster, drawer: Drawer, registry: dict[str, Registered], spool: Spool
    ) -> None:
        self._store = store
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
            Send: self._send,
            Look: self._look,
            Hand: lambda e: roster.hand(e.attempt.worker, e.attempt.token),
            Now: lambda _: store.now(),
        }

    def perform(self, effect: Effect) -> Any:
        """Carry an effect out in the calling thread."""
        kind = type(effect)
        if kind in _COMMANDS:
            return self._write(effect)  # type: ignore[arg-type]
        return self._others[kind](effect)

    async def aperform(self, effect: Effect) -> Any:
        """Carry an effect out without holding up the event loop."""
        if type(effect) in _COMMANDS:
            try:
                return await self._store.awrite(effect)  # type: ignore[arg-type]
            except Unavailable:
                if not isinstance(effect, Settle):
                    raise
                return await asyncio.to_thread(self._insist, effect)
        if isinstance(effect, Send):
            return await self._asend(effect)
        if isinstance(effect, Validate):
            return await self._avalidate(effect)
        if isinstance(effect, Redraw):
            return self._drawer.draw()
        return await asyncio.to_thread(self._others[type(effect)], effect)

    def _write(self, command: Command) -> Reply:
        try:
            return self._store.write(command)
        except Unavailable:
            if not isinstance(command, Settle):
                raise  # nothing has left: the caller may ask again
            return self._insist(command)

    def _insist(self, settle: Settle) -> Reply:
        """Write an answer again a few times, then put it beside the store: it is never dropped silently."""
        for attempt in range(INSIST_MAX):
            time.sleep(INSIST_FIRST_SECONDS * 2**attempt)
            try:
                return self._store.write(settle)
            except Unavailable:
                continue
        spooled = self._spool.put(settle.operation.id, settle.record, settle.body)
        raise NotRecorded(settle.operation.id, spooled=spooled)

    def registered(self, action: str) -> Registered:
        """The registered action of a name; raises `UnknownAction`."""
        found = self._registry.get(action)
        if found is None:
            raise UnknownAction(action, known=tuple(sorted(self._registry)))
        return found

    # -- sending -------------------------------------------------------------------------------------------------------

    def _send(self, effect: Send) -> Answer:
        registered = self.registered(effect.action.name)
        provider: Any = registered.provider
        if registered.awaited:
            return asyncio.run(provider.asend(effect.order, effect.flight, effect.arguments))  # type: ignore[no-any-return]
        if registered.takes_arguments:
            return provider.send(effect.order, effect.flight, effect.arguments)  # type: ignore[no-any-return]
        return provider.send(effect.order, effect.flight)  # type: ignore[no-any-return]

    async def _asend(self, effect: Send) -> Answer:
        registered = self.registered(effect.action.name)
        if registered.awaited:
            provider: Any = registered.provider
            return await provider.asend(effect.order, effect.flight, effect.arguments)  # type: ignore[no-any-return]
        wait = _Wait()
        sending = asyncio.get_running_loop().run_in_executor(None, self._send_for, effect, wait)
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            # The thread cannot be cancelled: what it hears is kept as late evidence.
            if wait.leave():
                effect.flight.detached = True
                self.detached.add(effect.token)
            raise

    def _send_for(self, effect: Send, wait: _Wait) -> Answer:
        answer = self._send(effect)
        if wait.answered():
            draw = self._drawer.draw()
            drive(late(effect.operation, effect.action, effect.attempt, answer, draw), self)
            self.detached.discard(effect.token)
            self._roster.in_hand.discard(effect.token)
        return answer

    def _look(self, effect: Look) -> tuple[Answer, ...]:
        return self.registered(effect.action.name).provider.look(effect.order)

    # -- the semantic check --------------------------------------------------------------------------------------------

    def _validate(self, effect: Validate) -> str | None:
        said = self._check(effect)
        if asyncio.iscoroutine(said):
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


class _Wait:
    """Whether a caller still waits for a thread's answer: exactly one of the two learns that it is too late."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._over = False

    def leave(self) -> bool:
        """The caller goes; True when the answer is still to come, and the thread must record it."""
        with self._guard:
            first, self._over = not self._over, True
            return first

    def answered(self) -> bool:
        """The thread has its answer; True when the caller has gone."""
        return not self.leave()


def _reason(said: object) -> str | None:
    """A check allows with None or True, and refuses with a reason or False."""
    if said is None or said is True:
        return None
    return "the action's check refused" if said is False else str(said)


