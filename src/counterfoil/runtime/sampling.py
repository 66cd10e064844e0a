"""A random sample of resolved operations, and whether each could be reconstructed from its receipt alone."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from counterfoil.domain.audit import audit
from counterfoil.domain.errors import InvariantBroken, NoSuchOperation
from counterfoil.domain.event import Decided, History, removed_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.gone import audit_bodies
from counterfoil.domain.operation import Operation
from counterfoil.domain.record import digest_of
from counterfoil.domain.words import Outcome, Source
from counterfoil.runtime.replay import Happened, replay

if TYPE_CHECKING:
    from counterfoil.ports.store import Store
    from counterfoil.runtime.ledger import Ledger

PAGE = 4_096
"""Row numbers read at once: the sample is drawn from a stream, never from a list of all of them."""

_RESOLVED = (
    "SELECT n, id FROM operation WHERE n > ? AND unresolved = 0 AND step = '' AND held_by = '' ORDER BY n LIMIT ?"
)
"""Nothing of it may still happen, nobody is waited for, and no other operation holds it back."""


class Body(StrEnum):
    """What became of what was sent and what came back."""

    PRESENT = "present"
    ERASED = "erased"
    REMOVED = "removed"
    MISSING = "missing"
    """Gone, and nothing on record says why."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One sampled operation."""

    operation_id: str
    action: str = ""
    key: str = ""
    outcome: str = ""
    settled_by: str = ""
    events: int = 0
    body: Body = Body.MISSING
    tombstone: bool = False
    """Retention removed how it went: what it came to is on record, and nothing to reconstruct it from."""
    because: tuple[str, ...] = ()
    """What is wrong with it; empty where nothing is."""

    @property
    def reconstructed(self) -> bool:
        """The receipt alone says how it came to what it is."""
        return not self.because and not self.tombstone


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Operations drawn at random, in the order they were asked for, and out of how many."""

    seed: int
    resolved: int
    drawn: tuple[Judged, ...]


def sample(ledger: Ledger, *, most: int, seed: int) -> Sample:
    """Draw resolved operations, each as likely as any other, and judge each of them.

    Args:
        ledger: whose store; nothing is written.
        most: how many at most.
        seed: the same one draws the same operations from the same receipts.
    """
    numbers, resolved = reservoir(_resolved(ledger.store), most, random.Random(seed))  # noqa: S311 - a sample is no secret
    drawn = tuple(_judged(ledger, operation) for _, operation in sorted(numbers))
    return Sample(seed=seed, resolved=resolved, drawn=drawn)


def reservoir(stream: Iterable[tuple[int, str]], most: int, chance: random.Random) -> tuple[list[tuple[int, str]], int]:
    """Take `most` of a stream, each equally likely, keeping no more than that; also say how long the stream was.

    Args:
        stream: row numbers with their ids.
        most: how many at most.
        chance: what decides.
    """
    kept: list[tuple[int, str]] = []
    seen = 0
    for one in stream:
        seen += 1
        if len(kept) < most:
            kept.append(one)
        elif (at := chance.randrange(seen)) < most:
            kept[at] = one
    return kept, seen


def _resolved(store: Store) -> Iterator[tuple[int, str]]:
    after = -1
    while page := store.query(_RESOLVED, (after, PAGE)):
        for n, name in page:
            after = int(str(n))
            yield after, str(name)


def _judged(ledger: Ledger, operation: str) -> Judged:
    try:
        history = ledger.history(operation)
    except NoSuchOperation:
        return Judged(operation_id=operation, because=("its row is not the one its id names",))
    except (InvariantBroken, ValueError) as error:
        return Judged(operation_id=operation, because=(f"it cannot be read: {error}",))
    return judge(history)


def judge(history: History) -> Judged:
    """Say whether one operation's transition can be reconstructed from its receipt alone, or what is missing for it."""
    operation, told = history.operation, replay(history)
    body = _body(history, told)
    because = [f"{v.law.value}: {v.problem}" for v in audit(history)]
    because += _unfounded(told)
    if body is Body.MISSING:
        because.append("a body is gone, and nothing on record says who erased it")
    return Judged(
        **_named(operation), events=len(history.events), body=body, because=tuple(dict.fromkeys(because)),
        tombstone=removed_of(history.events[:1]) is not None,
    )  # fmt: skip


def _named(operation: Operation) -> dict[str, str]:
    return {
        "operation_id": operation.id, "action": operation.action, "key": operation.key,
        "outcome": operation.outcome.value, "settled_by": operation.settled_by,
    }  # fmt: skip


def _unfounded(told: list[Happened]) -> Iterator[str]:
    """Each change of outcome that no evidence with a rule stands behind, nor a claim with its basis."""
    for happened in told:
        before, after = happened.before, happened.after
        moved = before is not None and after is not None and before.outcome is not after.outcome
        if moved and not _founded(happened):
            said = after.outcome.value if after else ""
            yield f"event {happened.event.seq} made it {said}, and names no rule"


def _founded(happened: Happened) -> bool:
    record = happened.record
    if not isinstance(record, Evidence):
        return not isinstance(record, Decided)  # a claim begins anew on its basis; no decision is evidence
    silent = record.source is Source.TRANSPORT and happened.after is not None and happened.after.outcome in _SILENT
    return bool(record.rule or (silent and record.reason))


_SILENT = frozenset({Outcome.UNKNOWN, Outcome.UNOBSERVED})
"""What the wire may say without a clause: that nothing was heard, or that nothing left; with its fixed word."""


def _body(history: History, told: list[Happened]) -> Body:
    removed = removed_of(history.events[:1]) if told and told[0].record is not None else None
    if any(audit_bodies(history)):
        return Body.MISSING
    if any(h.event.body is None and h.record is not None and digest_of(h.event, h.record) for h in told):
        return Body.ERASED
    return Body.REMOVED if removed is not None else Body.PRESENT
