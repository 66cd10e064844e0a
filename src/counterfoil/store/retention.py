"""Removing, erasing and counting inside the transaction: the write lock is held and `now` was read under it."""

from __future__ import annotations

import msgspec

from counterfoil.domain.command import Amended, Counted, CountRefusals, Declined, Erase, Remove
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import SEQ_MAX, EventKind
from counterfoil.domain.operation import Operation
from counterfoil.store import rows, transaction

# Not as a join: PostgreSQL would read every event there is for each page.
_AGED = """WHERE n > ? AND updated_at <= ? AND unresolved = 0 AND step = '' AND held_by = '' AND permission <> 'pending'
    AND coalesce((SELECT kind FROM event WHERE id = operation.n * 32768 + operation.seq), '') <> 'removed'
    ORDER BY n LIMIT ?"""
_COUNT = """INSERT INTO refusal (n, times, last_at) VALUES (?, ?, ?)
    ON CONFLICT (n) DO UPDATE SET times = refusal.times + excluded.times,
        last_at = CASE WHEN refusal.last_at > excluded.last_at THEN refusal.last_at ELSE excluded.last_at END
    WHERE refusal.last_at <> excluded.last_at"""


def remove(db: rows.Runs, r: Remove, now: float) -> Amended | Declined:
    """Write the one event that stays, then delete all before it: the trigger lets nothing else go."""
    written = _decided(db, r, now, EventKind.REMOVED)
    if isinstance(written, Declined):
        return written
    last = rows.event_id(written.n, written.seq)
    before = (rows.event_id(written.n, 0), last - 1)
    db.execute("DELETE FROM body WHERE id BETWEEN ? AND ?", before)
    db.execute("DELETE FROM event WHERE id BETWEEN ? AND ?", before)
    return Amended(history=rows.history(db, written))


def erase(db: rows.Runs, e: Erase, now: float) -> Amended | Declined:
    """Write the decision, then null every body; hashes cover none of them."""
    written = _decided(db, e, now, EventKind.DECIDED)
    if isinstance(written, Declined):
        return written
    all_of_it = (rows.event_id(written.n, 0), rows.event_id(written.n, written.seq))
    db.execute("DELETE FROM body WHERE id BETWEEN ? AND ?", all_of_it)
    db.execute("UPDATE event SET body = NULL WHERE id BETWEEN ? AND ? AND body IS NOT NULL", all_of_it)
    return Amended(history=rows.history(db, written))


def _decided(db: rows.Runs, command: Remove | Erase, now: float, kind: EventKind) -> Operation | Declined:
    """Run the rule and write its one event. The row keeps its columns, its age included: nothing happened to it."""
    history = transaction.standing(db, command.operation)
    now = transaction.not_before(history, now)
    decided = command.rule(history, now)
    if isinstance(decided, Declined):
        return Declined(because=decided.because, history=history)
    if [event.kind for event in decided.events] != [kind]:
        raise InvariantBroken(f"{command.operation}: a retention is one event of its own kind")
    before, seq = history.operation, history.operation.seq + 1
    if seq > SEQ_MAX:
        raise InvariantBroken(f"{before.id} has {SEQ_MAX} events, and no number is left for another")
    transaction.append(db, before, seq, now, history.head, decided.events[0])
    db.execute("UPDATE operation SET seq = ? WHERE n = ?", (seq, before.n))
    return msgspec.structs.replace(before, seq=seq)


def count_refusals(db: rows.Runs, c: CountRefusals, now: float) -> Counted:
    """Add a batch, once: a row that carries the batch's own time has had it."""
    del now
    for n, times in sorted(c.counts):  # in one order everywhere: two batches wait for each other in no circle
        db.execute(_COUNT, (n, times, c.at))
    return Counted()


def refusals(db: rows.Runs, n: int) -> int:
    """Read how often an operation's receipt answered."""
    row = db.execute("SELECT times FROM refusal WHERE n = ?", (n,)).fetchone()
    return int(row[0]) if row else 0


def aged(db: rows.Runs, after: int, until: float, limit: int) -> list[Operation]:
    """Read resolved operations with something left, by row number.

    Args:
        db: a reading connection.
        after: from above this row number.
        until: to which nothing has happened since this moment, by the store's clock.
        limit: how many.
    """
    return rows.select(db, _AGED, (after, until, limit))
