"""What each command does inside its transaction; the write lock is held and `now` was read under it."""

from __future__ import annotations

import sqlite3

import msgspec

from counterfoil.domain import hold
from counterfoil.domain.command import (
    Amend,
    Amended,
    Amendment,
    Claim,
    Claimed,
    Collision,
    Conflict,
    Declined,
    Existing,
    NewEvent,
    NewlyHeld,
    Settle,
    Settled,
    Stale,
)
from counterfoil.domain.errors import InvariantBroken, NoSuchOperation
from counterfoil.domain.event import SEQ_MAX, EventKind, History, Noted, chain, encode
from counterfoil.domain.identifier import row_number
from counterfoil.domain.operation import Operation
from counterfoil.store import rows

HOLD_SLOTS_MAX = 64
"""Settled operations of one effect that late evidence may reopen at once."""

# The constant words of a first claim stand in the statement: fewer values to bind on the hot path.
CLAIM = """
INSERT INTO operation (n, id, tenant, actor, action, key, account, fingerprint, effect, owner, value, created_at,
    permission, dispatch, outcome, disposition, discrepancy, attempts, exposure, unresolved, settled_by, held_by,
    looks, step, due_at, worker, deadline, updated_at, seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'authorized', 'started', 'unobserved', 'open', 'none', 1, 1, 1, '', '',
    0, 'recover', ?, ?, ?, ?, 1)
"""
SETTLE = """
UPDATE operation SET dispatch = ?, outcome = ?, discrepancy = ?, exposure = ?, unresolved = ?, settled_by = ?,
    step = ?, due_at = ?, updated_at = ?, seq = ? WHERE n = ? AND seq = ?
"""


def claim(db: rows.Runs, c: Claim, now: float) -> Claimed | Existing | NewlyHeld | Conflict | Collision:
    """Insert receipt and claim; the unique indexes decide identity and hold, and only a refusal reads."""
    intent, deadline = c.intent, now + c.send_seconds
    row = (
        c.n, c.id, intent.tenant, intent.actor, intent.action, intent.key, intent.account, intent.fingerprint,
        intent.effect, c.owner, c.value, now, deadline, c.worker, deadline, now,
    )  # fmt: skip
    try:
        db.execute(CLAIM, row)
    except sqlite3.IntegrityError:
        refused = _refused(db, c, now)
        if refused is None:
            raise
        return refused
    head = chain(b"", c.id, 1, "begun", now, c.record)
    if len(c.body) <= rows.BODY_INLINE_MAX:
        db.execute(rows.INSERT_EVENT, (c.n * rows.EVENTS + 1, "begun", now, c.record, c.body, head))
    else:
        rows.insert_event(db, c.n, 1, "begun", now, c.record, c.body, head)
    return Claimed(at=now, head=head)


def _refused(db: rows.Runs, c: Claim, now: float) -> Claimed | Existing | NewlyHeld | Conflict | Collision | None:
    """Say which index refused a claim; None where none did and the row itself is impossible."""
    intent = c.intent
    stands = rows.by_key(db, intent.tenant, intent.actor, intent.action, intent.key)
    if stands is not None:
        if stands.fingerprint != intent.fingerprint:  # before every other answer (invariant 9)
            return Conflict(operation=stands.id, stored=stands.fingerprint)
        history = rows.history(db, stands)
        return _again(history) if stands.id == c.id else Existing(history=history)
    if rows.by_number(db, c.n) is not None:
        return Collision()
    holder = _holder(db, intent.effect)
    if holder is None:
        return None
    operation, event = hold.propose(c, holder, now)
    db.execute(rows.INSERT, rows.values_of(operation))
    _append(db, operation, 1, now, b"", event)
    return NewlyHeld(history=rows.history(db, operation))


def _again(history: History) -> Claimed | NewlyHeld | Existing:
    """Answer a claim that finds its own write: as the first time, unless somebody wrote to it since."""
    first = history.events[0]
    if len(history.events) > 1:
        return Existing(history=history)
    # A proposal that was held is no claim, whoever asks: answering Claimed here would send it beside its holder.
    return Claimed(at=first.at, head=first.hash) if first.kind is EventKind.BEGUN else NewlyHeld(history=history)


def _holder(db: rows.Runs, effect: str) -> str | None:
    row = db.execute(
        "SELECT id FROM operation WHERE effect = ? AND unresolved > 0 ORDER BY unresolved LIMIT 1", (effect,)
    ).fetchone()
    return row[0] if row else None


def settle(db: rows.Runs, s: Settle, now: float) -> Settled | Stale:
    """Record evidence with one compare-and-set: the settling caller reads nothing."""
    seq = s.seq + 1
    due_at = now + s.due_after if s.columns[-1] else 0.0
    if db.execute(SETTLE, (*s.columns, due_at, now, seq, s.n, s.seq)).rowcount != 1:
        return _settled_before(db, s)
    head = chain(s.head, s.id, seq, "observed", now, s.record)
    if s.body is None or len(s.body) <= rows.BODY_INLINE_MAX:
        db.execute(rows.INSERT_EVENT, (s.n * rows.EVENTS + seq, "observed", now, s.record, s.body, head))
    else:
        rows.insert_event(db, s.n, seq, "observed", now, s.record, s.body, head)
    return Settled(at=now, head=head)


def _settled_before(db: rows.Runs, s: Settle) -> Settled | Stale:
    row = db.execute("SELECT at, record, hash FROM event WHERE id = ?", (rows.event_id(s.n, s.seq + 1),)).fetchone()
    if row is not None and row[1] == s.record:
        return Settled(at=row[0], head=row[2])  # our own write, run again
    return Stale()


def amend(db: rows.Runs, a: Amend, now: float) -> Amended | Declined:
    """Run a rule on the operation's whole history and write what it decided."""
    n = row_number(a.operation)
    found = None if n is None else rows.by_number(db, n)
    if found is None or found.id != a.operation:
        raise NoSuchOperation(a.operation)
    history = rows.history(db, found)
    _check_tail(history)
    now = max(now, found.updated_at)  # another process's clock may have been ahead of this one's
    decided = a.rule(history, now)
    if isinstance(decided, Declined):
        return msgspec.structs.replace(decided, history=history)
    if not _update(db, history, decided, now):
        holder = _holder(db, found.effect) or ""
        return Declined(because=(f"{holder} of the same effect is unresolved",), history=history)
    seq, head = found.seq, history.head
    for event in decided.events:
        seq += 1
        head = _append(db, found, seq, now, head, event)
    after = rows.by_number(db, found.n)
    if after is None:
        raise InvariantBroken(f"{found.id} vanished inside a transaction")
    return Amended(history=rows.history(db, after))


def _check_tail(history: History) -> None:
    events, operation = history.events, history.operation
    if len(events) != operation.seq or (events and events[-1].seq != operation.seq):
        raise InvariantBroken(f"{operation.id} names {operation.seq} events and has {len(events)}")


def _update(db: rows.Runs, history: History, decided: Amendment, now: float) -> bool:
    """Write the projection; evidence that reopens an operation whose effect is held takes a further slot."""
    before = history.operation
    seq = before.seq + len(decided.events)
    if seq > SEQ_MAX:
        raise InvariantBroken(f"{before.id} has more than {SEQ_MAX} events")
    after = msgspec.structs.replace(decided.operation, seq=seq, updated_at=now)
    slots = range(1, HOLD_SLOTS_MAX) if after.unresolved and not before.unresolved else (after.unresolved,)
    for slot in slots:
        values = rows.values_of(msgspec.structs.replace(after, unresolved=slot))
        try:
            changed = db.execute(rows.UPDATE, (*values[1:], before.n, before.seq)).rowcount
        except sqlite3.IntegrityError:
            if decided.claims:
                return False
            continue
        if changed != 1:
            raise InvariantBroken(f"{before.id} changed while the write lock was held")
        if slot > 1 and not before.unresolved:
            _notify_holder(db, before, now)
        elif before.unresolved == 1 and not after.unresolved:
            _hand_on(db, before, now)
        return True
    raise InvariantBroken(f"more than {HOLD_SLOTS_MAX} operations of effect {before.effect} are reopened")


def _notify_holder(db: rows.Runs, reopened: Operation, now: float) -> None:
    """Make whoever settles the holder take the slow way, which hands the hold on to what was reopened."""
    holder = _holder(db, reopened.effect)
    found = rows.by_number(db, row_number(holder) or 0) if holder else None
    if found is None:
        raise InvariantBroken(f"{reopened.effect} is held by nobody")
    _note(db, found, "reopened", {"operation": reopened.id}, now)


def _hand_on(db: rows.Runs, left: Operation, now: float) -> None:
    """The hold is free: the first of those that wait in further slots takes it, and takes notice of it."""
    waiting = rows.select(db, "WHERE effect = ? AND unresolved > 1 ORDER BY unresolved LIMIT 1", (left.effect,))
    for first in waiting:
        # The note makes its own settling, too, take the slow way: its claimer may know it by its old slot.
        _note(db, first, "holds", {"after": left.id}, now)
        db.execute("UPDATE operation SET unresolved = 1 WHERE n = ?", (first.n,))


def _note(db: rows.Runs, o: Operation, note: str, facts: dict[str, str], now: float) -> None:
    record = encode(Noted(note=note, facts=facts))
    _append(db, o, o.seq + 1, now, rows.history(db, o).head, NewEvent(kind=EventKind.NOTED, record=record))
    db.execute("UPDATE operation SET seq = ? WHERE n = ?", (o.seq + 1, o.n))


def _append(db: rows.Runs, o: Operation, seq: int, now: float, head: bytes, event: NewEvent) -> bytes:
    link = chain(head, o.id, seq, event.kind.value, now, event.record)
    rows.insert_event(db, o.n, seq, event.kind.value, now, event.record, event.body, link)
    return link
