"""What each kind of event records, and the digest by which a record names its body."""

from __future__ import annotations

import msgspec

from counterfoil.domain.approval import Proposed
from counterfoil.domain.errors import ReceiptBroken
from counterfoil.domain.event import Begun, Decided, Event, EventKind, Noted, Removed, read
from counterfoil.domain.evidence import Evidence

Record = Begun | Proposed | Evidence | Decided | Noted | Removed

RECORDS: dict[EventKind, type[Record]] = {
    EventKind.BEGUN: Begun,
    EventKind.PROPOSED: Proposed,
    EventKind.HELD: Noted,
    EventKind.OBSERVED: Evidence,
    EventKind.LOOKING: Noted,
    EventKind.DECIDED: Decided,
    EventKind.NOTED: Noted,
    EventKind.REPEATED: Noted,
    EventKind.REMOVED: Removed,
}

_DECODERS = {kind: msgspec.json.Decoder(record) for kind, record in RECORDS.items()}


def record_of(event: Event) -> Record:
    """Read what one event records.

    Raises:
        ReceiptBroken: it is not what its kind says; the error names its operation.
    """
    return read(_DECODERS[event.kind], event)


def readable(event: Event) -> Record | None:
    """What one event records; None where that cannot be read, which is a violation of its own."""
    try:
        return record_of(event)
    except ReceiptBroken:
        return None


def refuse_unreadable(events: tuple[Event, ...]) -> None:
    """Let nothing be sent on a history of which any part cannot be read.

    Raises:
        ReceiptBroken: which event of which operation.
    """
    for event in events:
        record_of(event)


def digest_of(event: Event, record: Record) -> str:
    """The salted digest a record names for its body; empty where it names none."""
    if isinstance(record, Begun):
        return record.payload_digest
    if isinstance(record, Proposed):
        return record.bound.payload_digest
    if isinstance(record, Evidence):
        return record.body_digest
    field = {EventKind.HELD: "payload_digest", EventKind.REPEATED: "payload"}.get(event.kind, "")
    return "" if isinstance(record, Removed) else str(record.facts.get(field, ""))
