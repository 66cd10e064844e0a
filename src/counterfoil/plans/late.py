"""What arrived after its caller had gone is still evidence: from our own thread, or handed in by somebody."""

from __future__ import annotations

import msgspec

from counterfoil.domain import fed, rules
from counterfoil.domain.action import Action, Draw
from counterfoil.domain.answer import Answer
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.contract import Contract
from counterfoil.domain.evidence import Evidence
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


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What became of evidence that was handed in: the operation as it stands now, and why nothing was recorded."""

    operation: Operation
    because: tuple[str, ...] = ()


def feed(operation: str, evidence: Evidence, contract: Contract, draw: Draw) -> Plan[Taken]:
    """Append evidence that somebody handed in; the same document again changes nothing.

    Where the store cannot take it nothing is kept beside it: the document can be handed in again.
    """
    said = observing.sealed(evidence, draw.salts[:SALT_BYTES])
    rule = fed.once(evidence, rules.observe(said.evidence, said.line, said.body, contract, jitter=draw.jitter))
    reply = yield Amend(operation=operation, rule=rule)
    if isinstance(reply, Declined) and reply.history is not None:
        return Taken(operation=reply.history.operation, because=reply.because)
    assert isinstance(reply, Amended)  # noqa: S101 - an Amend has no other answer
    return Taken(operation=reply.history.operation)
