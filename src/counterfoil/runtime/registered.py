"""Actions as they are registered: the data the plans see, and the callables only the drivers touch."""

from __future__ import annotations

import copy
import functools
import hashlib
import types
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from counterfoil.domain import canonical, pointer
from counterfoil.domain.action import Action, Order
from counterfoil.domain.binding import Binder
from counterfoil.domain.canonical import NotCanonical
from counterfoil.domain.errors import BadValue, NotDeclared, PayloadRefused
from counterfoil.domain.identifier import NONCE_BYTES, operation_id, row_number
from counterfoil.domain.intent import Intent, Occurrence, Siblings, effect_namer, material_of, print_of, print_prefix
from counterfoil.domain.terms import NO_POLICY, Terms
from counterfoil.plans.claims import ClaimForm
from counterfoil.ports.provider import Provider, SendOrder

if TYPE_CHECKING:
    from counterfoil.runtime.governance import Governance

KEY_CHARS_MAX = 255
"""Longer keys are documents: name the occurrence instead."""

MENTIONED_BYTES_MAX = 4_096
"""What a model or a framework may call a call."""

_KEY_SHAPE = operation_id(0, bytes(NONCE_BYTES))
"""A provider key of the real length, to render a request with before its own is drawn."""

IMMUTABLE = frozenset({str, int, bool, float, bytes, type(None)})
"""Types whose values nobody changes: they need no copy."""

Key = str | Callable[..., Any] | None
Check = Callable[..., Any]


class Registered:
    """One registered action.

    Args:
        action: its data.
        provider: what sends and looks.
        key: names one occurrence from the payload's fields, in trusted code.
        check: the semantic check; returns None or True to allow, a reason or False to refuse.
        value: reads the value at risk from the payload's fields.
        fingerprint_key: the deployment's key where values are guessable.
    """

    def __init__(
        self,
        action: Action,
        provider: Provider,
        *,
        key: Key = None,
        check: Check | None = None,
        value: Callable[..., float] | None = None,
        fingerprint_key: bytes | None = None,
    ) -> None:
        self.action = action
        self.provider = provider
        self._key = key
        self.check = check
        self._value = value
        self._fingerprint_key = fingerprint_key
        self.governance: Governance | None = None
        """The policy in force where it is registered; None before that."""
        self.awaited = False
        """The guarded callable is `async def`."""
        self.binder: Binder | None = None
        """Binds payloads to the guarded function's own signature."""
        self.takes_arguments = False
        """The provider can use the caller's own arguments."""
        self._print_prefix = print_prefix(action.account, action.destination)
        self._forms: dict[str, ClaimForm] = {}
        """By actor: a ledger has one, or few."""
        self._effect_of = effect_namer(action.tenant, action.account, action.effect)
        self._selects = bool(action.material or action.immaterial)
        self._by_print = not action.effect_pointers and action.siblings is Siblings.HELD
        self._floats: canonical.Floats = "refuse" if action.floats_refused else "keep"

    def order(  # noqa: PLR0913 - a call has this many parts
        self,
        payload: Any,
        *,
        actor: str,
        scopes: Mapping[str, str],
        key: str | int | None = None,
        arguments: object = None,
        mentioned: dict[str, str] | None = None,
        compensates: str = "",
        fixed: bool = False,
    ) -> Order:
        """Freeze one call into an order.

        Args:
            payload: the material and immaterial fields, by name.
            actor: the accountable principal.
            scopes: ids of the run, conversation and day, for actions that derive their key from one.
            key: the occurrence's name where the caller gives it here.
            arguments: the caller's own arguments, for the adapter.
            mentioned: a model's key or a framework's call id: kept as evidence, never the key.
            compensates: the operation that this one undoes: part of what is asked, so that no replay changes it.
            fixed: nothing in the payload can change, so that declared callables need no copy of it.

        Raises:
            PayloadRefused: the payload has no canonical form.
            NotDeclared: neither a key nor an occurrence is named.
        """
        action = self.action
        try:
            frozen = canonical.canonical(payload, floats=self._floats)
            material = material_of(frozen, action.material, tuple(action.immaterial)) if self._selects else frozen
        except NotCanonical as error:
            raise PayloadRefused(error.pointer, error.problem) from None
        content = canonical.fingerprint(print_of(self._print_prefix, material), key=self._fingerprint_key)
        print_ = self._compensating(material, compensates) if compensates else content
        if key is None and callable(self._key):
            named = _checked_key(self._key(**(payload if fixed else _lent(payload))))
        else:
            named = self.key_of(print_, scopes, key)
        intent = Intent(
            tenant=action.tenant, actor=actor, action=action.name, account=action.account,
            destination=action.destination, key=named, payload=frozen, fingerprint=print_,
            effect=self._effect_of((content,)) if self._by_print else self._effect(frozen, content, named),
        )  # fmt: skip
        value = 1.0 if self._value is None else self._value_of(payload if fixed else _lent(payload))
        if mentioned:
            _check_mentioned(mentioned)
        terms = self.terms(value)
        form = self._form(actor, intent, terms)
        return Order(
            intent=intent, action=action, value=value, arguments=arguments, mentioned=mentioned or {}, terms=terms,
            form=form, compensates=compensates,
        )  # fmt: skip

    def _form(self, actor: str, intent: Intent, terms: Terms) -> ClaimForm:
        """The form of this actor's claims under the policy in force; made anew where that has changed."""
        form = self._forms.get(actor)
        if form is None or form.policy != terms.digest:
            form = self._forms[actor] = ClaimForm(Order(intent=intent, action=self.action, terms=terms))
        return form

    def terms(self, value: float) -> Terms:
        """What the policy in force says of an operation of this action, with this value at risk."""
        if self.governance is None:
            return NO_POLICY
        return self.governance.terms(self.action, value, value_declared=self.declares_value)

    @property
    def declares_value(self) -> bool:
        """Whether the action says what is at risk; without it every operation counts as one."""
        return self._value is not None

    def key_of(self, print_: str, scopes: Mapping[str, str], given: str | int | None) -> str:
        """The key of one occurrence as it was named, or derived within the declared scope."""
        action = self.action
        if given is not None:
            return _checked_key(given)
        if self._key is not None:
            return _checked_key(self._key)
        if action.occurrence is None or action.siblings is Siblings.INDEPENDENT:
            raise NotDeclared(
                action.name,
                missing="key and no occurrence",
                why="without one, a repeated call cannot be told from a second, intended one; declare "
                "key=lambda ...: the business id, or occurrence='run' | 'conversation' | 'day' | 'once'",
            )
        if action.occurrence is Occurrence.ONCE:
            return f"once:{print_}"
        scope = scopes.get(action.occurrence.value)
        if not scope:
            raise NotDeclared(
                action.name,
                missing=f"{action.occurrence.value} to derive its key within",
                why=f"open the ledger with {action.occurrence.value}=..., or use ledger.within(...)",
            )
        return f"{action.occurrence.value}:{scope}:{print_}"

    def bound(self, payload: Any) -> Any:
        """The payload as a call of the guarded function makes it, defaults and all; as it is for an API.

        Raises:
            PayloadRefused: the function could not be called with it.
        """
        if self.binder is None:
            return payload
        if not isinstance(payload, dict):
            raise PayloadRefused("", f"is no object, and {self.action.name!r} takes named arguments")
        try:
            return self.binder.bind((), payload)
        except TypeError as error:
            raise PayloadRefused("", f"does not fit {self.action.name!r}: {error}") from None

    def check_sendable(self, order: Order) -> None:
        """Refuse, before anything is claimed, what the provider could never send as it stands."""
        self.provider.check(
            SendOrder(
                account=order.intent.account,
                destination=order.intent.destination,
                payload=order.intent.payload,
                provider_key=_KEY_SHAPE,
                deadline_seconds=order.action.send_seconds,
            )
        )

    def _compensating(self, material: bytes, compensates: str) -> str:
        """The fingerprint of an intent that undoes an operation; what it does is the same effect as without."""
        if row_number(str(compensates)) is None:
            raise BadValue("compensates", compensates, wanted="the id of the operation that is undone")
        return canonical.fingerprint(print_of(self._print_prefix, material, compensates), key=self._fingerprint_key)

    def _effect(self, frozen: bytes, print_: str, key: str) -> str:
        action = self.action
        parts = [print_]
        if action.effect_pointers:
            payload = canonical.parse(frozen)
            found = [pointer.get(payload, pointer.parse(p)) for p in action.effect_pointers]
            missing = [p for p, v in zip(action.effect_pointers, found, strict=True) if v is pointer.MISSING]
            if missing:
                raise PayloadRefused(missing[0], "is missing, and the action's effect identity needs it")
            parts = [self._part(canonical.canonical(v)) for v in found]
        if action.siblings is Siblings.INDEPENDENT:
            parts.append(key)
        return self._effect_of(parts)

    def _part(self, value: bytes) -> str:
        """One value of an effect identity; under the deployment's key nobody finds it by trying, as with the print."""
        key = self._fingerprint_key
        return value.decode() if key is None else canonical.fingerprint(value, key=key)

    def _value_of(self, payload: Any) -> float:
        assert self._value is not None  # noqa: S101 - only called where it is declared
        found = self._value(**payload)
        if type(found) is float and 0.0 <= found < float("inf"):
            return found
        return _amount(found)


def _lent(payload: Any) -> Any:
    """The payload for a declared callable, which may change what it is given: never what was frozen, or is sent."""
    try:
        return copy.deepcopy(payload)
    except (TypeError, RecursionError):
        return canonical.parse(canonical.canonical(payload))


def _amount(found: object) -> float:
    """A value at risk as it is compared with the amounts of a policy: exactly, or not at all.

    Raises:
        BadValue: it is no number, is negative or not finite, or has more digits than can be compared.
    """
    number = Decimal(found) if isinstance(found, int | Decimal) and type(found) is not bool else Decimal("NaN")
    if not number.is_finite() or number < 0:
        raise BadValue("value", found, wanted="the value at risk is a finite number that is not negative")
    held = float(number)
    exact = held < float("inf") and (int(held) == number if isinstance(found, int) else Decimal(repr(held)) == number)
    if not exact:
        raise BadValue("value", found, wanted="a value at risk of at most 15 digits, which amounts are compared by")
    return held


def _check_mentioned(mentioned: object) -> None:
    try:
        fits = isinstance(mentioned, dict) and len(canonical.canonical(mentioned)) <= MENTIONED_BYTES_MAX
    except NotCanonical as error:
        raise PayloadRefused("/mentioned" + error.pointer, error.problem) from None
    if not fits:
        raise BadValue("mentioned", "", wanted=f"names and texts of at most {MENTIONED_BYTES_MAX} bytes together")


def _checked_key(named: object) -> str:
    if not isinstance(named, str | int) or isinstance(named, bool):
        raise BadValue("key", named, wanted="a key is text or an integer")
    text = str(named)
    if not text or len(text) > KEY_CHARS_MAX or not text.isprintable():
        raise BadValue("key", named, wanted=f"a key is 1 to {KEY_CHARS_MAX} printable characters")
    return text


def code_digest(function: Callable[..., Any]) -> str:
    """Name a callable's own code, so that a changed one asks for a new approval; empty where there is none.

    Every function along a chain of wrappers is in it, the outermost first. What is not seen: the values of closures,
    globals and instances, which may be secrets, and whatever the functions call.
    """
    codes = [_code_bytes(code) for code in _codes(function)]
    return "fn1:" + hashlib.sha256(b"\x01".join(codes)).hexdigest()[:40] if codes else ""


def _codes(function: Any) -> Iterator[types.CodeType]:
    """The code of a callable, and of each one that it wraps."""
    seen: set[int] = set()
    while function is not None and id(function) not in seen:
        seen.add(id(function))
        if isinstance(function, functools.partial):
            function = function.func
            continue
        code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
        if isinstance(code, types.CodeType):
            yield code
        function = getattr(function, "__wrapped__", None)


def _code_bytes(code: types.CodeType) -> bytes:
    """Bytecode, names and constants, nested functions included; not line numbers or file names."""
    parts = [code.co_code, repr(code.co_names).encode()]
    parts += [_code_bytes(c) if isinstance(c, types.CodeType) else _constant(c) for c in code.co_consts]
    return b"\x00".join(parts)


def _constant(value: object) -> bytes:
    # A set literal's order differs per process (string hashing); its sorted members do not.
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value).encode()
