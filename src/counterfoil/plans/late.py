"""An answer that arrived after its caller had gone is still evidence."""

from __future__ import annotations

import msgspec

from counterfoil.domain.action import Action, Draw
from counterfoil.domain.answer import Answer
from counterfoil.domain.operation import Operation
from counterfoil.domain.payload import SALT_BYTES
from counterfoil.domain.words import Source
from counterfoil.plans import observing
from counterfoil.plans.effects import Plan, Uptime


def late(  # noqa: PLR0913 - what was sent, and what was heard of it
    operation: str,
    action: Action,
    attempt: int,
    answer: Answer,
    draw: Draw,
    payload: bytes = b"",
    *,
    fence: int | None = None,
) -> Plan[Operation]:
    """Append an answer nobody waited for; it settles an unknown, or opens a discrepancy, and overwrites nothing."""
    evidence = msgspec.structs.replace(
        observing.judged(action, answer, attempt, payload, fence=fence), source=Source.LATE_ANSWER
    )
    evidence = observing.dated(evidence, (yield Uptime()))
    return (
        yield from observing.append(
            operation, evidence, action.contract, salt=draw.salts[:SALT_BYTES], jitter=draw.jitter
        )
    )
