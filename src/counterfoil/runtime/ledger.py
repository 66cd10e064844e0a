"""The ledger: where actions are registered, called and settled."""

from __future__ import annotations

import contextlib
import contextvars
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeAlias, TypeVar, overload

import msgspec

from counterfoil.domain.action import Action, Draw, Order
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import History, attempts_of
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import WAITING
from counterfoil.domain.words import Dispatch, Standing
from counterfoil.plans import dispatch as dispatching
from counterfoil.plans.effects import Ended, Plan
from counterfoil.runtime.drawing import Drawer
from counterfoil.runtime.drive import adrive, drive
from counterfoil.runtime.executor import Executor
from counterfoil.runtime.governance import Governance
from counterfoil.runtime.importing import importing_spec, refuse_while_importing
from counterfoil.runtime.quiescence import ALIVE, Roster
from counterfoil.runtime.receipt import Receipt
from counterfoil.runtime.refusals import Refusals
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.settling import Settling
from counterfoil.runtime.spool import Spool

P = ParamSpec("P")

if TYPE_CHECKING:
    from counterfoil.domain.contract import Contract
    from counterfoil.runtime.guarded import GuardedFunction, GuardedHttp

    CalledFunction: TypeAlias = GuardedFunction[P, Receipt]
    AwaitedFunction: TypeAlias = GuardedFunction[P, Awaitable[Receipt]]
    from counterfoil.ports.store import Store

T = TypeVar("T")


class Guarding(Protocol):
    """A decorator that guards: the function keeps its arguments and comes to return a receipt."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[Any]], /) -> AwaitedFunction[P]: ...
    @overload
    def __call__(self, function: Callable[P, Any], /) -> CalledFunction[P]: ...
    def __call__(self, function: Any, /) -> Any:
        """Guard a function."""


class Ledger(Settling):
    """A book of receipts and the actions it guards; `counterfoil.open` makes one.

    Args:
        store: where receipts are durable.
        actor: the accountable principal of this ledger's calls, e.g. `agent:support`.
        tenant: whose effects they are.
        scopes: ids of the current run and conversation, for actions that derive keys within them.
        fingerprint_key: the deployment's key where payloads are guessable.
        production: refuse actions that name no owner and authoriser, where a developer is only warned.
    """

    def __init__(
        self,
        store: Store,
        *,
        actor: str = "",
        tenant: str = "default",
        scopes: dict[str, str] | None = None,
        fingerprint_key: bytes | None = None,
        production: bool = False,
    ) -> None:
        self.store = store
        self.tenant = tenant
        self.actor = actor or f"user:{_os_user()}"
        self._scopes: contextvars.ContextVar[dict[str, str]] = contextvars.ContextVar("scopes", default=scopes or {})
        self.fingerprint_key = fingerprint_key
        self._closing: list[Callable[[], Any]] = []
        self.registry: dict[str, Registered] = {}
        self.spool = Spool(store.beside(".spool"))
        self._roster = Roster(store, store.beside(".workers"))
        self._drawer = Drawer(self._roster.worker)
        self._drawn_in = 0
        """The process that has drawn for an event loop before."""
        self.refusals = Refusals(store)
        self.governance = Governance(store)
        """The policy in force."""
        self.production = production
        self._executor = Executor(store, self._roster, self._drawer, self.registry, self.spool, self.governance)

    # -- declaring -----------------------------------------------------------------------------------------------------

    @overload
    def action(self, function: Callable[P, Awaitable[Any]], /, **declared: Any) -> AwaitedFunction[P]: ...
    @overload
    def action(self, function: Callable[P, Any], /, **declared: Any) -> CalledFunction[P]: ...
    @overload
    def action(self, function: None = None, /, **declared: Any) -> Guarding: ...
    def action(self, function: Any = None, /, **declared: Any) -> Any:
        """Guard a function, as a decorator or a call; see `guarded.declare` for what may be declared.

        The guarded function returns a `Receipt`; an `async def` is awaited and returns one.
        """
        from counterfoil.runtime.guarded import guard_function

        if function is not None:
            return guard_function(self, function, **declared)
        return lambda f: guard_function(self, f, **declared)

    def http(self, name: str, *, contract: str | Contract, base_url: str, account: str, **declared: Any) -> GuardedHttp:
        """Guard an API by its contract; calling the result with a payload and a key returns a `Receipt`."""
        from counterfoil.runtime.guarded import guard_http

        return guard_http(self, name, contract=contract, base_url=base_url, account=account, **declared)

    def smtp(self, name: str, *, host: str, account: str, **declared: Any) -> GuardedHttp:
        """Guard mail through one server; calling the result with a mail's fields and a key returns a `Receipt`."""
        from counterfoil.runtime import adapting

        return adapting.guard(self, name, adapting.smtp(name, host=host, account=account, **declared))

    def process(self, name: str, *, command: Sequence[str], account: str, **declared: Any) -> GuardedHttp:
        """Guard a command, by what its exit codes prove; calling the result runs it at most once."""
        from counterfoil.runtime import adapting

        return adapting.guard(self, name, adapting.process(name, command=command, account=account, **declared))

    def sql(self, name: str, *, url: str, statement: str, account: str, **declared: Any) -> GuardedHttp:
        """Guard one SQL statement on PostgreSQL; a COMMIT whose answer is lost is asked for by its transaction's id."""
        from counterfoil.runtime import adapting

        return adapting.guard(self, name, adapting.sql(name, url=url, statement=statement, account=account, **declared))

    def s3(self, name: str, *, region: str, account: str, **declared: Any) -> GuardedHttp:
        """Guard objects in an S3 store, each written only where nothing stands; a lost answer is settled by a look."""
        from counterfoil.runtime import adapting

        return adapting.guard(self, name, adapting.s3(name, region=region, account=account, **declared))

    def register(self, registered: Registered) -> None:
        """Take an action in; one name is one action, and an effect's actions agree about what is the same effect."""
        action = registered.action
        if action.name in self.registry:
            raise BadValue("action", action.name, wanted="is registered already; one name is one action")
        for other in self.registry.values():
            _agree(action, other.action)
        registered.governance = self.governance
        self.registry[action.name] = registered

    @contextlib.contextmanager
    def within(self, **scopes: str) -> Iterator[None]:
        """Name the run or conversation that calls in this block belong to."""
        token = self._scopes.set({**self._scopes.get(), **scopes})
        try:
            yield
        finally:
            self._scopes.reset(token)

    def scopes(self) -> dict[str, str]:
        """The scopes a key may be derived within, now."""
        return {"day": time.strftime("%Y-%m-%d", time.gmtime(self.store.now())), **self._scopes.get()}

    # -- calling -------------------------------------------------------------------------------------------------------

    def call(self, order: Order) -> Receipt:
        """Send an order at most once and return its receipt."""
        if importing_spec.get():
            refuse_while_importing()
        draw = self._drawer.draw()
        in_hand = self._roster.in_hand
        in_hand.add(draw.token)
        try:
            ended = drive(dispatching.dispatch(order, draw), self._executor)
        finally:
            in_hand.discard(draw.token)
        if ended.standing is not Standing.NEW and ended.operation.id != draw.id:
            self.refusals.note(ended.operation.n)
        if ended.operation.dispatch is Dispatch.STARTED:
            return self._receipt(ended)
        return Receipt(ended, self, now=ended.operation.updated_at, alive=False, error=ended.error)

    async def acall(self, order: Order) -> Receipt:
        """The same on the running event loop."""
        if importing_spec.get():
            refuse_while_importing()
        draw = await self._adraw()
        self._roster.in_hand.add(draw.token)
        try:
            ended = await adrive(dispatching.dispatch(order, draw), self._executor)
        finally:
            self._let_go(draw)
        if ended.standing is not Standing.NEW and ended.operation.id != draw.id:
            await self.refusals.anote(ended.operation.n)
        if ended.operation.dispatch is Dispatch.STARTED:  # whether it is in hand stands in the store
            import asyncio

            return await asyncio.to_thread(self._receipt, ended)
        return self._receipt(ended)

    async def _adraw(self) -> Draw:
        """Draw; the first draw of a process registers its worker, for which the event loop must not wait."""
        if self._drawn_in == os.getpid():
            return self._drawer.draw()
        import asyncio

        draw = await asyncio.to_thread(self._drawer.draw)
        self._drawn_in = os.getpid()
        return draw

    def _carry(self, plan: Callable[[Draw], Plan[T]]) -> T:
        draw = self._drawer.draw()
        self._roster.in_hand.add(draw.token)
        try:
            return drive(plan(draw), self._executor)
        finally:
            self._let_go(draw)

    def _let_go(self, draw: Draw) -> None:
        if draw.token not in self._executor.detached:
            self._roster.in_hand.discard(draw.token)

    def _receipt(self, ended: Ended) -> Receipt:
        operation = ended.operation
        if operation.dispatch is not Dispatch.STARTED:
            now = self.store.now() if operation.step in WAITING else operation.updated_at
            return Receipt(ended, self, now=now, alive=False, error=ended.error)
        # First the hand, then the record: whoever has let go had recorded before, and that is not unknown.
        alive = self._alive(operation)
        latest = dispatching.stands(self.store.load(operation.id))
        if latest.operation.seq != operation.seq:
            standing = ended.standing if ended.standing is Standing.NEW else latest.standing
            ended = msgspec.structs.replace(latest, standing=standing, because=ended.because, error=ended.error)
        return Receipt(ended, self, now=self.store.now(), alive=alive, error=ended.error)

    def _alive(self, operation: Operation) -> bool:
        attempts, _ = attempts_of(self.store.load(operation.id).events)
        return any(a.finding is None and self._roster.hand(a.worker, a.token) == ALIVE for a in attempts)

    # -- reading -------------------------------------------------------------------------------------------------------

    def get(self, operation: str) -> Receipt:
        """Read one receipt; raises `NoSuchOperation`."""
        history = self.store.load(operation)
        held = self.as_held_now(history.operation)
        return self._receipt(dispatching.stands(msgspec.structs.replace(history, operation=held)))

    def as_held_now(self, operation: Operation) -> Operation:
        """An operation with what holds it now: the one on record may have been settled since, and others begun."""
        if not operation.held_by or operation.dispatch is not Dispatch.NOT_STARTED:
            return operation
        holders = [o.id for o in self.store.holders(operation.effect) if o.id != operation.id]
        if operation.held_by in holders:
            return operation
        return msgspec.structs.replace(operation, held_by=holders[0] if holders else "")

    def history(self, operation: str) -> History:
        """Read one operation with all its events."""
        return self.store.load(operation)

    def compensated_by(self, history: History) -> tuple[str, ...]:
        """Read which operations undo one, by their ids; what was asked for and never came to stand is none."""
        from counterfoil.domain.compensation import asked, compensates

        found = (self.store.find(k.tenant, k.actor, k.action, k.key) for k in asked(history))
        return tuple(h.operation.id for h in found if h and compensates(h) == history.operation.id)

    def briefing(self, *, tenant: str | None = None, accounts: tuple[str, ...] | None = None) -> str:
        """Say what must not be repeated, for a model's prompt: a few lines, or nothing. Safety never rests on it."""
        from counterfoil.runtime.briefing import briefing

        return briefing(self.store.unresolved(), tenant=tenant or self.tenant, accounts=accounts, now=self.store.now())

    # -- the end -------------------------------------------------------------------------------------------------------

    def on_close(self, *steps: Callable[[], Any]) -> None:
        """Do these, in order, before the file is closed."""
        self._closing.extend(steps)

    def close(self) -> None:
        """Write what is queued, give the worker's lock back and close the file."""
        while self._closing:
            self._closing.pop(0)()
        self.refusals.flush()
        self._roster.retire()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _agree(action: Action, other: Action) -> None:
    """Routes to one effect that name it differently would not hold each other, and nobody would know."""
    told = {
        "siblings": (action.siblings.value, other.siblings.value),
        "effect_by": (action.effect_pointers, other.effect_pointers),
    }
    for name, (said, before) in told.items():
        if action.effect == other.effect and said != before:
            raise BadValue(
                name, said,
                wanted=f"{other.name!r} declares the same effect with {name}={before!r}; "
                "all routes to an effect must agree",
            )  # fmt: skip


def _os_user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
