"""Bodies: what may be erased without breaking a chain, and the salted digests that stay."""

from __future__ import annotations

import hashlib

import msgspec

from counterfoil.domain.event import EventKind, History, removal_said
from counterfoil.domain.record import RECORDS, digest_of

ERASED = "its payload was erased"
SALT_BYTES = 16
"""The salt stands in the body: once that is erased the digest left behind cannot be guessed at."""
RESULT_BYTES_MAX = 64 * 1024
"""What a replay may return."""


def seal(salt: bytes, content: bytes) -> bytes:
    """Put salt and content into one body."""
    return salt + content


def content(body: bytes) -> bytes:
    """The content of a body."""
    return body[SALT_BYTES:]


def salted_digest(body: bytes) -> str:
    """The digest the hashed record keeps of a body."""
    return "sd1:" + hashlib.sha256(body).hexdigest()


def frozen_body(history: History) -> bytes | None:
    """Salt and payload as first proposed; None once they were erased."""
    for event in history.events:
        if event.kind in (EventKind.BEGUN, EventKind.HELD, EventKind.PROPOSED) and event.body is not None:
            return event.body
    return None


def frozen_payload(history: History) -> bytes | None:
    """The payload as first proposed: what was approved is what is sent. None once it was erased."""
    body = frozen_body(history)
    return None if body is None else content(body)


def gone_said(history: History) -> tuple[str, ...]:
    """Why there is nothing of an operation to send any more, in a fixed sentence; empty while there is."""
    return removal_said(history.events) or ((ERASED,) if frozen_body(history) is None else ())


def is_intact(history: History) -> bool:
    """Whether the frozen payload is the one whose digest is on record; one that was erased is not another one."""
    for event in history.events:
        if event.kind in (EventKind.BEGUN, EventKind.HELD, EventKind.PROPOSED) and event.body is not None:
            record = msgspec.json.decode(event.record, type=RECORDS[event.kind])
            return salted_digest(event.body) == digest_of(event, record)
    return True
