"""When an operation that waits for people is passed up, and to whom: nobody's silence leaves it where it is."""

from __future__ import annotations

import msgspec

from counterfoil.domain.approval import decided_of
from counterfoil.domain.decision import Verb
from counterfoil.domain.event import EventKind, History
from counterfoil.domain.operation import Operation
from counterfoil.domain.policy import Escalation
from counterfoil.domain.schedule import REST


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """The next escalation of one operation."""

    at: float
    """Seconds since the epoch."""
    to: str
    times: int
    """How often it was passed up before."""


def waits(operation: Operation) -> bool:
    """Somebody should act on it: unresolved, or asked for and not sent. What was abandoned rests."""
    return bool(operation.unresolved or operation.step) and operation.step != REST


def due(history: History, escalation: Escalation) -> Due:
    """When an operation is passed up next: after its age, then again and again until somebody has settled it.

    A decision to wait starts the clock anew at its end.

    Args:
        history: the operation with its events.
        escalation: what the policy in force says of it.
    """
    from_, times, last = history.operation.created_at, 0, 0.0
    for event in history.events:
        if event.kind is not EventKind.DECIDED:
            continue
        said = decided_of(event)
        if said.decision == Verb.ESCALATE.value:
            times, last = times + 1, event.at
        elif said.decision == Verb.WAIT.value:
            from_ = max(from_, float(said.facts["until"]))
    first = from_ + escalation.after_seconds
    return Due(at=max(first, last + escalation.repeat_seconds) if times else first, to=escalation.to, times=times)
