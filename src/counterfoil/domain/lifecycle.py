"""The derived names: lifecycle for people and agents, and what may be done next. Nothing here is stored."""

from __future__ import annotations

from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import REST, REVIEW, WAITING
from counterfoil.domain.words import Dispatch, Disposition, Lifecycle, Outcome, Permission


def outcome_now(operation: Operation, now: float, *, alive: bool) -> Outcome:
    """The outcome as it reads at `now`: started, unobserved and not provably in hand is already unknown.

    Args:
        operation: the stored projection.
        now: seconds since the epoch, by the store's clock.
        alive: its worker's lock is provably held.
    """
    if operation.dispatch is Dispatch.STARTED and operation.outcome is Outcome.UNOBSERVED:
        return Outcome.UNOBSERVED if alive and now <= operation.deadline else Outcome.UNKNOWN
    return operation.outcome


def lifecycle(operation: Operation, outcome: Outcome) -> Lifecycle:
    """Name where an operation stands.

    Args:
        operation: the stored projection.
        outcome: as it reads now (`outcome_now`).
    """
    if operation.unresolved and operation.step in (REVIEW, REST):
        return Lifecycle.MANUAL_REVIEW
    match outcome:
        case Outcome.UNOBSERVED:
            return Lifecycle.PLANNED if operation.dispatch is Dispatch.NOT_STARTED else Lifecycle.SUBMITTED
        case Outcome.UNKNOWN:
            return Lifecycle.RECONCILING if operation.looks else Lifecycle.OUTCOME_UNKNOWN
        case Outcome.REJECTED:
            absent = operation.settled_by.startswith("absent")
            return Lifecycle.SAFE_TO_RETRY if absent else Lifecycle.REJECTED
        case _:
            return Lifecycle(outcome.value)


def permission_now(operation: Operation, now: float) -> Permission:
    """The permission as it reads at `now`: a question or an answer whose time is over has expired, recorded or not.

    Args:
        operation: the stored projection.
        now: seconds since the epoch, by the store's clock.
    """
    ends = operation.step in WAITING and operation.due_at > 0.0
    return Permission.EXPIRED if ends and now > operation.due_at else operation.permission


GET_OUTCOME, WAIT, ASK_OPERATOR = "get_outcome", "wait", "ask_operator"
CALL_AGAIN, USE_RESULT = "call_again", "use_result"


def permitted(operation: Operation, outcome: Outcome, permission: Permission) -> tuple[str, ...]:
    """The steps an agent may take next; sending it again under another name is never among them.

    Args:
        operation: the stored projection.
        outcome: as it reads now (`outcome_now`).
        permission: as it reads now (`permission_now`).
    """
    if operation.unresolved or outcome is Outcome.UNKNOWN:
        return (GET_OUTCOME, WAIT, ASK_OPERATOR)
    if operation.held_by:
        return (GET_OUTCOME, WAIT, ASK_OPERATOR)
    if operation.dispatch is Dispatch.NOT_STARTED and permission is Permission.PENDING:
        return (GET_OUTCOME, WAIT, ASK_OPERATOR)
    final = permission in (Permission.DENIED, Permission.REVOKED) or operation.disposition is Disposition.ABANDONED
    if operation.dispatch is Dispatch.NOT_STARTED and final:
        return (GET_OUTCOME, ASK_OPERATOR)
    if operation.dispatch is Dispatch.NOT_STARTED:
        return (CALL_AGAIN, GET_OUTCOME)
    if outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED):
        return (USE_RESULT, GET_OUTCOME)
    return (GET_OUTCOME, ASK_OPERATOR)
