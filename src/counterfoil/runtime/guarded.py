"""Guarding: turning a function or an API into an action whose calls return receipts."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Never, ParamSpec, TypeVar

import msgspec

from counterfoil.domain.action import Action, Order
from counterfoil.domain.binding import Binder
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import BadValue, CounterfoilError, NotDeclared
from counterfoil.domain.intent import Siblings
from counterfoil.runtime.declared import action_of, contract_of, declared
from counterfoil.runtime.receipt import Receipt, refused_for_model
from counterfoil.runtime.registered import IMMUTABLE, Registered, code_digest

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger


# -- functions ---------------------------------------------------------------------------------------------------------


P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)


class GuardedFunction(Generic[P, T_co]):
    """A guarded function: calling it returns a `Receipt`, and the same call again returns the same receipt.

    Its arguments are the function's own; of an `async def` the receipt is awaited.
    """

    def __init__(self, ledger: Ledger, registered: Registered, function: Callable[..., Any], binder: Binder) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._ledger = ledger
        self._binder = binder
        self._fixed = IMMUTABLE.issuperset(map(type, binder.defaults.values()))
        """None of its defaults can be changed by whoever is handed it."""
        self.registered = registered
        self._carry: Any = ledger.acall if registered.awaited else ledger.call

    @property
    def action(self) -> Action:
        """What is registered."""
        return self.registered.action

    def order(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        key: str | int | None = None,
        mentioned: dict[str, str] | None = None,
        compensates: str = "",
    ) -> Order:
        """Freeze one call into an order."""
        ledger, registered = self._ledger, self.registered
        scopes = _NO_SCOPES if registered.action.occurrence is None else ledger.scopes()
        fixed = self._fixed
        if not IMMUTABLE.issuperset(map(type, args)) or (
            kwargs and not IMMUTABLE.issuperset(map(type, kwargs.values()))
        ):
            args, kwargs = _own(args, kwargs)
            fixed = False
        payload = self._binder.bind(args, kwargs)
        return registered.order(
            payload, actor=ledger.actor, scopes=scopes, key=key, arguments=(args, kwargs), mentioned=mentioned,
            compensates=compensates, fixed=fixed,
        )  # fmt: skip

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co:
        """Send this call at most once and return its receipt."""
        return self._carry(self.order(args, kwargs))  # type: ignore[no-any-return]

    def with_key(self, key: str | int, **mentioned: str) -> Callable[P, T_co]:
        """The same function for one occurrence named here, by trusted code.

        Args:
            key: the business id of this occurrence.
            mentioned: a model's own key or a framework's call id: kept as evidence.
        """

        def call(*args: P.args, **kwargs: P.kwargs) -> T_co:
            return self._carry(self.order(args, kwargs, key=key, mentioned=mentioned))  # type: ignore[no-any-return]

        return call

    def compensating(self, operation: str, *, key: str | int | None = None) -> Callable[P, T_co]:
        """The same function for undoing one operation: it is linked on both receipts, and the first stays what it is.

        Args:
            operation: what is undone; it is known to have happened, or nothing is sent.
            key: the business id of this occurrence, where the action declares none.
        """

        def call(*args: P.args, **kwargs: P.kwargs) -> T_co:
            order = self.order(args, kwargs, key=key, compensates=operation)
            return self._carry(order)  # type: ignore[no-any-return]

        return call

    def as_tool(self) -> Tool:
        """This action as a tool for a model: a JSON schema, and results that are `receipt.for_model()`."""
        return Tool(self)


_NO_SCOPES: Mapping[str, str] = MappingProxyType({})


def _own(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A copy that nobody changes between the freezing of the payload and the call: what is sent is what was frozen."""
    try:
        copied: tuple[tuple[Any, ...], dict[str, Any]] = copy.deepcopy((args, kwargs))
        return tuple(map(_plain, copied[0])), {name: _plain(value) for name, value in copied[1].items()}
    except (TypeError, RecursionError):
        return args, kwargs  # it has no canonical form either, which is refused with its pointer


def _plain(value: Any) -> Any:
    """The same without containers of the caller's own making: they could show the function what was never frozen."""
    if isinstance(value, dict):
        return {name: _plain(found) for name, found in dict.items(value)}
    if isinstance(value, list):
        return [_plain(found) for found in list.__iter__(value)]
    return tuple(map(_plain, value)) if type(value) is tuple else value


class Tool:
    """A guarded function as agent frameworks take tools."""

    def __init__(self, guarded: GuardedFunction[..., Any]) -> None:
        self._guarded = guarded
        self.name = guarded.action.name
        self.description = (guarded.__doc__ or "").strip()

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments, from the signature."""
        import inspect

        from counterfoil.runtime.toolschema import schema_of

        return schema_of(inspect.signature(self._guarded.function, eval_str=True))

    def __call__(self, **arguments: Any) -> Any:
        """Call it and tell what a model may know; refusals too are fixed words, never an exception's text."""
        refusal = self._misfit(arguments)
        if self._guarded.registered.awaited:
            return self._awaited(arguments, refusal)
        if refusal is not None:
            return refused_for_model(refusal)
        try:
            return self._guarded(**arguments).for_model()
        except CounterfoilError as error:
            return refused_for_model(error)

    async def _awaited(self, arguments: dict[str, Any], refusal: Exception | None) -> dict[str, Any]:
        if refusal is not None:
            return refused_for_model(refusal)
        try:
            receipt: Receipt = await self._guarded(**arguments)
        except CounterfoilError as error:
            return refused_for_model(error)
        return receipt.for_model()

    def _misfit(self, arguments: dict[str, Any]) -> Exception | None:
        """Wrong arguments are the model's to correct; a declaration that does not fit stays a developer's error."""
        try:
            self._guarded.registered.bound(arguments)
        except CounterfoilError:
            return BadValue("arguments", sorted(arguments), wanted="those of the tool's schema")
        return None


def guard_function(ledger: Ledger, function: Callable[..., Any], **given: Any) -> GuardedFunction[..., Any]:
    """Register a plain or async callable as an action."""
    import inspect

    from counterfoil.providers.function import FunctionProvider

    name = str(given.get("name") or getattr(function, "__name__", "") or "")
    if not name:
        raise NotDeclared("?", missing="name", why="this callable has none of its own")
    said = declared(given, name)
    contract = contract_of(said.contract, "function.plain")
    action = action_of(
        said, name, contract=contract, tenant=ledger.tenant, code=code_digest(function), production=ledger.production
    )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadValue("function", name, wanted="is a generator: calling it would run nothing; guard a plain function")
    binder = Binder(inspect.signature(function))
    provider = FunctionProvider(function, binder, said.look)
    if said.key is None and said.occurrence is None and action.siblings is Siblings.INDEPENDENT:
        raise NotDeclared(name, missing="key", why="independent siblings are told apart by nothing else")
    registered = Registered(
        action, provider, key=said.key, check=said.check, value=said.value, fingerprint_key=ledger.fingerprint_key
    )
    registered.awaited = _is_awaited(inspect, function)
    registered.takes_arguments = True
    registered.binder = binder
    ledger.register(registered)
    return GuardedFunction(ledger, registered, function, binder)


def _is_awaited(inspect: Any, function: Any) -> bool:
    """An `async def`, wrapped or not, or an object whose call is one."""
    bare = inspect.unwrap(function)
    return bool(inspect.iscoroutinefunction(bare) or inspect.iscoroutinefunction(type(bare).__call__))


# -- HTTP --------------------------------------------------------------------------------------------------------------


_LEFT_OUT: Any = object()


class GuardedHttp:
    """A guarded API: calling it with a payload and a key returns a `Receipt`."""

    def __init__(self, ledger: Ledger, registered: Registered) -> None:
        self._ledger = ledger
        self.registered = registered

    @property
    def action(self) -> Action:
        """What is registered."""
        return self.registered.action

    def order(
        self, payload: Any, *, key: str | int | None = None, mentioned: dict[str, str] | None = None,
        compensates: str = "",
    ) -> Order:  # fmt: skip
        """Freeze one call into an order; what could never be sent is refused here, before anything is claimed."""
        ledger = self._ledger
        scopes = ledger.scopes() if self.registered.action.occurrence is not None else {}
        order = self.registered.order(
            payload, actor=ledger.actor, scopes=scopes, key=key, mentioned=mentioned, compensates=compensates
        )
        self.registered.check_sendable(order)
        return order

    def __call__(
        self, payload: Any = _LEFT_OUT, *, key: str | int | None = None, compensates: str = "", **fields: Never
    ) -> Receipt:
        """Send this payload at most once and return its receipt.

        Args:
            payload: one object.
            key: the business id of this occurrence, where the action declares none.
            compensates: the operation that it undoes, linked on both receipts.
            fields: none; the payload is one object.
        """
        self._check_call(payload, fields)
        return self._ledger.call(self.order(payload, key=key, compensates=compensates))

    async def acall(
        self, payload: Any = _LEFT_OUT, *, key: str | int | None = None, compensates: str = "", **fields: Never
    ) -> Receipt:
        """The same on the running event loop."""
        self._check_call(payload, fields)
        return await self._ledger.acall(self.order(payload, key=key, compensates=compensates))

    def _check_call(self, payload: Any, fields: Mapping[str, Any]) -> None:
        """Say how it is called to whoever called it as a function of the payload's fields."""
        if fields or payload is _LEFT_OUT:
            named = "{" + ", ".join(f"{name!r}: ..." for name in fields or ("FIELD",)) + "}"
            raise TypeError(f"{self.action.name} takes its payload as one object: call it with ({named}, key=...)")


def guard_http(
    ledger: Ledger,
    name: str,
    *,
    contract: str | Contract,
    base_url: str,
    account: str,
    secrets: Mapping[str, Any] | None = None,
    **given: Any,
) -> GuardedHttp:
    """Register an API under its contract."""
    from counterfoil.providers.http import HttpProvider
    from counterfoil.runtime.secrets import references, resolvers

    transport = {k: given.pop(k) for k in ("proxy", "proxy_headers", "verify", "limits") if k in given}
    said = declared({**given, "account": account}, name)
    loaded = contract_of(contract, "")
    destination = said.destination or base_url.rstrip("/")
    action = action_of(
        msgspec.structs.replace(said, destination=destination),
        name,
        contract=loaded,
        tenant=ledger.tenant,
        production=ledger.production,
    )
    provider = HttpProvider(
        loaded,
        base_url=base_url,
        account=account,
        secrets=resolvers(name, secrets or {}, loaded),
        references=references(secrets or {}),
        **transport,
    )
    registered = Registered(
        action, provider, key=said.key, check=said.check, value=said.value, fingerprint_key=ledger.fingerprint_key
    )
    ledger.register(registered)
    return GuardedHttp(ledger, registered)
