"""Retention: what may be removed or erased of an operation, decided under the write lock; and what is left of it.

Nothing here touches an outcome, and nothing that is removed or erased can be sent again because of it.
"""

from __future__ import annotations

import msgspec

from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amendment, Declined, NewEvent, Rule
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import (
    ERASE,
    Decided,
    Event,
    EventKind,
    History,
    Removed,
    attempts_of,
    encode,
    evidence_digest,
    first_begun,
    intended_of,
    quiet_since,
    removed_of,
)
from counterfoil.domain.operation import Operation
from counterfoil.domain.result import kept_result, result_gone
from counterfoil.domain.words import Discrepancy, Permission

HOUSE = "house"
"""Who removes and erases by a policy in force."""

UNRESOLVED = "it is unresolved"
CONTRADICTED = "evidence contradicts evidence"
STEP_OWED = "a step is still owed"
HELD = "it is held by another operation"
PENDING = "it waits for a permission"
BROKEN = "its record does not verify"
TOO_YOUNG = "its retention has not passed"
NOTHING_LEFT = "nothing of it is left to erase"
REMOVED_ALREADY = "its record was removed already"


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy in force says of one operation, and when it begins to."""

    after_seconds: float
    """Since something last happened to it."""
    rule: str
    """The sensitivity class it follows."""
    policy: str
    """Digest of the policy."""
    by: str = HOUSE


def against(history: History) -> tuple[str, ...]:
    """Why nothing of an operation may be removed or erased, whoever decides it; empty where something may."""
    operation = history.operation
    failed = {
        UNRESOLVED: operation.unresolved > 0 or operation.exposure > 0,
        CONTRADICTED: operation.discrepancy is Discrepancy.OPEN,
        STEP_OWED: operation.step != "",
        HELD: operation.held_by != "",
        PENDING: operation.permission is Permission.PENDING,
        # What cannot be true is kept as it is found, for whoever has to explain it.
        BROKEN: bool(audit(history)),
    }
    return tuple(reason for reason, fails in failed.items() if fails)


def _too_young(operation: Operation, due: Due, now: float) -> tuple[str, ...]:
    return (TOO_YOUNG,) if now - operation.updated_at < due.after_seconds else ()


# -- receipts ----------------------------------------------------------------------------------------------------------


def remove(due: Due) -> Rule:
    """Put one event in the place of all others: the operation's own row stays, and refuses its key for ever."""

    def rule(history: History, now: float) -> Amendment | Declined:
        refused = against(history) + _too_young(history.operation, due, now)
        if refused:
            return Declined(because=refused)
        if history.events[-1].kind is EventKind.REMOVED:
            return Declined(because=(REMOVED_ALREADY,))
        event = NewEvent(kind=EventKind.REMOVED, record=encode(_left(history, due)))
        return Amendment(operation=history.operation, events=(event,))

    return rule


def _left(history: History, due: Due) -> Removed:
    """What the events came to. The columns are the fold of the events: `against` has verified that."""
    operation, events = history.operation, history.events
    before, begun = removed_of(events), first_begun(events)
    attempts, _ = attempts_of(events)
    asked = intended_of(events)
    if asked is None:
        raise InvariantBroken(f"{operation.id} verifies, and its first record does not say what was asked")
    observed = tuple(evidence_digest(e.record) for e in events if e.kind is EventKind.OBSERVED)
    return Removed(
        events=operation.seq,
        head=history.head.hex(),
        intent=msgspec.structs.replace(asked, owner=operation.owner),
        created_at=operation.created_at,
        updated_at=operation.updated_at,
        permission=operation.permission,
        disposition=operation.disposition,
        discrepancy=operation.discrepancy,
        attempts=attempts,
        settled_by=operation.settled_by,
        looks=operation.looks,
        looked_at=_looked_at(events, before),
        quiet_since=quiet_since(events),
        provider_key=begun.provider_key if begun else "",
        contract=begun.contract if begun else "",
        contract_id=begun.contract_id if begun else "",
        follows=begun.follows if begun else False,
        assumptions=begun.assumptions if begun else {},
        observed=(before.observed if before else ()) + observed,
        returned=kept_result(history) is not None or result_gone(history) != "",
        rule=due.rule,
        policy=due.policy,
        by=due.by,
    )


def _looked_at(events: tuple[Event, ...], before: Removed | None) -> float | None:
    paid = [e.at for e in events if e.kind is EventKind.LOOKING]
    return paid[-1] if paid else before.looked_at if before else None


# -- bodies ------------------------------------------------------------------------------------------------------------


def erase(*, by: str, reason: str, how: str = "", due: Due | None = None) -> Rule:
    """Null every body of an operation: its payload and what a replay would return; their digests stay.

    Args:
        by: who decides it.
        reason: why, in their words.
        how: how they were authenticated.
        due: the retention by which it happens; None: a person's decision, at any age.
    """

    def rule(history: History, now: float) -> Amendment | Declined:
        refused = against(history) + (_too_young(history.operation, due, now) if due else ())
        if refused:
            return Declined(because=refused)
        bodies = sum(event.body is not None for event in history.events)
        if not bodies:
            return Declined(because=(NOTHING_LEFT,))
        facts = {"bodies": bodies, **({"rule": due.rule, "policy": due.policy} if due else {})}
        said = Decided(decision=ERASE, by=by, reason=reason, how=how, seen_seq=history.operation.seq, facts=facts)
        event = NewEvent(kind=EventKind.DECIDED, record=encode(said))
        return Amendment(operation=history.operation, events=(event,))

    return rule
