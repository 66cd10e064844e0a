"""How one null, boolean, number, text or tagged scalar is spelled in the canonical form, and what has no spelling."""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Final
from uuid import UUID

import msgspec

from counterfoil.domain import pointer

DEPTH_MAX: Final = 64
"""Containers inside one another: more than any payload that a person can review. A cycle ends here, too."""

PAYLOAD_BYTES_MAX: Final = 1 << 20
"""As much as SQLite writes in one commit without stalling the other callers of the ledger."""

INT_BITS_MAX: Final = 2048
"""617 digits: under the 640 that every interpreter converts, whatever its int_max_str_digits says."""

INT_DIGITS_MAX: Final = 640
"""Longer text is not even converted."""

_POINTER_SHOWN_MAX: Final = 200
"""A key may be as long as the payload; a line in a log may not."""

_ESCAPES: Final = {code: f"\\u{code:04x}" for code in range(0x20)} | {
    ord(character): "\\" + letter for character, letter in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)
}

_SPECIAL: Final = re.compile(r'[\x00-\x1f"\\]')


class NotCanonical(ValueError):
    """The value has no canonical form at `pointer`, for the reason in `problem`; neither ever quotes a value."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(pointer, problem)
        self.pointer, self.problem = pointer, problem

    def __str__(self) -> str:
        if not self.pointer:
            return f"the whole value {self.problem}"
        shown = self.pointer[:_POINTER_SHOWN_MAX] + "…" * (len(self.pointer) > _POINTER_SHOWN_MAX)
        return f"the value at {shown} {self.problem}"


class Flaw(Exception):
    """What is wrong with the value being read or written; whoever keeps the path makes it a `NotCanonical`."""

    def __init__(self, problem: str, *tail: str) -> None:
        super().__init__(problem)
        self.problem, self.tail = problem, tail

    def at(self, path: list[str]) -> NotCanonical:
        """Say where it is. Raise the result outside the `except`: a chained codec error would carry the value along."""
        return NotCanonical(pointer.write([*path, *self.tail]), self.problem)


class SecretRef(msgspec.Struct, frozen=True):
    """The name of a secret, where its value will stand when it is sent; prints and stores only ever see the name."""

    name: str


def literal(value: object) -> str | None:
    """Return the JSON text of a null, boolean, number or string; the overridden methods of a subclass are not asked."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(str.__str__(value))
    if isinstance(value, int):
        return int.__repr__(bounded(value))
    if isinstance(value, float):
        if not isfinite(value):
            raise Flaw("is not a finite number")
        return float.__repr__(value)
    return None


def quoted(text: str) -> str:
    """Return the text as a JSON string with nothing escaped that need not be (RFC 8259, section 7)."""
    if _SPECIAL.search(text):
        text = text.translate(_ESCAPES)
    return '"' + text + '"'


def utf8(text: str) -> bytes:
    """Return the text in UTF-8, and refuse what has none: a lone surrogate is never replaced."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Flaw("holds a lone surrogate, which no text can carry") from error


def bounded(value: int) -> int:
    """Return the integer if its digits are the same in every interpreter."""
    if int.bit_length(value) > INT_BITS_MAX:
        raise Flaw(f"is an integer of more than {INT_BITS_MAX} bits")
    return value


def tagged(value: object) -> tuple[str, str] | None:
    """Return the tag and the text of a scalar that JSON lacks."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise Flaw("is not a finite number")
        # The caller's decimal context decides between "e" and "E"; a print may not depend on it.
        return "$decimal", Decimal.__str__(value).upper()
    if isinstance(value, bytes):
        return "$bytes", b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, UUID):
        return "$uuid", UUID.__str__(value)
    if isinstance(value, datetime):
        return "$datetime", _instant(value)
    if isinstance(value, date):
        return "$date", date.isoformat(value)
    if isinstance(value, SecretRef):
        return "$secret", value.name
    return None


def _instant(moment: datetime) -> str:
    """Return an aware moment in UTC, to the microsecond."""
    if moment.utcoffset() is None:
        raise Flaw("is a naive datetime; attach its time zone")
    # pandas keeps nanoseconds where isoformat does not look: two moments would have one spelling.
    if getattr(moment, "nanosecond", 0):
        raise Flaw("is finer than a microsecond")
    try:
        return datetime.isoformat(datetime.astimezone(moment, UTC))
    except OverflowError as error:
        raise Flaw("lies outside the years 1 to 9999 in UTC") from error


def untagged(tag: str, text: str) -> object:
    """Return the scalar that `tagged` gave this tag and text, and refuse every other spelling of it."""
    read = _READERS.get(tag)
    if read is None:
        raise Flaw("holds an unknown tag")
    try:
        value = read(text)
    except (ValueError, ArithmeticError) as error:
        raise Flaw("holds a tag with the wrong text") from error
    if tagged(value) != (tag, text):
        raise Flaw("holds a tag with the wrong text")
    return value


_READERS: Final[dict[str, Callable[[str], object]]] = {
    "$bytes": lambda text: a2b_base64(text, strict_mode=True),
    "$date": date.fromisoformat,
    "$datetime": datetime.fromisoformat,
    "$decimal": Decimal,
    "$secret": SecretRef,
    "$uuid": UUID,
}
