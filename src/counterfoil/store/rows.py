"""Rows to values: the only place that knows the column order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from counterfoil.domain.event import SEQ_MAX, Event, EventKind, History
from counterfoil.domain.identifier import NUMBER_BITS
from counterfoil.domain.operation import COLUMNS, Operation
from counterfoil.domain.words import Discrepancy, Dispatch, Disposition, Outcome, Permission
from counterfoil.ports.store import Row
from counterfoil.ports.store import Runs as Runs  # noqa: PLC0414 - every module that runs statements names it from here

SELECT = f"SELECT {', '.join(COLUMNS)} FROM operation "  # noqa: S608 - constant column names
UPDATE = f"UPDATE operation SET {', '.join(f'{c} = ?' for c in COLUMNS[1:])} WHERE n = ? AND seq = ?"  # noqa: S608
INSERT = f"INSERT INTO operation ({', '.join(COLUMNS)}) VALUES ({', '.join('?' for _ in COLUMNS)})"  # noqa: S608
INSERT_EVENT = "INSERT INTO event (id, kind, at, record, body, hash) VALUES (?, ?, ?, ?, ?, ?)"
KEEP_TIME = "UPDATE clock SET at = ? WHERE at < ?"
INSERT_BODY = "INSERT INTO body (id, bytes) VALUES (?, ?)"
# A join would leave it to the planner to walk the bodies of all operations for the events of one.
_EVENTS = """SELECT e.id, e.kind, e.at, e.record, coalesce(e.body, (SELECT bytes FROM body WHERE id = e.id)), e.hash
    FROM event e WHERE e.id BETWEEN ? AND ? ORDER BY e.id"""
BODY_INLINE_MAX = 2_048
"""Bytes of a body kept in the event row: larger ones would push events off their page."""

_PERMISSION, _DISPATCH, _OUTCOME, _DISPOSITION, _DISCREPANCY = (
    COLUMNS.index(name) for name in ("permission", "dispatch", "outcome", "disposition", "discrepancy")
)


EVENTS = SEQ_MAX + 1
"""Row numbers one operation's events may take."""
N_MIN, N_MAX = -(1 << 63), (1 << 63) - 1
"""What a store takes for a row number, whatever an id names."""
OPERATIONS_MAX, EVENTS_MAX, BODIES_MAX = 256, 1_024, 32
"""What a page holds: of bodies, those that have a row of their own. An operation with more is a page of its own."""
_OVER_EVENTS = "SELECT id FROM event WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 1 OFFSET ?"
_OVER_BODIES = "SELECT id FROM body WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 1 OFFSET ?"


def event_id(n: int, seq: int) -> int:
    """The row number of an event: its operation's, then 15 bits of sequence."""
    return n * EVENTS + seq


def operation(row: tuple[Any, ...]) -> Operation:
    """Read one `operation` row."""
    values = list(row)
    values[_PERMISSION] = Permission(values[_PERMISSION])
    values[_DISPATCH] = Dispatch(values[_DISPATCH])
    values[_OUTCOME] = Outcome(values[_OUTCOME])
    values[_DISPOSITION] = Disposition(values[_DISPOSITION])
    values[_DISCREPANCY] = Discrepancy(values[_DISCREPANCY])
    return Operation(**dict(zip(COLUMNS, values, strict=True)))


def values_of(value: Operation) -> list[object]:
    """The column values of an operation, plain strings for words (sqlite3 binds exact types fastest)."""
    return [str(v) if isinstance(v, str) else v for v in msgspec.structs.astuple(value)]


def select(db: Runs, tail: str, parameters: tuple[object, ...] = ()) -> list[Operation]:
    """Read the operations a constant tail selects."""
    return [operation(row) for row in db.execute(SELECT + tail, parameters)]


def by_key(db: Runs, tenant: str, actor: str, action: str, key: str) -> Operation | None:
    """Read the operation of one key."""
    found = select(db, "WHERE tenant = ? AND actor = ? AND action = ? AND key = ?", (tenant, actor, action, key))
    return found[0] if found else None


def latest(db: Runs) -> float:
    """The latest time on record: that was kept, and of the newest event and of all that is unresolved since then."""
    row = db.execute(
        "SELECT (SELECT max(updated_at) FROM operation WHERE unresolved > 0), "
        "(SELECT at FROM event ORDER BY id DESC LIMIT 1), (SELECT at FROM clock)"
    ).fetchone()
    return float(max(at or 0.0 for at in row))


def keep_time(db: Runs, now: float) -> float:
    """Keep the time that is judged by, where none later is kept; return it."""
    db.execute(KEEP_TIME, (now, now))
    return now


def policy_number(db: Runs) -> int:
    """The number of the policy in force; 0 where none was ever adopted."""
    return int(db.execute("SELECT coalesce(max(n), 0) FROM policy").fetchone()[0])


def by_number(db: Runs, n: int) -> Operation | None:
    """Read one operation by its row number."""
    found = select(db, "WHERE n = ?", (n,))
    return found[0] if found else None


def history(db: Runs, found: Operation) -> History:
    """Read an operation's events, in order."""
    return History(operation=found, events=_events(db.execute(_EVENTS, _span([found.n]))))


def page(db: Runs, after: int) -> list[Row]:
    """Read the next operations, each with its events, in a few statements; empty where none follows.

    Args:
        db: a transaction that reads one snapshot.
        after: from above this row number.
    """
    found = db.execute(f"{SELECT}WHERE n > ? ORDER BY n LIMIT ?", (after, OPERATIONS_MAX)).fetchall()
    end = _end(db, _span([row[0] for row in found]))
    found = [row for row in found if row[0] < end] or found[:1]
    events = defaultdict[int, list[Any]](list)
    for row in db.execute(_EVENTS, _span([row[0] for row in found])):
        events[row[0] // EVENTS].append(row)
    return [Row(row[0], row[1], _whole(row, events[row[0]])) for row in found]


def _span(numbers: Sequence[int]) -> tuple[int, int]:
    """From which row number to which events of operations stand; no id names a number that is left out."""
    named = [n for n in numbers if 0 <= n < 1 << NUMBER_BITS]
    return (event_id(named[0], 0), event_id(named[-1], SEQ_MAX)) if named else (0, -1)


def _end(db: Runs, span: tuple[int, int]) -> int:
    """The first operation of which a page has no room for the last event or body."""
    asked = ((_OVER_EVENTS, EVENTS_MAX), (_OVER_BODIES, BODIES_MAX))
    over = [row[0] // EVENTS for statement, most in asked for row in db.execute(statement, (*span, most))]
    return min(over, default=N_MAX + 1)


def _whole(row: tuple[Any, ...], events: Iterable[Any]) -> History | ValueError:
    try:
        return History(operation=operation(row), events=_events(events))
    except ValueError as error:  # a word that is none of the house's
        return error


def _events(found: Iterable[Any]) -> tuple[Event, ...]:
    return tuple(map(_event, found))


def _event(row: tuple[int, str, float, bytes, bytes | None, bytes]) -> Event:
    n, seq = divmod(row[0], SEQ_MAX + 1)
    return Event(n=n, seq=seq, kind=EventKind(row[1]), at=row[2], record=row[3], body=row[4], hash=row[5])


def insert_event(  # noqa: PLR0913, PLR0917 - the columns of an event; a value of its own would be built per commit
    db: Runs, n: int, seq: int, kind: str, at: float, record: bytes, body: bytes | None, link: bytes
) -> None:
    """Append one event; a large body goes into a row of its own."""
    row = event_id(n, seq)
    if body is not None and len(body) > BODY_INLINE_MAX:
        db.execute(INSERT_EVENT, (row, kind, at, record, None, link))
        db.execute(INSERT_BODY, (row, body))
    else:
        db.execute(INSERT_EVENT, (row, kind, at, record, body, link))
