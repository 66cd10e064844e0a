"""A sender names its own write before it finishes it, so that the write can be asked for whatever becomes of both."""

from __future__ import annotations

from counterfoil.domain import noted
from counterfoil.domain.command import Amend, Amended
from counterfoil.domain.event import encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Finding, Source
from counterfoil.plans.effects import Plan


def note(operation: str, attempt: int, token: str, external_id: str) -> Plan[bool]:
    """Make the name durable; False where the attempt is not its sender's any more, and nothing may be finished.

    Args:
        operation: whose write it is.
        attempt: its number.
        token: proof that the sender still speaks for it.
        external_id: the provider's name for the write.
    """
    evidence = Evidence(
        source=Source.SENDER, finding=Finding.UNKNOWN, attempt=attempt, rule="house.noted", external_id=external_id
    )
    # Whoever dies before this is durable has finished nothing: the provider lets go of what it holds.
    reply = yield Amend(operation=operation, rule=noted.note(token, encode(evidence)))
    return isinstance(reply, Amended)
