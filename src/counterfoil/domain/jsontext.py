"""JSON text from outside, read so that nothing in it is guessed, dropped or rounded unseen."""

from __future__ import annotations

from math import isinf
from typing import Any

from counterfoil.domain.spelling import DEPTH_MAX, INT_DIGITS_MAX, PAYLOAD_BYTES_MAX, Flaw, bounded, utf8


def loads(text: bytes | str) -> object:
    """Return the value of a JSON text; what RFC 8259 leaves to the reader's discretion is refused.

    Args:
        text: UTF-8, or text already decoded, of at most `PAYLOAD_BYTES_MAX`.

    Raises:
        NotCanonical: not UTF-8, not JSON, a key that stands twice, NaN, Infinity, a number too large, a lone surrogate,
            too long, or deeper than `DEPTH_MAX`.
    """
    path: list[str] = []
    try:
        value = _read(text)
        _survey(value, path, DEPTH_MAX)
    except Flaw as flaw:
        refusal = flaw.at(path)
    else:
        return value
    raise refusal


def _read(text: bytes | str) -> object:
    """Return the value with a `Flaw` where something is wrong: the JSON reader knows no path, `_survey` does."""
    import json

    if len(text) > PAYLOAD_BYTES_MAX:
        raise Flaw(f"is longer than {PAYLOAD_BYTES_MAX} bytes")
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(
            decoded,
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
            strict=True,
        )
    except UnicodeDecodeError as error:
        raise Flaw(f"is not UTF-8 (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise Flaw(f"is not JSON (line {error.lineno}, column {error.colno})") from error
    except RecursionError as error:
        raise Flaw(f"is nested deeper than {DEPTH_MAX}") from error


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Flaw:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    names = [name for name, _ in pairs]
    return Flaw("stands more than once", next(name for name in names if names.count(name) > 1))


def _integer(digits: str) -> int | Flaw:
    if len(digits) > INT_DIGITS_MAX:
        return Flaw(f"is an integer of more than {INT_DIGITS_MAX} digits")
    try:
        return bounded(int(digits))
    except Flaw as flaw:
        return flaw


def _float(digits: str) -> float | Flaw:
    number = float(digits)
    return Flaw("is too large for a float") if isinf(number) else number


def _constant(name: str) -> Flaw:
    return Flaw(f"is {name}, which is not JSON")


def _survey(value: object, path: list[str], depth: int) -> None:
    """Find the first flaw, with `path` left at it."""
    if isinstance(value, Flaw):
        raise value
    if isinstance(value, str):
        utf8(value)
    elif isinstance(value, dict | list):
        if depth == 0:
            raise Flaw(f"is nested deeper than {DEPTH_MAX}")
        for token, item in value.items() if isinstance(value, dict) else enumerate(value):
            path.append(str(token))
            utf8(path[-1])
            _survey(item, path, depth - 1)
            path.pop()
