"""What each command does inside its transaction; the write lock is held, and both clocks were read under it."""

from __future__ import annotations

import msgspec

from counterfoil.domain import hold, looking
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
    NewlyProposed,
    PolicyMoved,
    Propose,
    Settle,
    Settled,
    Stale,
    Tripped,
)
from counterfoil.domain.errors import InvariantBroken, NoSuchOperation
from counterfoil.domain.event import SEQ_MAX, EventKind, History, Noted, chain, encode, removed_before
from counterfoil.domain.identifier import row_number
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import DISPATCH
from counterfoil.domain.steady import Steady, stamped
from counterfoil.store import breakers, reading, rows

HOLD_SLOTS_MAX = 64
"""Settled operations of one effect that late evidence may reopen at once."""

# The constant words of a first claim stand in the statement: fewer values to bind on the hot path.
CLAIM = """
INSERT INTO operation (n, id, tenant, actor, action, key, account, fingerprint, effect, owner, value, created_at,
    permission, dispatch, outcome, disposition, discrepancy, attempts, exposure, unresolved, settled_by, held_by,
    looks, step, due_at, worker, deadline, updated_at, seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'authorized', 'started', 'unobserved', 'open', 'none', 1, 1, 1, '', '',
    0, 'recover', ?, ?, ?, ?, 1)
ON CONFLICT DO NOTHING
"""
SETTLE = """
UPDATE operation SET dispatch = ?, outcome = ?, discrepancy = ?, exposure = ?, unresolved = ?, settled_by = ?,
    step = ?, due_at = ?, updated_at = ?, seq = ? WHERE n = ? AND seq = ?
"""


def claim(
    db: rows.Runs, c: Claim, now: float, steady: Steady
) -> Claimed | Existing | NewlyHeld | Conflict | Collision | Tripped:
    """Insert receipt and claim; the unique indexes decide identity and hold, and only a refusal reads."""
    if c.breaker is not None:
        tripped = breakers.tripped(db, c.breaker, now)
        if tripped is not None:
            return _stands(db, c) or tripped
    intent, deadline = c.intent, now + c.send_seconds
    row = (
        c.n, c.id, intent.tenant, intent.actor, intent.action, intent.key, intent.account, intent.fingerprint,
        intent.effect, c.owner, c.value, now, deadline, c.worker, deadline, now,
    )  # fmt: skip
    if db.execute(CLAIM, row).rowcount != 1:
        return _refused(db, c, now)
    record = stamped(c.record, steady)
    head = chain(b"", c.id, 1, "begun", now, record)
    if len(c.body) <= rows.BODY_INLINE_MAX:
        db.execute(rows.INSERT_EVENT, (c.n * rows.EVENTS + 1, "begun", now, record, c.body, head))
    else:
        rows.insert_event(db, c.n, 1, "begun", now, record, c.body, head)
    return Claimed(at=now, head=head)


def _refused(db: rows.Runs, c: Claim, now: float) -> Claimed | Existing | NewlyHeld | Conflict | Collision:
    """Say which index refused a claim."""
    intent = c.intent
    stands = _stands(db, c)
    if stands is not None:
        own = isinstance(stands, Existing) and stands.history.operation.id == c.id
        return _again(stands.history) if own else stands  # type: ignore[union-attr]
    if rows.by_number(db, c.n) is not None:
        return Collision()
    holder = _holder(db, intent.effect)
    if holder is None:
        raise InvariantBroken(f"{c.id} was refused, and nothing stands in its way")
    operation, event = hold.propose(c, holder, now)
    db.execute(rows.INSERT, rows.values_of(operation))
    append(db, operation, 1, now, b"", event)
    return NewlyHeld(history=rows.history(db, operation))


def _stands(db: rows.Runs, c: Claim) -> Existing | Conflict | None:
    """What a key that was used before answers, or None; another fingerprint comes before every other answer."""
    intent = c.intent
    stands = rows.by_key(db, intent.tenant, intent.actor, intent.action, intent.key)
    if stands is None:
        return None
    if stands.fingerprint != intent.fingerprint:  # invariant 9
        return Conflict(operation=stands.id, stored=stands.fingerprint)
    return Existing(history=rows.history(db, stands))


def propose(db: rows.Runs, p: Propose, now: float) -> NewlyProposed | Existing | Conflict | Collision | PolicyMoved:
    """Insert an operation that waits for people; the same question run again finds itself."""
    c = p.claim
    stands = _stands(db, c)
    if isinstance(stands, Existing) and stands.history.operation.id == c.id and len(stands.history.events) == 1:
        return NewlyProposed(history=stands.history)
    if stands is not None:
        return stands
    moved = _moved(db, c.policy)
    if moved is not None:
        return moved
    if rows.by_number(db, c.n) is not None:
        return Collision()
    operation, event = hold.ask(p, now)
    db.execute(rows.INSERT, rows.values_of(operation))
    append(db, operation, 1, now, b"", event)
    return NewlyProposed(history=rows.history(db, operation))


def _moved(db: rows.Runs, policy: int) -> PolicyMoved | None:
    """Whether another policy is in force than the one a command was judged under."""
    stands = rows.policy_number(db)
    return None if stands == policy else PolicyMoved(policy=stands)


def _again(history: History) -> Claimed | NewlyHeld | Existing:
    """Answer a claim that finds its own write: as the first time, unless somebody wrote to it since."""
    first = history.events[0]
    if len(history.events) > 1 or first.kind is EventKind.REMOVED:
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


def amend(db: rows.Runs, a: Amend, now: float, steady: Steady) -> Amended | Declined | PolicyMoved | Tripped:
    """Run a rule on the operation's whole history and write what it decided."""
    moved = None if a.policy is None else _moved(db, a.policy)
    if moved is not None:
        return moved
    history = standing(db, a.operation)
    found = history.operation
    now = not_before(history, now)
    decided = a.rule(msgspec.structs.replace(history, read=steady), now)
    if isinstance(decided, Declined):
        return msgspec.structs.replace(decided, history=history)
    paused = None if a.reads is None else reading.pause(db, a.reads, now)
    if a.reads is not None and paused is not None:
        moved_off = looking.put_off(history, paused, a.reads)
        after = _write(db, history, moved_off, now) if moved_off else history
        return Declined(because=(paused.because,), history=after)
    holder = _in_the_way(db, found, decided)
    if holder and decided.claims:
        return _held(db, history, holder, now)
    if a.breaker is not None and decided.claims and not found.attempts:  # what is begun already is nothing new
        tripped = breakers.tripped(db, a.breaker, now)
        if tripped is not None:
            return tripped
    return Amended(history=_write(db, history, hold.hand_back(decided, holder) if holder else decided, now))


def _in_the_way(db: rows.Runs, found: Operation, decided: Amendment) -> str:
    """What holds back an attempt that would start, or what would be a worker's to send; empty where nothing does."""
    starts = decided.claims and not found.unresolved  # else it holds its effect itself
    if not starts and decided.operation.step != DISPATCH:
        return ""
    holders = rows.select(db, "WHERE effect = ? AND unresolved > 0 ORDER BY unresolved", (found.effect,))
    return next((h.id for h in holders if h.n != found.n and h.id not in decided.beside), "")


def _held(db: rows.Runs, history: History, holder: str, now: float) -> Declined:
    """Refuse a claim that is held back; what waits to be sent goes back to its caller, on record."""
    if hold.goes_back(history.operation, holder):
        handed = hold.hand_back(Amendment(operation=history.operation, events=()), holder)
        history = _write(db, history, handed, now)
    return Declined(because=(f"{holder} of the same effect is unresolved",), history=history)


def _write(db: rows.Runs, history: History, decided: Amendment, now: float) -> History:
    """Write what a rule decided; the operation as it stands then."""
    found = history.operation
    _update(db, history, decided, now)
    seq, head = found.seq, history.head
    for event in decided.events:
        seq += 1
        head = append(db, found, seq, now, head, event)
    after = rows.by_number(db, found.n)
    if after is None:
        raise InvariantBroken(f"{found.id} vanished inside a transaction")
    return rows.history(db, after)


def standing(db: rows.Runs, operation: str) -> History:
    """Read one operation for a rule; its last event must be the one its row names."""
    n = row_number(operation)
    found = None if n is None else rows.by_number(db, n)
    if found is None or found.id != operation:
        raise NoSuchOperation(operation)
    history = rows.history(db, found)
    events = history.events
    stood = len(events) + removed_before(events)
    if stood != found.seq or (events and events[-1].seq != found.seq):
        raise InvariantBroken(f"{found.id} names {found.seq} events and has {stood}")
    return history


def not_before(history: History, now: float) -> float:
    """The time a rule judges by: another process's clock may have been ahead of this one's."""
    return max(now, history.operation.updated_at, *(event.at for event in history.events[-1:]))


def _update(db: rows.Runs, history: History, decided: Amendment, now: float) -> None:
    """Write the projection; what becomes unresolved although its effect is held takes a further slot."""
    before = history.operation
    seq = before.seq + len(decided.events)
    if seq > SEQ_MAX:
        raise InvariantBroken(f"{before.id} has more than {SEQ_MAX} events")
    # A note about another operation is no news of this one: it grows no younger by it.
    news = any(event.kind is not EventKind.NOTED for event in decided.events)
    after = msgspec.structs.replace(decided.operation, seq=seq, updated_at=now if news else before.updated_at)
    opens = after.unresolved and not before.unresolved
    slot = _free_slot(db, before.effect) if opens else after.unresolved
    values = rows.values_of(msgspec.structs.replace(after, unresolved=slot))
    if db.execute(rows.UPDATE, (*values[1:], before.n, before.seq)).rowcount != 1:
        raise InvariantBroken(f"{before.id} changed while the write lock was held")
    if opens and slot > 1:
        _notify_holder(db, before, now)
    elif before.unresolved == 1 and not slot:
        _hand_on(db, before, now)


def _free_slot(db: rows.Runs, effect: str) -> int:
    """The first place in an effect's hold that nobody has; nobody else takes one while the lock is held."""
    held = db.execute("SELECT unresolved FROM operation WHERE effect = ? AND unresolved > 0", (effect,))
    taken = {row[0] for row in held}
    for slot in range(1, HOLD_SLOTS_MAX):
        if slot not in taken:
            return slot
    raise InvariantBroken(f"more than {HOLD_SLOTS_MAX} operations of effect {effect} are reopened")


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
    record, history = encode(Noted(note=note, facts=facts)), rows.history(db, o)
    at = not_before(history, now)  # whoever wrote its last event may have been ahead of who brings this news
    append(db, o, o.seq + 1, at, history.head, NewEvent(kind=EventKind.NOTED, record=record))
    db.execute("UPDATE operation SET seq = ? WHERE n = ?", (o.seq + 1, o.n))


def append(db: rows.Runs, o: Operation, seq: int, now: float, head: bytes, event: NewEvent) -> bytes:
    """Append one event and return its hash."""
    link = chain(head, o.id, seq, event.kind.value, now, event.record)
    rows.insert_event(db, o.n, seq, event.kind.value, now, event.record, event.body, link)
    return link
