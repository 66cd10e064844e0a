"""Removing, erasing and counting inside the transaction: the write lock is held and `now` was read under it.

Pages that become free are used again; the file does not shrink. `incremental_vacuum` would do nothing, because the
file was not made for it, and a whole `VACUUM` keeps every writer out for as long as it copies.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

import msgspec

from counterfoil.domain.command import Amended, Counted, CountRefusals, Declined, Erase, Remove
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import SEQ_MAX, EventKind
from counterfoil.domain.operation import Operation
from counterfoil.store import opening, rows, transaction

_AGED = """WHERE n > ? AND updated_at <= ? AND unresolved = 0 AND step = '' AND held_by = '' AND permission <> 'pending'
    AND NOT EXISTS (SELECT 1 FROM event WHERE id = operation.n * 32768 + operation.seq AND kind = 'removed')
    ORDER BY n LIMIT ?"""
_COUNT = """INSERT INTO refusal (n, times, last_at) VALUES (?, ?, ?)
    ON CONFLICT (n) DO UPDATE SET times = times + excluded.times, last_at = max(last_at, excluded.last_at)
    WHERE last_at <> excluded.last_at"""

_SECURE_DELETE = ("OFF", "ON", "FAST")
"""SQLite's words for the numbers it answers with."""
SETTLE_DOWN_MS = 1_000
"""How long the emptying of the log waits for whoever reads in it: writers wait meanwhile."""


def remove(db: rows.Runs, r: Remove, now: float) -> Amended | Declined:
    """Write the one event that stays, then delete all before it: the trigger lets nothing else go."""
    written = _decided(db, r, now, EventKind.REMOVED)
    if isinstance(written, Declined):
        return written
    last = rows.event_id(written.n, written.seq)
    with _overwritten(db):
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
    with _overwritten(db):
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


@contextlib.contextmanager
def _overwritten(db: rows.Runs) -> Iterator[None]:
    """Have what is deleted here overwritten with zeros: a free page, or the gap in one, would keep it readable."""
    before = db.execute("PRAGMA secure_delete").fetchone()[0]
    db.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        db.execute(f"PRAGMA secure_delete = {_SECURE_DELETE[before]}")


def settle_down(db: rows.Runs) -> None:
    """Write the log into the file and empty it for good, where nobody reads in it: what was erased stands there too."""
    with contextlib.suppress(sqlite3.Error):  # the next checkpoint does it
        db.execute(f"PRAGMA busy_timeout = {SETTLE_DOWN_MS}")
        try:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            # SQLite cuts the log and does not sync that: after a power cut the old one could stand there again. A
            # commit, if only of what stands there already, begins it anew and syncs it.
            db.execute(f"PRAGMA application_id = {opening.APPLICATION_ID}")
        finally:
            db.execute(f"PRAGMA busy_timeout = {int(opening.BUSY_TIMEOUT_SECONDS * 1000)}")


def count_refusals(db: rows.Runs, c: CountRefusals, now: float) -> Counted:
    """Add a batch, once: a row that carries the batch's own time has had it."""
    del now
    db.executemany(_COUNT, [(n, times, c.at) for n, times in c.counts])
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
