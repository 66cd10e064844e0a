"""Record what a person found out: evidence with their name on it, judged on what they saw."""

from __future__ import annotations

from counterfoil.domain import rules
from counterfoil.domain.action import Draw
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.contract import Contract
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.payload import SALT_BYTES
from counterfoil.plans import observing
from counterfoil.plans.effects import Plan


def find(operation: str, found: Evidence, contract: Contract, *, seen: int, draw: Draw) -> Plan[tuple[str, ...]]:
    """Append an operator's finding; return why it was declined, or nothing.

    Args:
        operation: its id.
        found: what was found, with what it rests on.
        contract: names what may be read and repeated next.
        seen: the last event of what the person saw.
        draw: salts.
    """
    said = observing.sealed(found, draw.salts[:SALT_BYTES])
    rule = rules.as_seen(seen, rules.observe(said.evidence, said.line, said.body, contract))
    reply = yield Amend(operation=operation, rule=rule, record=said.line, body=said.body)
    assert isinstance(reply, Amended | Declined)  # noqa: S101 - an Amend without a claim has no third answer
    if isinstance(reply, Amended) or reply.because == (rules.RECORDED,):
        return ()
    return reply.because
