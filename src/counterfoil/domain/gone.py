"""Bodies that are gone: each must have been erased on record, or nobody knows who took it away."""

from __future__ import annotations

from collections.abc import Iterator

from counterfoil.domain.event import ERASE, Decided, EventKind, History
from counterfoil.domain.record import digest_of, readable
from counterfoil.domain.violation import Law, Violation


def audit_bodies(history: History) -> Iterator[Violation]:
    """Find each body that a record names and that is gone, where no erasure is on record after it."""
    gone: list[int] = []
    for event in history.events:
        record = readable(event)
        if record is None:
            continue
        if isinstance(record, Decided) and record.decision == ERASE:
            gone = []
        elif event.body is None and event.kind is not EventKind.REMOVED and digest_of(event, record):
            gone.append(event.seq)
    for seq in gone:
        problem = "its body is gone, and nobody erased it on record"
        yield Violation(operation=history.operation.id, seq=seq, law=Law.BODY, problem=problem)
