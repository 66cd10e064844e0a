"""Permission by people: asked, given, refused, taken back, or run out; nothing is sent by any of it."""

from __future__ import annotations

import msgspec

from counterfoil.domain.approval import EXPIRED, STALE, UNANSWERED, Authority, binding, is_stale
from counterfoil.domain.command import Amendment, Declined, Rule
from counterfoil.domain.decision import (
    GIVEN_UP,
    Decider,
    Judged,
    Verb,
    authority,
    decided,
    event_of,
    not_entitled,
)
from counterfoil.domain.event import Decided, History
from counterfoil.domain.hold import is_callers
from counterfoil.domain.operation import Operation
from counterfoil.domain.payload import gone_said
from counterfoil.domain.person import HOUSE, is_one_of, person
from counterfoil.domain.schedule import allowed_step
from counterfoil.domain.words import Dispatch, Disposition, Permission


def approve(who: Decider, *, bound: str, policy: str | None = None) -> Rule:
    """Allow what was asked; with the last of the people the policy names, it is authorized.

    Args:
        who: never the requester, and one of the approvers where the policy names any.
        bound: the `binding` they were shown.
        policy: the digest of the policy in force; None: the claim alone judges by it.
    """

    def judge(history: History, now: float) -> Judged | Declined:
        operation, standing = history.operation, authority(history)
        proposed = standing.proposed
        against = gone_said(history) + _against_approval(operation, standing, who, bound, now)
        if policy is not None and is_stale(standing, policy):
            against += (STALE,)
        if against or proposed is None:
            return Declined(because=against)
        facts = {"binding": bound, "of": proposed.required.people}
        if len(standing.approved_by) + 1 < proposed.required.people:
            return operation, facts
        after = msgspec.structs.replace(operation, permission=Permission.AUTHORIZED)
        if not operation.unresolved:
            callers = is_callers(history.events)
            step = allowed_step(operation.dispatch, operation.outcome, unused=True, callers=callers)
            due_at = now + proposed.required.seconds if step else 0.0
            after = msgspec.structs.replace(after, step=step, due_at=due_at)
        return after, facts

    return decided(who, Verb.APPROVE, judge)


def _against_approval(
    operation: Operation, standing: Authority, who: Decider, bound: str, now: float
) -> tuple[str, ...]:
    proposed = standing.proposed
    if proposed is None:
        return ("nobody is asked about it: its policy needs no approval",)
    required = proposed.required
    failed = {
        f"permission is {operation.permission.value}": operation.permission is not Permission.PENDING,
        GIVEN_UP: operation.disposition is Disposition.ABANDONED,
        UNANSWERED: operation.permission is Permission.PENDING and now > standing.ends_at,
        "it was shown something else than what is asked now": bound != binding(proposed),
        f"{person(who.by)} has approved it already": is_one_of(who.by, standing.approved_by),
    }
    refused = tuple(reason for reason, fails in failed.items() if fails)
    return refused + not_entitled(operation, who.by, required.approvers)


def deny(who: Decider) -> Rule:
    """Answer no, for good: it is never sent."""

    def judge(history: History, now: float) -> Judged | Declined:
        operation, standing = history.operation, authority(history)
        if standing.proposed is None or operation.permission is not Permission.PENDING:
            return Declined(because=(f"permission is {operation.permission.value}, and nobody is asked",))
        if now > standing.ends_at:
            return Declined(because=(UNANSWERED,))
        refused = not_entitled(operation, who.by, standing.proposed.required.approvers)
        return Declined(because=refused) if refused else (_ended(operation, Permission.DENIED), {})

    return decided(who, Verb.DENY, judge)


def revoke(who: Decider) -> Rule:
    """Take permission back: nothing is claimed after it; what was claimed before is allowed to finish."""

    def judge(history: History, now: float) -> Judged | Declined:
        del now
        operation = history.operation
        settled = operation.dispatch is not Dispatch.NOT_STARTED and not operation.unresolved and not operation.step
        failed = {
            "its outcome is settled": settled,
            f"permission is {operation.permission.value}": operation.permission
            not in (Permission.PENDING, Permission.AUTHORIZED),
        }
        refused = tuple(reason for reason, fails in failed.items() if fails)
        return Declined(because=refused) if refused else (_ended(operation, Permission.REVOKED), {})

    return decided(who, Verb.REVOKE, judge)


def _ended(operation: Operation, permission: Permission) -> Operation:
    """Permission is over; where nothing may have left, so is the operation. An unresolved one keeps its next step."""
    after = msgspec.structs.replace(operation, permission=permission)
    if operation.unresolved:
        return after
    return msgspec.structs.replace(after, disposition=Disposition.CLOSED, held_by="", step="", due_at=0.0)


def expire() -> Rule:
    """Record that a question or an approval came to its end: a fact of the clock, and nobody's answer."""

    def rule(history: History, now: float) -> Amendment | Declined:
        found = expiry(history, now)
        return Declined(because=("its permission has not ended",)) if found is None else found

    return rule


def expiry(history: History, now: float) -> Amendment | None:
    """The amendment that records an expiry; None while there is nothing that has ended."""
    operation, standing = history.operation, authority(history)
    waits = operation.permission in (Permission.PENDING, Permission.AUTHORIZED)
    if standing.proposed is None or not waits or now <= standing.ends_at:
        return None
    why = UNANSWERED if operation.permission is Permission.PENDING else EXPIRED
    after = msgspec.structs.replace(operation, permission=Permission.EXPIRED)
    if not operation.unresolved:
        after = msgspec.structs.replace(after, held_by="", step="", due_at=0.0)
    said = Decided(decision=Verb.EXPIRE.value, by=HOUSE, reason=why, facts={"ended_at": standing.ends_at})
    return Amendment(operation=after, events=(event_of(said),))
