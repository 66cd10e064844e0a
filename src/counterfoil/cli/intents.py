"""A file of intents: one JSON object a line; a broken line is named and the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import msgspec

from counterfoil.domain.canonical import PAYLOAD_BYTES_MAX, NotCanonical, loads
from counterfoil.domain.errors import BadValue, PayloadRefused

LINE_BYTES_MAX = PAYLOAD_BYTES_MAX
"""A whole line: what frames a payload is small beside it."""
MENTIONED_MAX = 16
"""Names that a model or a framework gave to one call."""
_COUNT_BYTES = 1 << 20

FIELDS = frozenset({"action", "key", "payload", "mentioned", "compensates"})


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One intent as it stands in the file."""

    number: int
    """From 1."""
    action: str
    payload: object
    key: str | int | None = None
    mentioned: dict[str, str] = {}
    compensates: str = ""


class BrokenLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is no intent; nothing is sent for it."""

    number: int
    problem: str
    code: str = BadValue.code


class _Wrong(Exception):
    """Why a line is no intent."""


def lines(file: IO[bytes]) -> Iterator[Line | BrokenLine]:
    """Read a file line by line; empty lines are skipped and no line stops the ones after it."""
    number = 0
    while text := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(text) > LINE_BYTES_MAX:
            _skip_rest(file, text)
            yield BrokenLine(number=number, problem=f"is longer than {LINE_BYTES_MAX} bytes")
        elif text.strip():
            yield read(number, text)


def read(number: int, text: bytes) -> Line | BrokenLine:
    """Read one line."""
    try:
        return _intent(number, loads(text.strip()))
    except NotCanonical as error:
        return BrokenLine(number=number, problem=str(error), code=PayloadRefused.code)
    except _Wrong as error:
        return BrokenLine(number=number, problem=str(error))


def count(file: IO[bytes]) -> int:
    """Count the lines of a file and go back to its beginning; it must be a file that can."""
    found, last = 0, b"\n"
    while block := file.read(_COUNT_BYTES):
        found += block.count(b"\n")
        last = block[-1:]
    file.seek(0)
    return found + (last != b"\n")


def _intent(number: int, found: object) -> Line:
    if not isinstance(found, dict):
        raise _Wrong('is not a JSON object such as {"action": ..., "key": ..., "payload": ...}')
    unknown = sorted(set(found) - FIELDS)
    if unknown:
        raise _Wrong(f"has an unknown field {unknown[0]!r}; there are: action, key, payload, mentioned, compensates")
    for name in ("action", "payload"):
        if name not in found:
            raise _Wrong(f"has no {name!r}")
    action, key = found["action"], found.get("key")
    if not isinstance(action, str) or not action:
        raise _Wrong("'action' is not the name of an action")
    if "key" in found and (isinstance(key, bool) or not isinstance(key, str | int) or key == ""):
        raise _Wrong("'key' is not text or an integer")
    mentioned = _mentioned(found.get("mentioned", {}))
    compensates = found.get("compensates", "")
    if not isinstance(compensates, str) or ("compensates" in found and not compensates):
        raise _Wrong("'compensates' is not the id of an operation")
    return Line(
        number=number, action=action, key=key, payload=found["payload"], mentioned=mentioned, compensates=compensates
    )


def _mentioned(found: object) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise _Wrong("'mentioned' is not an object of texts")
    if len(found) > MENTIONED_MAX:
        raise _Wrong(f"'mentioned' has more than {MENTIONED_MAX} members")
    return found


def _skip_rest(file: IO[bytes], text: bytes) -> None:
    """Read on to the end of a line that is too long, without keeping it."""
    while text and not text.endswith(b"\n"):
        text = file.readline(LINE_BYTES_MAX + 1)
