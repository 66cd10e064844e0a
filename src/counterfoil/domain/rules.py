"""The decisions made inside the write transaction: pure functions of an operation's history and the store's clock."""

from __future__ import annotations

import math

import msgspec

from counterfoil.domain.attempt import Attempt, Fold, contradiction, fold, settle
from counterfoil.domain.care import looks_granted
from counterfoil.domain.command import Amendment, Declined, NewEvent, Rule
from counterfoil.domain.contract import Contract
from counterfoil.domain.decision import GIVEN_UP, changed_since
from counterfoil.domain.elapsed import since_first_claim
from counterfoil.domain.event import (
    Begun,
    Decided,
    EventKind,
    History,
    Noted,
    attempts_of,
    encode,
    first_begun,
    is_followed,
    is_recorded,
)
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.fence import against_fence
from counterfoil.domain.operation import Operation
from counterfoil.domain.override import may_go_beside
from counterfoil.domain.payload import content, gone_said, is_intact, salted_digest
from counterfoil.domain.permission import Permitted, Sought, is_final, permit, waits_for
from counterfoil.domain.record import refuse_unreadable
from counterfoil.domain.retry import NO_ATTEMPT, RetryDecision, Situation, decide_retry
from counterfoil.domain.schedule import FOLLOW, LOOK, RECOVER, REPLAY, REST, REVIEW, Next, follow_until, next_step
from counterfoil.domain.words import AttemptClass, Basis, Discrepancy, Dispatch, Disposition, Finding, Outcome, Source

REPEATS_RECORDED_MAX = 16
"""Differing repetitions kept as events; more would let a caller grow the store without sending anything."""
RECORDED = "this evidence is recorded already"
CONTRACT_CHANGED = "its contract changed since the receipt was written, and no person has looked at that"
CODE_CHANGED = "the action's own code changed since the receipt was written, and no person has looked at that"
PAYLOAD_CHANGED = "its payload is not the one whose digest is on record: `counterfoil verify` says more"
FIRST = (None, Basis.NOT_SENT)
"""What may be asked for where nothing was attempted; every other basis is about an attempt, and would be a pretext."""
NOTHING_SOUGHT = Sought()
"""No policy was ever adopted."""


class Moved(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An operation after one more piece of evidence."""

    operation: Operation
    next: Next


def advance(  # noqa: PLR0913 - everything that moves an operation
    operation: Operation,
    attempts: tuple[Attempt, ...],
    discrepancy: Discrepancy,
    evidence: Evidence,
    contract: Contract,
    *,
    follows: bool,
    jitter: float = 0.0,
    granted: int = 0,
) -> Moved:
    """Fold one more piece of evidence into an operation; what it says happened is never lowered.

    Args:
        operation: as it stood.
        attempts: as they stood.
        discrepancy: as it stood.
        evidence: what came.
        contract: names what may be read and repeated next.
        follows: its receipt says that `accepted` is not the end.
        jitter: spreads the workers' reads.
        granted: reads that people added to the contract's budget.
    """
    moved, contradicts = settle(attempts, evidence)
    after = contradiction(discrepancy, evidence, moved, contradicts=contradicts)
    folded = fold(moved, after, follows=follows)
    step = next_step(contract, moved, folded, after, looks=operation.looks - granted, jitter=jitter)
    silent = evidence.finding is Finding.UNKNOWN and after is discrepancy
    if folded.unresolved and operation.step in (REST, REVIEW) and silent:
        step = Next(operation.step)  # nothing automatic takes it out of people's hands
    elif folded.unresolved and operation.disposition is Disposition.ABANDONED:
        # News brings back what was given up: unresolved like any other, and with people first.
        operation, step = msgspec.structs.replace(operation, disposition=Disposition.OPEN), Next(REVIEW)
    return Moved(operation=_project(operation, folded, after, evidence, step), next=step)


_ENDS = {Finding.SUCCEEDED: Outcome.SUCCEEDED, Finding.REJECTED: Outcome.REJECTED}


def ordinary_end(evidence: Evidence) -> Outcome | None:
    """The outcome of a first attempt that its own answer settles, without a fold; None where the fold must say."""
    if evidence.source is not Source.ANSWER or evidence.contradicts:
        return None
    return _ENDS.get(evidence.finding)


def _project(operation: Operation, folded: Fold, discrepancy: Discrepancy, evidence: Evidence, step: Next) -> Operation:
    settled = not folded.unresolved and folded.dispatch is not Dispatch.NOT_STARTED
    said = f"{evidence.finding.value}:{evidence.source.value}"
    return msgspec.structs.replace(
        operation,
        dispatch=folded.dispatch,
        outcome=folded.outcome,
        discrepancy=discrepancy,
        exposure=folded.exposure,
        unresolved=max(operation.unresolved, 1) if folded.unresolved else 0,
        settled_by=(operation.settled_by or said) if settled else "",
        held_by=operation.held_by if folded.dispatch is Dispatch.NOT_STARTED else "",
        step=step.step,
    )


def observe(evidence: Evidence, record: bytes, body: bytes | None, contract: Contract, *, jitter: float = 0.0) -> Rule:
    """Append evidence, whatever else was written meanwhile; the same record twice is one piece of evidence."""

    def rule(history: History, now: float) -> Amendment | Declined:
        if is_recorded(history.events, record):
            return Declined(because=(RECORDED,))
        attempts, discrepancy = attempts_of(history.events)
        if not attempts:
            return Declined(because=("nothing was attempted that evidence could speak of",))
        granted = looks_granted(history.events)
        moved = advance(
            history.operation, attempts, discrepancy, evidence, contract, follows=is_followed(history.events),
            jitter=jitter, granted=granted,
        )  # fmt: skip
        step, due_at = moved.next.step, _due_at(moved.next, evidence, now)
        if step == FOLLOW:
            due_at = min(due_at, followed_until(history, contract))
        if not moved.operation.unresolved:
            step, due_at = waits_for(history, moved.operation)
        return Amendment(
            operation=msgspec.structs.replace(moved.operation, step=step, due_at=due_at),
            events=(NewEvent(kind=EventKind.OBSERVED, record=record, body=body),),
        )

    return rule


def as_seen(seen: int, rule: Rule) -> Rule:
    """Run a person's rule only on what they saw; its own record, written before, is for the rule to recognise."""

    def guarded(history: History, now: float) -> Amendment | Declined:
        found = rule(history, now)
        changed = history.operation.seq != seen and isinstance(found, Amendment)
        return Declined(because=(changed_since(seen, history.operation.seq),)) if changed else found

    return guarded


def while_left(number: int, rule: Rule) -> Rule:
    """Run a rule only while that attempt is still left behind: its worker may have reported since it was looked for."""

    def guarded(history: History, now: float) -> Amendment | Declined:
        attempts, _ = attempts_of(history.events)
        if not attempts[number - 1].left:
            return Declined(because=("its worker has reported back",))
        return rule(history, now)

    return guarded


def followed_until(history: History, contract: Contract) -> float:
    """Seconds since the epoch until which it is followed; reads that people added are made whatever the time is."""
    attempts, _ = attempts_of(history.events)
    return math.inf if looks_granted(history.events) else follow_until(contract, attempts)


def _due_at(step: Next, evidence: Evidence, now: float) -> float:
    """When the next step is due: never before a negative look may count, nor before the provider wants to be asked."""
    if not step.step:
        return 0.0
    facts = evidence.facts
    earliest = facts.get("earliest") or 0.0
    retry_after = evidence.retry_after_seconds or facts.get("retry_after_seconds") or 0.0
    return max(now + step.after_seconds, float(earliest), now + float(retry_after))


def withdraw(evidence: Evidence, record: bytes, body: bytes | None) -> Rule:
    """Say of a first claim that was interrupted before anything left that it was not sent."""

    def rule(history: History, now: float) -> Amendment | Declined:
        del now
        attempts, discrepancy = attempts_of(history.events)
        if history.operation.seq != 1 or len(attempts) != 1:
            return Declined(because=("somebody else wrote to it",))
        moved, _ = settle(attempts, evidence)
        folded = fold(moved, discrepancy, follows=False)
        operation = _project(history.operation, folded, discrepancy, evidence, Next())
        operation = msgspec.structs.replace(operation, due_at=0.0)
        return Amendment(operation=operation, events=(NewEvent(kind=EventKind.OBSERVED, record=record, body=body),))

    return rule


def hand_over(contract: Contract, because: tuple[str, ...]) -> Rule:
    """Pass an unresolved operation on from a step that cannot be taken: from looks to a replay, and then to a person.

    Its outcome stays what it is. Whoever claimed an attempt meanwhile has it in hand, and nothing is passed on.
    """

    def rule(history: History, now: float) -> Amendment | Declined:
        operation = history.operation
        if not operation.unresolved or operation.step not in (LOOK, FOLLOW, REPLAY):
            return Declined(because=("nothing to hand over",))
        step = Next(REVIEW)
        if operation.step == LOOK:
            attempts, discrepancy = attempts_of(history.events)
            folded = fold(attempts, discrepancy, follows=is_followed(history.events))
            spent = contract.read_budget.looks_max
            step = next_step(contract, attempts, folded, discrepancy, looks=spent, jitter=0.0)
        record = encode(Decided(decision=step.step, by="house", reason="; ".join(because)))
        after = msgspec.structs.replace(operation, step=step.step, due_at=now + step.after_seconds)
        return Amendment(operation=after, events=(NewEvent(kind=EventKind.DECIDED, record=record),))

    return rule


def claim_again(
    begun: Begun,
    contract: Contract,
    *,
    longest_delivery: float | None,
    automatic: bool,
    basis: Basis | None = None,
    sought: Sought = NOTHING_SOUGHT,
) -> Rule:
    """Claim a further attempt on a recorded basis, or the first of an operation that was only proposed.

    Basis and permission are judged here, from the history under the write lock, so that no evidence, no expiry and
    no decision can slip in between.
    """

    def rule(history: History, now: float) -> Amendment | Declined:
        refuse_unreadable(history.events)
        attempts, discrepancy = attempts_of(history.events)
        if any(a.token == begun.attempt.token for a in attempts):
            return Declined(because=("this attempt is claimed already",))
        against = _against_claim(history, begun, sought, basis)
        if against:
            return Declined(because=against)
        decision = RetryDecision(allowed=True, attempt_class=begun.attempt.attempt_class)
        if begun.fence is not None:
            against = _against_fence(history, begun, contract, sought)
            if against:
                return Declined(because=against)
            decision = RetryDecision(allowed=True, attempt_class=AttemptClass.FENCE)
        elif attempts:
            situation = Situation(
                contract=contract,
                attempts=attempts,
                discrepancy=discrepancy,
                now=now,
                elapsed=since_first_claim(history),
                longest_delivery=longest_delivery,
                one_shot=sought.terms.one_shot,
            )
            decision = decide_retry(situation, automatic=automatic, basis=basis)
            if not decision.allowed:
                return Declined(because=decision.because)
        elif basis not in FIRST:
            return Declined(because=(NO_ATTEMPT,))
        permitted = permit(history, sought, decision, now)
        if not isinstance(permitted, Permitted):
            return permitted
        authorized = msgspec.structs.replace(
            begun,
            policy=sought.terms.digest,
            rule=sought.terms.rule,
            attempt=msgspec.structs.replace(begun.attempt, approval=permitted.approval),
        )
        started = _start(history, authorized, decision, now)
        return msgspec.structs.replace(started, beside=may_go_beside(history.events, sought.terms))

    return rule


def _against_fence(history: History, begun: Begun, contract: Contract, sought: Sought) -> tuple[str, ...]:
    """A fence proves something of the contract that the receipt stands on, and of no other."""
    attempts, discrepancy = attempts_of(history.events)
    first = first_begun(history.events)
    if first is not None and first.contract != begun.contract:
        return (CONTRACT_CHANGED,)
    return against_fence(
        contract, begun.fence or 0, attempts, discrepancy, one_shot=sought.terms.one_shot, reason=begun.reason
    )


def _against_claim(history: History, begun: Begun, sought: Sought, basis: Basis | None) -> tuple[str, ...]:
    operation = history.operation
    # Where people are asked, what has changed is theirs to see: their approval is held against it, field by field.
    unseen = sought.automatic and sought.proposed is None
    first = first_begun(history.events) if unseen else None
    failed = {
        f"permission is {operation.permission.value}": is_final(operation.permission, sought, basis),
        GIVEN_UP: operation.disposition is Disposition.ABANDONED,
        "the operation was closed": operation.disposition is Disposition.CLOSED,
        "the outcome is settled": operation.outcome is Outcome.SUCCEEDED,
        CONTRACT_CHANGED: first is not None and first.contract != begun.contract,
        CODE_CHANGED: first is not None and first.code != begun.code,
        PAYLOAD_CHANGED: not is_intact(history),
    }
    return gone_said(history) or tuple(reason for reason, fails in failed.items() if fails)


def _start(
    history: History,
    begun: Begun,
    decision: RetryDecision,
    now: float,
) -> Amendment:
    attempts, discrepancy = attempts_of(history.events)
    attempt = msgspec.structs.replace(
        begun.attempt,
        number=len(attempts) + 1,
        attempt_class=decision.attempt_class or begun.attempt.attempt_class,
    )
    first = first_begun(history.events)
    record = msgspec.structs.replace(
        begun,
        attempt=attempt,
        provider_key=first.provider_key if first else begun.provider_key,
        basis=decision.basis.value if decision.basis else "",
        because=decision.because,
        payload_digest="",
        steady=history.read,
    )
    folded = fold((*attempts, attempt), discrepancy, follows=record.follows if first is None else first.follows)
    deadline = now + attempt.send_seconds
    operation = msgspec.structs.replace(
        history.operation,
        dispatch=folded.dispatch, outcome=folded.outcome, exposure=folded.exposure,
        unresolved=max(history.operation.unresolved, 1), attempts=attempt.number, settled_by="", held_by="",
        step=RECOVER, due_at=deadline, worker=attempt.worker, deadline=deadline,
    )  # fmt: skip
    event = NewEvent(kind=EventKind.BEGUN, record=encode(record))
    return Amendment(operation=operation, events=(event,), claims=True)


def repeated(body: bytes) -> Rule:
    """Record that a call came again with other immaterial values; they are kept and never sent.

    Args:
        body: salt and the payload as it came; erasable, like the first.
    """

    def rule(history: History, now: float) -> Amendment | Declined:
        del now
        seen = [e for e in history.events if e.kind is EventKind.REPEATED]
        if len(seen) >= REPEATS_RECORDED_MAX or any(e.body and content(e.body) == content(body) for e in seen):
            return Declined(because=("this repetition is recorded already",))
        record = encode(Noted(note="repeated", facts={"payload": salted_digest(body)}))
        event = NewEvent(kind=EventKind.REPEATED, record=record, body=body)
        return Amendment(operation=history.operation, events=(event,))

    return rule
