"""May this attempt go? Judged inside the claim's transaction, from the events and by the store's clock."""

from __future__ import annotations

import msgspec

from counterfoil.domain.approval import USED_UP, Authority, Proposed, changed
from counterfoil.domain.command import Amendment, Declined, NewEvent
from counterfoil.domain.consent import expiry
from counterfoil.domain.decision import Verb, authority, is_decision
from counterfoil.domain.event import EventKind, History, encode
from counterfoil.domain.hold import is_callers
from counterfoil.domain.operation import Operation
from counterfoil.domain.override import counted, overridden_by, override_stands
from counterfoil.domain.retry import RetryDecision
from counterfoil.domain.schedule import APPROVE, CALL, allowed_step
from counterfoil.domain.terms import NO_POLICY, Terms
from counterfoil.domain.words import AttemptClass, Basis, Dispatch, Disposition, Outcome, Permission

NOT_DECIDED = "no override is on record for what stands there now"
NOT_FORMED = "it takes people, and what they would be asked cannot be formed: its payload is gone"
MORE_TOLD = "the last who decided it was told that it takes more people"


class Sought(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt would be made under, as it stands now."""

    terms: Terms = NO_POLICY
    proposed: Proposed | None = None
    """What people would be asked; None where nobody was ever asked and the policy asks nobody."""
    automatic: bool = False
    """No person and no caller asks for the attempt: nothing is asked anew because a time has passed."""


class Permitted(msgspec.Struct, frozen=True, kw_only=True):
    """It may go."""

    approval: int = 0
    """Number of the event that approved it; 0 where nobody had to."""


def was_asked(history: History) -> bool:
    """Somebody was asked about it before."""
    return any(event.kind is EventKind.PROPOSED for event in history.events)


def needs_people(history: History, terms: Terms) -> bool:
    """The policy asks somebody, or somebody was asked before: then nothing goes without an answer any more."""
    return terms.required is not None or was_asked(history)


def is_final(permission: Permission, sought: Sought, basis: Basis | None) -> bool:
    """Whether nothing can be made of this permission now: no question is open that this attempt could ask again.

    Args:
        permission: as it is on record.
        sought: what the attempt would be made under.
        basis: an override of what has expired is a permission of its own.
    """
    match permission:
        case Permission.AUTHORIZED:
            return False
        case Permission.EXPIRED:
            return sought.proposed is None and basis is not Basis.OPERATOR_OVERRIDE
        case Permission.PENDING:
            return sought.proposed is None or basis is Basis.OPERATOR_OVERRIDE
        case _:
            return True


def permit(history: History, sought: Sought, decision: RetryDecision, now: float) -> Permitted | Amendment | Declined:
    """Permit one attempt, or ask people anew, or record that their answer has ended, or decline.

    Args:
        history: the operation, under the write lock.
        sought: what the attempt would be made under.
        decision: the retry decision that allows it; its class is what an approval must allow.
        now: seconds since the epoch, by the store's clock.
    """
    if sought.terms.refused:
        return Declined(because=(sought.terms.refused,))
    if decision.basis is Basis.OPERATOR_OVERRIDE:
        return _overridden(history, sought.terms)
    if sought.proposed is None:
        return Declined(because=(NOT_FORMED,)) if needs_people(history, sought.terms) else Permitted()
    return _by_people(history, sought, sought.proposed, decision, now)


def _not(permission: Permission) -> Declined:
    return Declined(because=(f"permission is {permission.value}",))


def _overridden(history: History, terms: Terms) -> Permitted | Declined:
    """An override is its own permission: as many people decided it as were asked, then and by the policy in force."""
    everybody = overridden_by(history.events)
    if not everybody:
        return Declined(because=(NOT_DECIDED,))
    people = counted(everybody, terms)
    if len(people) < terms.override_people:
        return Declined(because=(f"{len(people)} of {terms.override_people} people have decided it",))
    if not override_stands(history.events):
        return Declined(because=(MORE_TOLD,))
    return Permitted()


def _by_people(
    history: History, sought: Sought, proposed: Proposed, decision: RetryDecision, now: float
) -> Permitted | Amendment | Declined:
    standing = authority(history)
    if standing.proposed is None:
        return ask(history.operation, proposed, ("the policy asks for an approval",), now)
    differs = changed(standing.proposed.bound, proposed.bound)
    if differs:
        return ask(history.operation, proposed, tuple(f"{name} changed" for name in differs), now)
    ended = expiry(history, now)
    if ended is not None:
        return ended if sought.automatic else _asked_after(ended, proposed, now)
    if standing.permission is Permission.EXPIRED and not sought.automatic:
        return ask(history.operation, proposed, ("it expired",), now)
    if standing.permission is not Permission.AUTHORIZED:
        return _not(standing.permission)
    return _within(standing, decision.attempt_class or AttemptClass.FIRST)


def _within(standing: Authority, attempt_class: AttemptClass) -> Permitted | Declined:
    """One attempt of this class, within what the approval allows."""
    required = standing.proposed.required if standing.proposed else None
    assert required is not None  # noqa: S101 - its caller has compared the proposal
    if attempt_class not in required.attempts:
        return Declined(because=(f"the approval allows no attempt of class {attempt_class.value}",))
    if standing.uses >= required.uses:
        return Declined(because=(USED_UP,))
    return Permitted(approval=standing.approval)


def ask(operation: Operation, proposed: Proposed, because: tuple[str, ...], now: float) -> Amendment:
    """Put the question to people, anew where it was put before; whatever they had answered is over."""
    asked = msgspec.structs.replace(proposed, because=because)
    after = msgspec.structs.replace(operation, permission=Permission.PENDING, held_by="")
    if not operation.unresolved:
        after = msgspec.structs.replace(after, step=APPROVE, due_at=now + proposed.required.seconds)
    return Amendment(operation=after, events=(NewEvent(kind=EventKind.PROPOSED, record=encode(asked)),))


def _asked_after(ended: Amendment, proposed: Proposed, now: float) -> Amendment:
    """Record that an answer has ended, as itself, and put the question anew: its caller asks again."""
    asked = ask(ended.operation, proposed, ("it expired",), now)
    return msgspec.structs.replace(asked, events=(*ended.events, *asked.events))


def waits_for(history: History, operation: Operation) -> tuple[str, float]:
    """The step, and when it is due, of an operation of which evidence has left nothing unresolved.

    Args:
        history: as it stood before that evidence.
        operation: as it stands after it.
    """
    step, standing = "", authority(history)
    if operation.disposition is Disposition.ABANDONED:
        return "", 0.0  # nothing is sent for it any more, whatever people had allowed
    if operation.permission is Permission.PENDING:
        step = "" if operation.outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED) else APPROVE
    elif operation.permission is Permission.AUTHORIZED and standing.approval:
        later = [event for event in history.events if event.seq > standing.approval]
        step = allowed_step(
            operation.dispatch,
            operation.outcome,
            unused=all(event.kind is not EventKind.BEGUN for event in later),
            callers=is_callers(history.events),
            worked_on=not any(is_decision(event, Verb.ABANDON) for event in later),
        )
    elif operation.permission is Permission.AUTHORIZED and operation.dispatch is Dispatch.NOT_STARTED:
        step = CALL if is_callers(history.events) else ""
    return (step, standing.ends_at) if step else ("", 0.0)
