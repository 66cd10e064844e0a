r"""The canonical form `cf1`: one spelling for each value, so that equal prints mean equal values.

The form is JSON text in UTF-8: keys sorted by code point, no white space, nothing escaped but `"`, `\` and the control
characters, integers exact, floats with their point in Python's shortest round-trip spelling. What JSON lacks is an
object with one key that starts with "$"; a "$" that starts a key of the caller's own is doubled::

    Decimal         {"$decimal":"1.50"}      bytes      {"$bytes":"aGk="}
    aware datetime  {"$datetime":"…+00:00"}  UUID       {"$uuid":"…"}
    date            {"$date":"2024-02-29"}   SecretRef  {"$secret":"name"}

Judged equal, and so sent as the same bytes: a tuple and the list of its items; a subclass of a built-in and the plain
value; an enum member and its value; one instant in two time zones; a model, dataclass or Struct and the dict of its
fields under the names they are sent by, defaults included. Text is never normalised and never read as JSON.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import time, timedelta
from enum import Enum
from typing import Any, Final, Literal, cast

import msgspec

from counterfoil.domain import pointer
from counterfoil.domain.jsontext import loads
from counterfoil.domain.spelling import (
    DEPTH_MAX,
    INT_BITS_MAX,
    PAYLOAD_BYTES_MAX,
    Flaw,
    NotCanonical,
    SecretRef,
    literal,
    quoted,
    tagged,
    untagged,
    utf8,
)

__all__ = [
    "DEPTH_MAX",
    "INT_BITS_MAX",
    "PAYLOAD_BYTES_MAX",
    "Floats",
    "NotCanonical",
    "SecretRef",
    "canonical",
    "fingerprint",
    "loads",
    "parse",
    "reference",
    "select",
]

_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1

_ENCODER: Final = msgspec.json.Encoder(order="sorted")

_SCALARS: Final = frozenset({str, int, bool, type(None)})
_TEXT: Final = frozenset({str})

_ADVICE: Final[dict[type, str]] = {
    set: "is a set, which has no order; pass a sorted list",
    frozenset: "is a set, which has no order; pass a sorted list",
    time: "is a time of day, which names no moment; pass an aware datetime, or text",
    timedelta: "is a duration; pass a number, with its unit in the key",
    bytearray: "is a bytearray, which can change; pass bytes",
}

Floats = Literal["keep", "refuse"]


def canonical(value: object, *, floats: Floats = "keep") -> bytes:
    """Return the `cf1` form of a value: the same bytes for equal values in every process, other bytes for all others.

    Args:
        value: what will be sent; the module names the types.
        floats: `"refuse"` where money stands.

    Raises:
        NotCanonical: NaN or infinity, a set, a lone surrogate, a naive datetime, a key that is not text, an unknown
            type, a secret in the clear, over `INT_BITS_MAX`, `DEPTH_MAX` or `PAYLOAD_BYTES_MAX`.
    """
    if type(value) is dict and _SCALARS.issuperset(map(type, value.values())) and _TEXT.issuperset(map(type, value)):
        quick = _encoded(value)  # a flat object of plain scalars, as most payloads are: there is nothing to walk
    else:
        quick = _quick(value)
    return reference(value, floats=floats) if quick is None else quick


def reference(value: object, *, floats: Floats = "keep") -> bytes:
    """Return the `cf1` form by its definition, in plain Python; `canonical` is this, faster for an ordinary payload."""
    writer = _Writer(floats)
    try:
        writer.write(value, DEPTH_MAX)
    except Flaw as flaw:
        refusal = flaw.at(writer.path)
    else:
        return "".join(writer.parts).encode("utf-8")
    raise refusal


def parse(text: bytes) -> object:
    """Return the value of a `cf1` form: for what `canonical` wrote, `canonical(parse(text)) == text`.

    Raises:
        NotCanonical: the text is not JSON, or holds a tag or a spelling of one that `canonical` does not write.
    """
    path: list[str] = []
    try:
        value = msgspec.json.decode(text)
        # No tag and no doubled "$" without these two bytes, and most payloads have neither.
        return _revived(value, path) if b'"$' in text else value
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        refusal = NotCanonical("", "is not canonical JSON")
    except Flaw as flaw:
        refusal = flaw.at(path)
    raise refusal


def fingerprint(text: bytes, *, key: bytes | None = None) -> str:
    """Return the print of a canonical form: `cf1:` and SHA-256, or `cf1h:` and HMAC-SHA-256 with the deployment's key.

    Without a key whoever sees the print of a guessable value, a four-digit PIN, can find the value by trying.

    Raises:
        ValueError: the key is empty, which would look keyed and protect nothing.
    """
    if key is None:
        return "cf1:" + hashlib.sha256(text).hexdigest()
    if not key:
        raise ValueError("the deployment key is empty")
    import hmac

    return "cf1h:" + hmac.digest(key, text, "sha256").hex()


def select(value: object, *, material: tuple[str, ...] = (), immaterial: tuple[str, ...] = ()) -> object:
    """Return what is compared of a value: what stands at the material pointers, or all but the immaterial.

    Pointers name fields as they are sent: a model or dataclass on the way is taken for the dict of its fields.

    Args:
        value: whatever has a canonical form.
        material: allow list; what is missing stays missing in the result, which maps pointer to value.
        immaterial: what is left out.

    Raises:
        NotCanonical: the value has no canonical form.
        ValueError: both are given.
        BadPointer: one is no JSON pointer, or an immaterial one is the whole value.
    """
    if material and immaterial:
        raise ValueError("an action declares material or immaterial pointers, not both")
    if not material and not immaterial:
        return value
    value = _plain(value)
    if material:
        found = {text: pointer.get(value, pointer.parse(text)) for text in material}
        return {text: item for text, item in found.items() if item is not pointer.MISSING}
    return pointer.without_all(value, map(pointer.parse, immaterial))


def _plain(value: object) -> object:
    """Return the value in dicts, lists and scalars, of which every pointer knows the inside."""
    if (type(value) is dict or type(value) is list) and _room_left(value, PAYLOAD_BYTES_MAX, DEPTH_MAX) >= 0:
        return value
    return parse(canonical(value))


def _quick(value: object) -> bytes | None:
    """Return the form of a JSON object or array without floats, else leave it to `reference`."""
    if type(value) is not dict and type(value) is not list:
        return None
    return _encoded(value) if _room_left(value, PAYLOAD_BYTES_MAX, DEPTH_MAX) >= 0 else None


def _encoded(value: dict[Any, Any] | list[Any]) -> bytes | None:
    """Return the form of what was looked over, else leave it to `reference`."""
    try:
        text = _ENCODER.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return None
    # A key that starts with "$" needs its escape. A quote within text has a backslash before it, never "{" or ",".
    if len(text) > PAYLOAD_BYTES_MAX or b'{"$' in text or b',"$' in text:
        return None
    return text


def _room_left(value: dict[Any, Any] | list[Any], room: int, depth: int) -> int:  # noqa: C901
    """Return how many of `room` characters the value leaves, or less than 0 where `reference` must judge.

    One loop that calls nothing, as every payload pays for it. By exact type: a subclass may be spelled otherwise. The
    room ends a value that holds itself many times over before its text outgrows the memory.
    """
    room -= len(value)
    if depth == 0:
        return -1
    items: Iterable[Any] = value
    if type(value) is dict:
        for key in value:
            if type(key) is not str:
                return -1
            room -= len(key)
        items = value.values()
    for item in items:
        kind = type(item)
        if kind is str:
            room -= len(item)
        elif kind is int:
            if not _INT64_MIN <= item <= _INT64_MAX:
                return -1
        elif kind is dict or kind is list:
            room = _room_left(item, room, depth - 1)
            if room < 0:
                return -1
        elif kind is not bool and item is not None:
            return -1
    return room


class _Writer:
    """One value being written; after a flaw, `path` is where it is."""

    def __init__(self, floats: Floats) -> None:
        self.floats = floats
        self.path: list[str] = []
        self.parts: list[str] = []
        self.room = PAYLOAD_BYTES_MAX

    def emit(self, text: str) -> None:
        # ASCII is its own UTF-8; of anything else it shows here, while the path is known, whether it has one.
        self.room -= len(text) if text.isascii() else len(utf8(text))
        if self.room < 0:
            self.path.clear()
            raise Flaw(f"is longer than {PAYLOAD_BYTES_MAX} bytes")
        self.parts.append(text)

    def write(self, value: object, depth: int) -> None:
        if hasattr(type(value), "get_secret_value"):
            raise Flaw("is a secret in the clear; pass a reference to a declared secret")
        if self.floats == "refuse" and isinstance(value, float):
            raise Flaw("is a float, which this action refuses; pass minor units as an integer, or a Decimal")
        if (text := literal(value)) is not None:
            self.emit(text)
        elif (pair := tagged(value)) is not None:
            self.emit(f'{{"{pair[0]}":{quoted(pair[1])}}}')
        elif isinstance(value, dict):
            self.members(dict.items(value), depth)
        elif isinstance(value, list | tuple):
            self.items(value, depth)
        elif isinstance(value, Enum):
            self.write(value.value, depth)
        elif (members := _fields(value)) is not None:
            self.members(members, depth)
        elif hasattr(type(value), "model_dump"):
            self.model(value, depth)
        else:
            unknown = f"is of type {type(value).__qualname__}, which has no canonical form"
            raise Flaw(_ADVICE.get(type(value), unknown))

    def items(self, items: Iterable[object], depth: int) -> None:
        if depth == 0:
            raise Flaw(f"is nested deeper than {DEPTH_MAX}")
        self.emit("[")
        for index, item in enumerate(items):
            self.path.append(str(index))
            self.emit("," if index else "")
            self.write(item, depth - 1)
            self.path.pop()
        self.emit("]")

    def members(self, members: Iterable[tuple[object, object]], depth: int) -> None:
        if depth == 0:
            raise Flaw(f"is nested deeper than {DEPTH_MAX}")
        named = _named(members)
        self.emit("{")
        for index, (name, item) in enumerate(sorted(named.items(), key=lambda member: member[0])):
            self.path.append(name)
            escaped = "$" + name if name.startswith("$") else name
            self.emit(("," if index else "") + quoted(escaped) + ":")
            self.write(item, depth - 1)
            self.path.pop()
        self.emit("}")

    def model(self, value: object, depth: int) -> None:
        """Write a pydantic model, known by its method; its warnings are off because they quote the values."""
        dumped = cast("Any", value).model_dump(mode="python", by_alias=True, warnings=False)
        if type(dumped) is type(value):
            raise Flaw(f"is of type {type(value).__qualname__}, whose model_dump gives no plain value")
        self.write(dumped, depth)


def _named(members: Iterable[tuple[object, object]]) -> dict[str, object]:
    """Return the members by the plain text of their keys."""
    named: dict[str, object] = {}
    for key, item in members:
        if not isinstance(key, str):
            raise Flaw(f"has a key of type {type(key).__qualname__}; a key is text")
        name = str.__str__(key)
        if name in named:
            raise Flaw("has two keys with the same text", name)
        named[name] = item
    return named


def _fields(value: object) -> Iterable[tuple[str, object]] | None:
    """Return the fields of a Struct or a dataclass under the names they are sent by; unset is missing, not null."""
    if isinstance(value, msgspec.Struct):
        return _struct_fields(value)
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses

        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(cast("Any", value))]
    return None


def _struct_fields(value: msgspec.Struct) -> Iterator[tuple[str, object]]:
    config = value.__struct_config__
    if config.tag is not None:
        # Without it two members of a tagged union with equal fields would have one spelling.
        yield config.tag_field or "type", config.tag
    for name, sent_as in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        item = getattr(value, name)
        if item is not msgspec.UNSET:
            yield sent_as, item


def _revived(value: object, path: list[str]) -> object:
    """Return the value with its tags read and its doubled "$" single again."""
    if isinstance(value, list):
        return [_revived_at(str(index), item, path) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, text),) = value.items()
        if tag.startswith("$") and not tag.startswith("$$"):
            if not isinstance(text, str):
                raise Flaw("holds a tag with the wrong text")
            return untagged(tag, text)
    return {_unescaped(name): _revived_at(name, item, path) for name, item in value.items()}


def _revived_at(token: str, value: object, path: list[str]) -> object:
    path.append(token)
    revived = _revived(value, path)
    path.pop()
    return revived


def _unescaped(name: str) -> str:
    if not name.startswith("$"):
        return name
    if not name.startswith("$$"):
        raise Flaw("holds an unknown tag")
    return name[1:]
