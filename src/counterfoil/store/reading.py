"""Looks at one provider's account: counted from their events, under the write lock, before another is paid for."""

from __future__ import annotations

import msgspec

from counterfoil.domain import looking
from counterfoil.domain.command import Reads
from counterfoil.store.rows import EVENTS, Runs

ANSWERS_MAX = 64
"""Of how many looks the answers are read: after one that said when to ask again, only looks in flight come."""

# The index on looks alone makes this a walk over the last ones, and no row of its own is written for it. What a look
# heard is the next observation, or the last where something else was observed while it was out.
_LATER = f"FROM event later WHERE later.id > e.id AND later.id < (o.n + 1) * {EVENTS} AND later.kind = 'observed'"
PAID = f"""SELECT e.id, e.at, e.record, seen.at, seen.record FROM event e JOIN operation o ON o.n = e.id / {EVENTS}
    LEFT JOIN event seen ON seen.id IN ((SELECT min(later.id) {_LATER}), (SELECT max(later.id) {_LATER}))
    WHERE e.kind = 'looking' AND e.at > ? AND o.tenant = ? AND o.account = ?
    ORDER BY e.at DESC, e.id"""  # noqa: S608 - a number


class _Said(msgspec.Struct):
    facts: dict[str, object] = {}
    retry_after_seconds: float = 0.0


_said = msgspec.json.Decoder(_Said)


def pause(db: Runs, reads: Reads, now: float) -> looking.Pause | None:
    """Whether no look may be paid for now at a provider's account; None while there is room.

    Args:
        db: a transaction that holds the lock of these reads.
        reads: whose.
        now: seconds since the epoch, by the store's clock.
    """
    since = now - looking.SHARED_SECONDS_MAX
    paid: list[float] = []
    until, last = 0.0, 0
    for look, at, record, seen_at, seen in db.execute(PAID, (since, reads.tenant, reads.account)):
        if _said.decode(record).facts.get("provider") != reads.provider:
            continue
        wait = _said.decode(seen).retry_after_seconds if seen is not None else 0.0
        if wait and len(paid) <= ANSWERS_MAX:
            until = max(until, seen_at + min(wait, looking.SHARED_SECONDS_MAX))
        if look != last:
            paid.append(at)
        last = look
    recent = tuple(at for at in paid if at > now - reads.per_seconds)
    return looking.pause(reads, recent, until, now)
