"""Any callable as a provider: what it raises after its start is unknown, unless it says what it knows."""

from __future__ import annotations

import contextvars
import re
import types
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from counterfoil.domain import canonical
from counterfoil.domain.answer import Answer, Refused, Replied, Returned, Silent
from counterfoil.domain.binding import Binder
from counterfoil.domain.canonical import NotCanonical
from counterfoil.domain.errors import NotSent, NotSettled, Rejected
from counterfoil.ports.provider import Flight, LookOrder, SendOrder

_provider_key: contextvars.ContextVar[str] = contextvars.ContextVar("counterfoil_provider_key")
_NOT_WORD = re.compile(r"[^a-z0-9_]+")
_JSON_SCALARS = frozenset({str, int, bool, type(None)})


def provider_key() -> str:
    """The key that every attempt of the running operation carries: pass it to the provider.

    Raises:
        LookupError: no guarded function is running here.
    """
    try:
        return _provider_key.get()
    except LookupError:
        raise LookupError("provider_key() means something only inside a guarded function") from None


_UNBINDABLE = Silent(may_have_left=False, reason="signature_changed")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a function's own look is asked."""

    provider_key: str
    account: str
    payload: Any
    external_id: str
    control: str
    negative: str


class FunctionProvider:
    """Carries out a plain or async callable.

    Args:
        function: what performs the effect.
        binder: how payloads become its arguments.
        look: reads whether the effect took place; returns the JSON document the contract's look reads, or None.
    """

    def __init__(
        self, function: Callable[..., Any], binder: Binder, look: Callable[[Question], Any] | None = None
    ) -> None:
        self._function = function
        self._binder = binder
        self._look = look

    def check(self, order: SendOrder) -> None:
        """Nothing can be known of a function before it runs."""

    def form(self, order: SendOrder) -> bytes:
        """What the function is called with; what it writes is its own code's, and that is bound by its digest."""
        return order.payload

    def send(self, order: SendOrder, flight: Flight, arguments: Any = None) -> Answer:
        """Call it once; every exception it raises is a value."""
        called = arguments or self._arguments(order)
        if called is None:
            return _UNBINDABLE
        args, kwargs = called
        token = _provider_key.set(order.provider_key)
        flight.may_have_left = True
        try:
            value = self._function(*args, **kwargs)
            return _returned(value, flight) if type(value) not in _PROMISES else _promised(value, flight)
        except Exception as error:  # noqa: BLE001 - silence becomes unknown, and nothing else
            return _raised(error, flight)
        finally:
            _provider_key.reset(token)

    async def asend(self, order: SendOrder, flight: Flight, arguments: Any = None) -> Answer:
        """Await it once; every exception it raises is a value, cancellation is not one."""
        called = arguments or self._arguments(order)
        if called is None:
            return _UNBINDABLE
        args, kwargs = called
        token = _provider_key.set(order.provider_key)
        flight.may_have_left = True
        try:
            made: Awaitable[Any] = self._function(*args, **kwargs)
            value = await made
            return _returned(value, flight) if type(value) not in _PROMISES else _promised(value, flight)
        except Exception as error:  # noqa: BLE001 - silence becomes unknown, and nothing else
            return _raised(error, flight)
        finally:
            _provider_key.reset(token)

    def look(self, order: LookOrder) -> tuple[Answer, ...]:
        """Ask the action's own look; an exception is an inconclusive look."""
        if self._look is None:
            return (Silent(may_have_left=False, reason="no_look"),)
        names = order.names
        question = Question(
            provider_key=names.provider_key, account=order.account, payload=canonical.parse(order.payload),
            external_id=names.external_id, control=names.control, negative=names.negative,
        )  # fmt: skip
        try:
            found = self._look(question)
        except Exception as error:  # noqa: BLE001 - a look that fails is inconclusive
            return (Silent(may_have_left=False, reason=f"look_{_word(error)}"),)
        if found is None:
            return (Replied(status=404),)
        try:
            return (Replied(status=200, body=canonical.canonical(found)),)
        except NotCanonical:
            return (Silent(may_have_left=False, reason="look_not_json"),)

    def _arguments(self, order: SendOrder) -> tuple[Sequence[Any], dict[str, Any]] | None:
        """The arguments of the frozen payload; None where today's signature does not take them."""
        payload = canonical.parse(order.payload)
        if not isinstance(payload, dict):
            return None
        try:
            return self._binder.unbind(payload)
        except TypeError:
            return None


_PROMISES = frozenset({types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType})


def _promised(value: Any, flight: Flight) -> Silent:
    """A body that has not run yet came back: nobody will run it, and what ran before it is not known."""
    if not isinstance(value, types.AsyncGeneratorType):
        value.close()
    if hasattr(flight, "error"):
        flight.error = TypeError("the guarded callable returned what has not run yet: guard an `async def` itself")
    return Silent(may_have_left=True, reason="returned_unrun")


def _returned(value: Any, flight: Flight) -> Returned:
    """The value as a replay will return it: first call and replay have the same type, where it can be kept."""
    if type(value) in _JSON_SCALARS:
        return Returned(value=value)
    try:
        text = canonical.canonical(value)
        # A dict of plain scalars is what its canonical form reads back: the ordinary result is not read again.
        flat = type(value) is dict and _JSON_SCALARS.issuperset(map(type, value.values()))
        return Returned(value=value if flat else canonical.parse(text), text=text)
    except NotCanonical:
        if hasattr(flight, "returned"):
            flight.returned = value
        return Returned(value=None, kept=False)


def _raised(error: Exception, flight: Flight) -> Answer:
    # One that carries a receipt was raised by another call's `expect()`: it says nothing of this function.
    own = isinstance(error, NotSettled) and error.receipt is None
    if own and hasattr(flight, "error"):
        flight.error = error  # its reason, for whoever called
    if own and isinstance(error, Rejected):
        return Refused(reason=_text(error.reason))
    if own and isinstance(error, NotSent):
        return Silent(may_have_left=False, reason="not_sent")
    if hasattr(flight, "error"):
        flight.error = error
    return Silent(may_have_left=True, reason=f"raised_{_word(error)}")


def _text(reason: object) -> str:
    """A reason that can be stored whatever it was made of."""
    return str(reason).encode("utf-8", "backslashreplace").decode()


def _word(error: BaseException) -> str:
    """An exception's class as a fixed word: its text may hold what must not be stored."""
    return _NOT_WORD.sub("_", type(error).__name__.lower())[:60]
