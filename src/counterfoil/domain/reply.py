"""What can be read off a reply without judging it: headers, status classes, places, results."""

from __future__ import annotations

from counterfoil.domain import body
from counterfoil.domain.answer import Replied
from counterfoil.domain.canonical import NotCanonical, canonical
from counterfoil.domain.payload import RESULT_BYTES_MAX
from counterfoil.domain.pointer import MISSING

RETRY_AFTER_SECONDS_MAX = 24 * 3600.0
"""A provider that asks for more than a day is not scheduled but escalated."""
EXTERNAL_ID_CHARS_MAX = 512
"""Long enough for any URL a provider names its object by."""


def header(reply: Replied, name: str) -> str:
    """The one value of that header; empty when there is none or more than one."""
    values = [value for key, value in reply.headers if key == name]
    return values[0] if len(values) == 1 else ""


def matches(status: int, patterns: tuple[str, ...]) -> bool:
    """The status is listed, by itself or by its class (`2xx`)."""
    return str(status) in patterns or f"{status // 100}xx" in patterns


def name_at(reply: Replied, document: object, place: str) -> str:
    """The provider's name for something, at a header or a pointer; empty when there is none."""
    if place.startswith("header:"):
        return header(reply, place.removeprefix("header:"))[:EXTERNAL_ID_CHARS_MAX]
    if not place:
        return ""
    found = body.at(document, place)
    if isinstance(found, bool) or not isinstance(found, str | int):
        return ""
    return str(found)[:EXTERNAL_ID_CHARS_MAX]


def retry_after_seconds(reply: Replied) -> float | None:
    """How long the provider asks to wait (RFC 9110 10.2.3); a date counts from the reply's own Date."""
    from email.utils import parsedate_to_datetime  # its imports cost more than most answers need

    text = header(reply, "retry-after").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), RETRY_AFTER_SECONDS_MAX)
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(header(reply, "date"))
    except (ValueError, TypeError):  # one of them is no date, or only one of them names its zone
        return None
    return min(max(wait.total_seconds(), 0.0), RETRY_AFTER_SECONDS_MAX)


def result_of(pointers: dict[str, str], document: object) -> object:
    """What a replay returns: the declared pointers' values, or the document itself; None when it is too large."""
    picked = document
    if pointers:
        found = {name: body.at(document, where) for name, where in pointers.items()}
        picked = {name: None if value is MISSING else value for name, value in found.items()}
    try:
        return picked if len(canonical(picked)) <= RESULT_BYTES_MAX else None
    except NotCanonical:
        return None
