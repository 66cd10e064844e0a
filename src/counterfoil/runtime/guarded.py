"""Guarding: turning a function or an API into an action whose calls return receipts."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import msgspec

from counterfoil.domain.action import Action, Consequence, Order
from counterfoil.domain.binding import Binder
from counterfoil.domain.contract import Contract, digest
from counterfoil.domain.errors import BadValue, CounterfoilError, NotDeclared
from counterfoil.domain.intent import Occurrence, Siblings
from counterfoil.runtime.receipt import Receipt, refused_for_model
from counterfoil.runtime.registered import Registered, checked_text, code_digest

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger


class Declared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be declared of an action, beside what it is."""

    name: str = ""
    """Default: the function's own name."""
    effect: str = ""
    """The name shared by all routes to the same effect; default: the action's name."""
    account: str = "default"
    destination: str = ""
    tenant: str = ""
    owner: str = ""
    """Who acts on an unresolved operation."""
    authoriser: str = ""
    """Who may decide that it happens at all."""
    consequence: str = "some"
    key: Any = None
    """A callable of the payload's fields, or text: names one occurrence, in trusted code."""
    occurrence: str | None = None
    """`run`, `conversation`, `day` or `once`: within what equal intents are the same occurrence."""
    siblings: str = "held"
    """`independent`: equal effects under other keys may run beside each other."""
    effect_by: tuple[str, ...] = ()
    """Pointers that make two intents the same effect; default: the fingerprint."""
    material: tuple[str, ...] = ()
    immaterial: dict[str, str] = {}
    """Pointers that cannot alter the effect, each with its reason."""
    check: Any = None
    """The semantic check, made before every attempt; returns None or True to allow, a reason or False to refuse."""
    value: Any = None
    """A callable of the payload's fields: the value at risk."""
    floats: str = "keep"
    """`refuse` where money stands."""
    result: tuple[str, ...] = ()
    """Pointers into the result that a replay returns; default: all of it."""
    contract: Any = None
    look: Any = None
    """A function's own look, read by the contract's clauses."""
    control: str = ""
    """A reference in this account that a look always finds: its positive control; default: the contract's own."""
    longest_delivery: float | None = None
    """Seconds within which the provider applies or drops what it was sent: an assumption, printed on receipts."""
    longest_delivery_by: str = ""
    longest_delivery_why: str = ""


def declared(given: Mapping[str, Any], action: str) -> Declared:
    """Read what was declared; an unknown or wrong name is an error that names it."""
    unknown = sorted(set(given) - set(Declared.__struct_fields__))
    if unknown:
        known = ", ".join(Declared.__struct_fields__)
        raise BadValue("declaration", unknown[0], wanted=f"{action!r} may declare: {known}")
    for name, value in given.items():
        _fits(name, value)
    return Declared(**{name: _pointers(name, value) if name in _POINTERS else value for name, value in given.items()})


_TEXTS = frozenset({
    *("name", "effect", "account", "destination", "tenant", "owner", "authoriser", "consequence", "siblings"),
    *("floats", "control", "longest_delivery_by", "longest_delivery_why"),
})  # fmt: skip
_CALLABLES = frozenset({"check", "value", "look"})


def _fits(name: str, value: Any) -> None:
    """Refuse a declaration of the wrong type where it is made, not at the first call."""
    if name in _TEXTS:
        checked_text(name, value, empty=name != "account")
    elif name in _CALLABLES and value is not None and not callable(value):
        raise BadValue(name, value, wanted="a callable")
    elif name == "key" and not (value is None or callable(value) or isinstance(value, str | int)):
        raise BadValue(name, value, wanted="a callable of the payload's fields, or text")
    elif name == "longest_delivery" and value is not None and type(value) not in (int, float):
        raise BadValue(name, value, wanted="seconds, as a number")


_POINTERS = frozenset({"effect_by", "material", "immaterial", "result"})


def _pointers(name: str, value: Any) -> Any:
    """A list of pointers, or for `immaterial` pointers with their reasons; one bare text is a slip of the pen."""
    if name == "immaterial":
        if not isinstance(value, Mapping) or not all(isinstance(why, str) and why for why in value.values()):
            raise BadValue(name, value, wanted='pointers with a reason each, e.g. {"/trace_id": "names the run only"}')
        return dict(value)
    if isinstance(value, str):
        raise BadValue(name, value, wanted="a tuple of JSON pointers")
    return tuple(value)


def action_of(said: Declared, name: str, *, contract: Contract, tenant: str, code: str = "") -> Action:
    """Build an action's data from what was declared; what is missing is named with why it matters."""
    if not said.owner or not said.authoriser:
        missing = " and no ".join(w for w, v in (("owner", said.owner), ("authoriser", said.authoriser)) if not v)
        warnings.warn(
            f"action {name!r} declares no {missing}: an unresolved effect will have nobody to decide on it",
            stacklevel=4,  # whoever called `ledger.action` or `ledger.http`
        )
    if said.longest_delivery is not None and not (said.longest_delivery_by and said.longest_delivery_why):
        raise NotDeclared(
            name, missing="longest_delivery_by and longest_delivery_why",
            why="an assumption is printed on every receipt that rests on it, with whose it is and why",
        )  # fmt: skip
    if said.longest_delivery is not None and not 0 <= said.longest_delivery < float("inf"):
        raise BadValue("longest_delivery", said.longest_delivery, wanted="seconds, finite and not negative")
    return Action(
        name=name,
        effect=said.effect or name,
        account=said.account,
        contract=contract,
        contract_digest=digest(contract),
        tenant=said.tenant or tenant,
        destination=said.destination,
        owner=said.owner,
        authoriser=said.authoriser,
        consequence=_word(Consequence, "consequence", said.consequence),
        checked=said.check is not None,
        material=said.material,
        immaterial=tuple(said.immaterial),
        effect_pointers=said.effect_by,
        siblings=_word(Siblings, "siblings", said.siblings),
        occurrence=None if said.occurrence is None else _word(Occurrence, "occurrence", said.occurrence),
        result=said.result,
        floats_refused=_floats(said.floats),
        code=code,
        control=said.control,
        longest_delivery=said.longest_delivery,
        longest_delivery_by=said.longest_delivery_by,
        longest_delivery_why=said.longest_delivery_why,
    )


def _floats(said: str) -> bool:
    if said not in ("keep", "refuse"):
        raise BadValue("floats", said, wanted="one of keep, refuse")
    return said == "refuse"


def _word(words: Any, name: str, value: str) -> Any:
    try:
        return words(value)
    except ValueError:
        raise BadValue(name, value, wanted=f"one of {', '.join(w.value for w in words)}") from None


def contract_of(named: Any, default: str) -> Contract:
    """Load a contract by catalogue name or file path, or take one as it is."""
    from counterfoil import contracts

    if isinstance(named, Contract):
        return named
    return contracts.load(default if named is None else named)


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
    ) -> Order:
        """Freeze one call into an order."""
        ledger, registered = self._ledger, self.registered
        scopes = _NO_SCOPES if registered.action.occurrence is None else ledger.scopes()
        if not _IMMUTABLE.issuperset(map(type, args)) or (
            kwargs and not _IMMUTABLE.issuperset(map(type, kwargs.values()))
        ):
            args, kwargs = _own(args, kwargs)
        payload = self._binder.bind(args, kwargs)
        return registered.order(
            payload, actor=ledger.actor, scopes=scopes, key=key, arguments=(args, kwargs), mentioned=mentioned
        )

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

    def as_tool(self) -> Tool:
        """This action as a tool for a model: a JSON schema, and results that are `receipt.for_model()`."""
        return Tool(self)


_NO_SCOPES: Mapping[str, str] = MappingProxyType({})
_IMMUTABLE = frozenset({str, int, bool, float, bytes, type(None)})


def _own(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A copy that nobody changes between the freezing of the payload and the call: what is sent is what was frozen."""
    try:
        return copy.deepcopy((args, kwargs))
    except (TypeError, RecursionError):
        return args, kwargs  # it has no canonical form either, which is refused with its pointer


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
    action = action_of(said, name, contract=contract, tenant=ledger.tenant, code=code_digest(function))
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


class GuardedHttp:
    """A guarded API: calling it with a payload and a key returns a `Receipt`."""

    def __init__(self, ledger: Ledger, registered: Registered) -> None:
        self._ledger = ledger
        self.registered = registered

    @property
    def action(self) -> Action:
        """What is registered."""
        return self.registered.action

    def order(self, payload: Any, *, key: str | int | None = None, mentioned: dict[str, str] | None = None) -> Order:
        """Freeze one call into an order; what could never be sent is refused here, before anything is claimed."""
        ledger = self._ledger
        scopes = ledger.scopes() if self.registered.action.occurrence is not None else {}
        order = self.registered.order(payload, actor=ledger.actor, scopes=scopes, key=key, mentioned=mentioned)
        self.registered.check_sendable(order)
        return order

    def __call__(self, payload: Any, *, key: str | int | None = None) -> Receipt:
        """Send this payload at most once and return its receipt."""
        return self._ledger.call(self.order(payload, key=key))

    async def acall(self, payload: Any, *, key: str | int | None = None) -> Receipt:
        """The same on the running event loop."""
        return await self._ledger.acall(self.order(payload, key=key))


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
    from counterfoil.runtime.secrets import resolvers

    transport = {k: given.pop(k) for k in ("proxy", "proxy_headers", "verify", "limits") if k in given}
    said = declared({**given, "account": account}, name)
    loaded = contract_of(contract, "")
    destination = said.destination or base_url.rstrip("/")
    action = action_of(
        msgspec.structs.replace(said, destination=destination), name, contract=loaded, tenant=ledger.tenant
    )
    provider = HttpProvider(
        loaded, base_url=base_url, account=account, secrets=resolvers(name, secrets or {}, loaded), **transport
    )
    registered = Registered(
        action, provider, key=said.key, check=said.check, value=said.value, fingerprint_key=ledger.fingerprint_key
    )
    ledger.register(registered)
    return GuardedHttp(ledger, registered)
