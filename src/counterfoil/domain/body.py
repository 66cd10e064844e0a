"""Bodies of answers: JSON read strictly, because a document that can be read two ways proves nothing."""

from __future__ import annotations

import json

import msgspec

from counterfoil.domain import pointer
from counterfoil.domain.jsontext import loads
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.spelling import NotCanonical


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """A document, or the fixed word that says why there is none."""

    ok: bool
    value: object = None
    reason: str = ""


def parse(content: bytes) -> Parsed:
    """Read one complete JSON text; what RFC 8259 leaves to the reader's discretion is no document."""
    if not content.strip():
        return Parsed(ok=False, reason="empty_body")
    try:
        return Parsed(ok=True, value=loads(content))
    except NotCanonical:
        return Parsed(ok=False, reason="not_json")


def encode(value: object) -> bytes:
    """Write JSON with sorted keys and no spaces: equal documents are equal bytes.

    Raises:
        TypeError: it holds a value that JSON has no form for.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def same(left: object, right: object) -> bool:
    """Equal in value and in type, all the way down: `1`, `1.0`, `true` and `"1"` are four values."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return left == right


def at(document: object, where: str) -> object:
    """What stands at a JSON pointer; MISSING where nothing does, or where the text is no pointer."""
    try:
        return pointer.get(document, pointer.parse(where))
    except pointer.BadPointer:
        return MISSING
