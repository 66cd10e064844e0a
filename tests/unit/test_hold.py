"""Holds: proposed, recorded with everything that would be sent, and not claimed."""

from __future__ import annotations

import msgspec
from tests.crash.stepping import NOON, draw, order

from counterfoil.domain.event import EventKind, Noted
from counterfoil.domain.hold import propose
from counterfoil.domain.payload import salted_digest
from counterfoil.domain.words import Dispatch, Outcome
from counterfoil.plans.claims import first_claim


def test_a_proposal_claims_nothing_and_names_its_holder():
    """It is neither started nor unresolved; who holds it and what would be sent are on record."""
    claim = first_claim(order(), draw())
    operation, event = propose(claim, "op_9", NOON)
    assert (operation.dispatch, operation.outcome, operation.attempts) == (Dispatch.NOT_STARTED, Outcome.UNOBSERVED, 0)
    assert (operation.unresolved, operation.exposure, operation.step, operation.worker) == (0, 0, "", "")
    assert (operation.held_by, operation.seq, operation.created_at) == ("op_9", 1, NOON)
    note = msgspec.json.decode(event.record, type=Noted)
    assert (event.kind, event.body, note.note) == (EventKind.HELD, claim.body, "held by op_9")
    assert note.facts["provider_key"] == claim.id
    assert note.facts["payload_digest"] == salted_digest(claim.body)
    assert note.facts["destination"] == "https://api.example"
