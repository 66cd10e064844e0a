"""What only a named person may do: each decision is one event and one compare-and-set on the version they saw.

A decision about permission, exposure or ownership is never evidence: none of them touches an outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from counterfoil.domain.approval import Authority, authority_of, decided_of
from counterfoil.domain.command import Amendment, Declined, NewEvent, Rule
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import Decided, Event, EventKind, History, attempts_of, encode
from counterfoil.domain.operation import Operation
from counterfoil.domain.person import HOUSE, NO_AGENT, is_agent, is_one_of, person, same

ALREADY = "this decision is recorded already"
NOT_OPEN = "nothing of it is unresolved"
GIVEN_UP = "the operation was abandoned"


class Verb(StrEnum):
    """Every decision by its word on record."""

    APPROVE = "approve"
    DENY = "deny"
    REVOKE = "revoke"
    EXPIRE = "expire"
    OVERRIDE = "override"
    RELEASE = "release"
    ABANDON = "abandon"
    WAIT = "wait_until"
    INVESTIGATE = "investigate"
    ASSIGN = "assign"
    ESCALATE = "escalate"
    RESOLVE = "resolve"
    CHANGE_POLICY = "change_policy"


HOUSE_DECIDES = frozenset({Verb.EXPIRE, Verb.ESCALATE})
"""What a rule on record does without a person."""


class Decider(msgspec.Struct, frozen=True, kw_only=True):
    """Who decides, why, how they were authenticated, and the last event of what they saw."""

    by: str
    reason: str = ""
    how: str = ""
    seen: int


Judged = tuple[Operation, dict[str, Any]]
Judge = Callable[[History, float], Judged | Declined]
"""What a decision would make of an operation, and the facts that go on record; or why it is not taken."""


def decided(who: Decider, verb: Verb, judge: Judge, *, said: dict[str, Any] | None = None) -> Rule:
    """One decision as one event, refused where anything was written since it was made; twice is once.

    Args:
        who: decides.
        verb: what kind of decision it is.
        judge: what it would make of the operation.
        said: what else they said, by the names of its facts: the same words about another thing are another decision.
    """
    _check(who, verb)

    def rule(history: History, now: float) -> Amendment | Declined:
        if _stands(history.events, who, verb, said or {}):
            return Declined(because=(ALREADY,))
        last = history.operation.seq
        if who.seen != last:
            return Declined(because=(changed_since(who.seen, last),))
        found = judge(history, now)
        if isinstance(found, Declined):
            return found
        operation, facts = found
        record = Decided(
            decision=verb.value, by=who.by, reason=who.reason, how=who.how, seen_seq=who.seen, facts=facts
        )  # fmt: skip
        return Amendment(operation=operation, events=(event_of(record),))

    return rule


def changed_since(seen: int, last: int) -> str:
    """What whoever decides on something older is told."""
    return f"it changed since it was seen: event {seen} was its last, now it is {last}"


def _stands(events: tuple[Event, ...], who: Decider, verb: Verb, said: dict[str, Any]) -> bool:
    later = (decided_of(e) for e in events if e.seq > who.seen and e.kind is EventKind.DECIDED)
    theirs = (d for d in later if d.decision == verb.value and same(d.by, who.by) and d.seen_seq == who.seen)
    return any(said.items() <= d.facts.items() for d in theirs)


def _check(who: Decider, verb: Verb) -> None:
    if not who.by:
        raise BadValue("by", who.by, wanted="a decision has a name to it")
    if who.by != HOUSE and not who.reason:
        raise BadValue("reason", who.reason, wanted="a decision says why")
    if is_agent(who.by):
        raise BadValue("by", who.by, wanted=NO_AGENT)
    if same(who.by, HOUSE) and verb not in HOUSE_DECIDES:
        raise BadValue("by", who.by, wanted="a person or a service: the house decides nothing of this kind")


def event_of(said: Decided) -> NewEvent:
    """One decision as the event it is."""
    return NewEvent(kind=EventKind.DECIDED, record=encode(said))


def is_decision(event: Event, verb: Verb) -> bool:
    """Whether an event is a decision of this kind."""
    return event.kind is EventKind.DECIDED and decided_of(event).decision == verb.value


def authority(history: History) -> Authority:
    """Permission and the approval that stands, of one operation's whole history."""
    attempts, _ = attempts_of(history.events)
    return authority_of(history.events, attempts)


def not_entitled(operation: Operation, by: str, entitled: tuple[str, ...]) -> tuple[str, ...]:
    """Why this name may not decide it; empty where it may."""
    failed = {
        f"{by} is an agent, and an agent decides nothing": is_agent(by),
        f"{person(by)} asked for it, so somebody else decides": same(by, operation.actor),
        f"{person(by)} is not one of {', '.join(entitled)}": bool(entitled) and not is_one_of(by, entitled),
    }
    return tuple(reason for reason, fails in failed.items() if fails)
