"""Why an operation stands where it stands and what is next, from its columns alone and never from prose by others."""

from __future__ import annotations

from counterfoil.cli.terminal import clipped, safe
from counterfoil.domain.event import Begun
from counterfoil.domain.lifecycle import permission_now
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import CALL, DISPATCH, FOLLOW, LOOK, RECOVER, REPLAY, REST
from counterfoil.domain.words import Discrepancy, Dispatch, Disposition, Outcome, Permission

TEXT_COLUMNS = 200
"""Of a name or a reason."""
_SETTLED_BY = {
    "answer": "the provider's answer",
    "late_answer": "a late answer",
    "look": "found by a look",
    "operator": "an operator's finding",
    "webhook": "a webhook",
}


_NOT_PERMITTED = {
    Permission.PENDING: "waits for people",
    Permission.EXPIRED: "its permission has expired",
    Permission.REVOKED: "its permission was revoked",
    Permission.DENIED: "it was denied",
}


def why(operation: Operation, outcome: Outcome, permission: Permission | None = None) -> str:
    """Say why an operation stands where it stands, from its columns alone.

    Args:
        operation: the stored projection.
        outcome: as it reads now.
        permission: as it reads now; None: as it is stored.
    """
    if operation.held_by and operation.dispatch is Dispatch.NOT_STARTED:
        return f"held by {operation.held_by}"
    if operation.discrepancy is Discrepancy.OPEN:
        return "evidence contradicts evidence"
    if operation.unresolved:
        return _stuck(operation, outcome)
    if operation.dispatch is Dispatch.NOT_STARTED:
        return _not_sent(operation, permission or operation.permission)
    finding, _, source = operation.settled_by.partition(":")
    if finding == "absent":
        return "a look proved it absent" if source == "look" else "a fence came first, by the provider's word"
    return _SETTLED_BY.get(source, source)


def basis(begun: Begun, *, otherwise: str) -> str:
    """On what an attempt rests, as its claim says: a recorded basis, or for a fence the person who decided it.

    Args:
        begun: the claim.
        otherwise: what a first attempt is called.
    """
    if begun.fence is not None:
        return f"a fence, decided by {clipped(begun.by, TEXT_COLUMNS)}: {clipped(begun.reason, TEXT_COLUMNS)}"
    if not begun.basis:
        return otherwise
    return f"{safe(begun.basis)}: {safe('; '.join(begun.because)) or 'no sentence'}"


def _not_sent(operation: Operation, permission: Permission) -> str:
    if permission is not Permission.AUTHORIZED:
        return _NOT_PERMITTED[permission]
    if operation.step == CALL:
        return "approved; nothing left" if operation.due_at else "nothing left; for its caller to send"
    stayed = "nothing left" if operation.attempts else "nothing was attempted"
    return "approved, not sent" if operation.step == DISPATCH else stayed


def _stuck(operation: Operation, outcome: Outcome) -> str:
    if operation.step == REST:
        return "abandoned; what became of it is unknown" if outcome is Outcome.UNKNOWN else "abandoned"
    if operation.step == RECOVER:
        return "in flight" if outcome is Outcome.UNOBSERVED else "nobody reported back"
    if outcome is Outcome.ACCEPTED:
        return "accepted; its end is not observed yet"
    if operation.step == LOOK:
        return "no look settles it yet" if operation.looks else "not looked yet"
    if operation.step == REPLAY:
        return "no look settles it" if operation.looks else "it cannot be looked for"
    return "read budget spent" if operation.looks else "the contract names no look"


def next_step(operation: Operation, now: float) -> str:
    """Say what happens next, and when, from the columns alone; empty where nothing is owed."""
    if operation.held_by and operation.dispatch is Dispatch.NOT_STARTED:
        return "call again once settled"
    if not operation.unresolved:
        waits = operation.dispatch is Dispatch.NOT_STARTED or operation.step
        return _unsent_next(operation, now) if waits and operation.disposition is not Disposition.ABANDONED else ""
    if operation.step in (RECOVER, LOOK, FOLLOW):
        return f"{operation.step} {_when(operation.due_at, now)}"
    if operation.step == REPLAY:
        wait = f", {_when(operation.due_at, now)}" if operation.due_at - now >= 1 else ""
        return f"replay under the same key{wait}"
    return "resolve with evidence"


def _unsent_next(operation: Operation, now: float) -> str:
    """Of what did not leave, or of a further attempt that people were asked about."""
    again = operation.dispatch is not Dispatch.NOT_STARTED
    match permission_now(operation, now):
        case Permission.PENDING:
            return f"approve or deny it, {_within(operation.due_at, now)}"
        case Permission.AUTHORIZED if operation.step == DISPATCH:
            return f"the worker sends it once, {_within(operation.due_at, now)}"
        case Permission.AUTHORIZED if operation.step == CALL and operation.due_at:
            who = "a further attempt may be made" if again else "its caller may send it again"
            return f"{who}, {_within(operation.due_at, now)}"
        case Permission.AUTHORIZED:
            return "the same call sends it, and nobody else" if operation.step == CALL else "the same call may send it"
        case Permission.EXPIRED:
            return "a further attempt asks anew" if again else "the same call asks anew"
        case _:
            return ""


def _within(due_at: float, now: float) -> str:
    from counterfoil.cli.marks import duration

    return f"within {duration(max(due_at - now, 1.0))}"


def _when(due_at: float, now: float) -> str:
    from counterfoil.cli.marks import duration

    return "now" if due_at - now < 1 else f"in {duration(due_at - now)}"
