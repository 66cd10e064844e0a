"""Who looks after an unresolved operation, how, and until when; no outcome ever comes of it."""

from __future__ import annotations

from typing import Any

import msgspec

from counterfoil.domain.approval import decided_of
from counterfoil.domain.command import Declined, Rule
from counterfoil.domain.contract import Contract
from counterfoil.domain.decision import NOT_OPEN, Decider, Judged, Verb, decided
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import Event, EventKind, History
from counterfoil.domain.schedule import FOLLOW, LOOK, RECOVER, REPLAY, REST, REVIEW, WAITING
from counterfoil.domain.words import Outcome

LOOKS_GRANTED_MAX = 20
"""Reads one `investigate` may add to a budget."""
WAIT_SECONDS_MAX = 366 * 86_400.0
"""Longer than a year is no wait, it is an abandonment."""


def wait_until(who: Decider, until: float) -> Rule:
    """Put the next step off; no outcome ever comes of waiting.

    Args:
        who: anybody named.
        until: seconds since the epoch, at most a year ahead.
    """

    def judge(history: History, now: float) -> Judged | Declined:
        operation = history.operation
        failed = {
            NOT_OPEN: not operation.unresolved,
            "that time has passed": until <= now,
            "that is more than a year ahead": until > now + WAIT_SECONDS_MAX,
            "its sender has not reported back yet": operation.step == RECOVER,
            "it was abandoned": operation.step == REST,
        }
        refused = tuple(reason for reason, fails in failed.items() if fails)
        if refused:
            return Declined(because=refused)
        return msgspec.structs.replace(operation, due_at=until), {"until": until}

    return decided(who, Verb.WAIT, judge, said={"until": until})


def investigate(who: Decider, *, channel: str, whom: str, looks: int, contract: Contract | None) -> Rule:
    """Record by which other authorised channel it is looked into, by whom; it may add reads to the budget.

    Args:
        who: anybody named.
        channel: e.g. `provider's support, ticket 4711`.
        whom: who looks.
        looks: reads to add to the budget; 0 leaves it.
        contract: says whether there is a look at all; None where no read is added.
    """
    if not 0 <= looks <= LOOKS_GRANTED_MAX:
        raise BadValue("looks", looks, wanted=f"0 to {LOOKS_GRANTED_MAX}")
    facts: dict[str, Any] = {"channel": channel, "whom": whom} | ({"looks": looks} if looks else {})

    def judge(history: History, now: float) -> Judged | Declined:
        operation = history.operation
        if not operation.unresolved:
            return Declined(because=(NOT_OPEN,))
        if not looks:
            return operation, facts
        if contract is None or contract.reconcile != "allowed" or not contract.looks:
            return Declined(because=("its contract knows no look",))
        again = operation.step in (REVIEW, REPLAY)
        step = FOLLOW if operation.outcome is Outcome.ACCEPTED else LOOK
        after = msgspec.structs.replace(operation, step=step, due_at=now) if again else operation
        return after, facts

    return decided(who, Verb.INVESTIGATE, judge, said=facts)


def looks_granted(events: tuple[Event, ...]) -> int:
    """Reads that people added to an operation's budget."""
    said = (decided_of(e) for e in events if e.kind is EventKind.DECIDED)
    return sum(int(d.facts.get("looks", 0)) for d in said if d.decision == Verb.INVESTIGATE.value)


def assign(who: Decider, owner: str) -> Rule:
    """Name who acts on it from now on."""

    def judge(history: History, now: float) -> Judged | Declined:
        del now
        operation = history.operation
        if operation.owner == owner:
            return Declined(because=(f"{owner} owns it already",))
        return msgspec.structs.replace(operation, owner=owner), {"from": operation.owner, "to": owner}

    return decided(who, Verb.ASSIGN, judge, said={"to": owner})


def escalate(who: Decider, *, to: str) -> Rule:
    """Say to whom an operation was passed up, by a person or because its time had come."""

    def judge(history: History, now: float) -> Judged | Declined:
        del now
        operation = history.operation
        waits = operation.unresolved or operation.step in WAITING
        return (operation, {"to": to}) if waits else Declined(because=(NOT_OPEN,))

    return decided(who, Verb.ESCALATE, judge, said={"to": to})
