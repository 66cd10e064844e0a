"""From a Python call to the payload that is frozen, and back.

A call is bound before it is compared: an argument left to its default and the same one written out, or one given by
position and one by keyword, are the same payload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    # Only whoever has a signature has paid for inspect.
    from inspect import Signature

_T = TypeVar("_T")

_BY_POSITION: Final = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")
_BY_KEYWORD: Final = ("POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY")


class Binder:
    """What every call of one function needs of its signature, worked out once; safe to share between threads."""

    __slots__ = (
        *("_all_by_position", "_by_keyword", "_by_position", "_defaults", "_keyword_only"),
        *("_names", "_signature", "_star", "_stars"),
    )  # fmt: skip

    def __init__(self, signature: Signature) -> None:
        kinds = {name: parameter.kind.name for name, parameter in signature.parameters.items()}
        self._signature = signature
        self._names = frozenset(kinds)
        self._by_position = tuple(name for name, kind in kinds.items() if kind in _BY_POSITION)
        self._all_by_position = len(kinds) if len(kinds) == len(self._by_position) else -1
        """How many arguments by position are all there are; -1 where not all parameters have a position."""
        self._by_keyword = frozenset(name for name, kind in kinds.items() if kind in _BY_KEYWORD)
        self._keyword_only = tuple(name for name, kind in kinds.items() if kind == "KEYWORD_ONLY")
        self._star = next((name for name, kind in kinds.items() if kind == "VAR_POSITIONAL"), None)
        self._stars = next((name for name, kind in kinds.items() if kind == "VAR_KEYWORD"), None)
        self._defaults = {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.default is not parameter.empty
        }

    @property
    def defaults(self) -> Mapping[str, object]:
        """The defaults by name: the function's own objects."""
        return self._defaults

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return every parameter by name with its argument or its default; `*args` is a list and `**kwargs` a dict.

        Raises:
            TypeError: the function could not be called like this.
        """
        if len(args) == self._all_by_position and not kwargs:  # the ordinary call: nothing to merge
            return dict(zip(self._by_position, args, strict=False))
        if len(args) <= len(self._by_position) and self._by_keyword.issuperset(kwargs):
            given = dict(zip(self._by_position, args, strict=False))
            payload = {**self._defaults, **given, **kwargs}
            # As many entries as parameters: none is missing. No name twice, or the function would refuse the call.
            if len(payload) == len(self._names) and (not given or given.keys().isdisjoint(kwargs)):
                return payload
        return self._bound(args, kwargs)

    def _bound(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Bind the call that has `*args` or `**kwargs`, or that Python refuses, in Python's own way."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        payload: dict[str, object] = dict(bound.arguments)
        if self._star is not None:
            payload[self._star] = list(bound.arguments[self._star])
        # Python 3.13.0 leaves out a positional-only parameter whose name went to **kwargs, where the call itself fails.
        if payload.keys() != self._names:
            raise TypeError(f"missing a required argument: {min(self._names - payload.keys())!r}")
        return payload

    def unbind(self, payload: Mapping[str, object]) -> tuple[list[object], dict[str, object]]:
        """Return the positional and keyword arguments that pass this payload, and nothing else, to the function.

        Raises:
            TypeError: the payload was frozen for another signature; a default of today was never approved.
        """
        if payload.keys() != self._names:
            raise TypeError(
                f"the payload and the signature differ in {', '.join(sorted(payload.keys() ^ self._names))}"
            )
        args = [payload[name] for name in self._by_position]
        kwargs = {name: payload[name] for name in self._keyword_only}
        if self._star is not None:
            args += _held(payload[self._star], list, self._star)
        if self._stars is not None:
            kwargs |= _held(payload[self._stars], dict, self._stars)
        return args, kwargs


def bind(signature: Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Bind one call; whoever binds many keeps a `Binder`."""
    return Binder(signature).bind(args, kwargs)


def unbind(signature: Signature, payload: Mapping[str, object]) -> tuple[list[object], dict[str, object]]:
    """Turn one payload back into a call; whoever does it often keeps a `Binder`."""
    return Binder(signature).unbind(payload)


def _held(value: object, kind: type[_T], name: str) -> _T:
    if not isinstance(value, kind):
        raise TypeError(f"the payload has no {kind.__name__} under {name}")
    return value
