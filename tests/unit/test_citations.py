"""Policies that receipts rest on must be on record, and bodies that are gone must be gone on record."""

from __future__ import annotations

import msgspec
import pytest
from tests.cases.people import DANA, Tool, asks

import counterfoil
from counterfoil.cli.verify import verify
from counterfoil.domain.audit import audit
from counterfoil.domain.gone import audit_bodies
from counterfoil.domain.policy_chain import audit_citations, cited


@pytest.fixture
def ledger(tmp_path):
    """A book with one approved and sent operation."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:q") as opened:
        yield asks(opened)


def sent(ledger):
    """The history of one that was asked about, approved and sent."""
    pay = Tool(ledger, "pay")
    asked = pay.call("o1")
    ledger.decisions.approve(asked.id, **DANA)
    return ledger.history(pay.call("o1").id)


def test_a_policy_that_was_taken_away_is_missed(ledger):
    """The table emptied, or its last row: what rests on it says so."""
    history, every = sent(ledger), ledger.store.policies()
    found = {digest: (history.operation.id, seq) for seq, digest in cited(history)}
    assert set(found) == {every[0].digest}
    assert list(audit_citations(found, every)) == []
    (wrong,) = audit_citations(found, [])
    assert (wrong.operation, "is no policy on record" in wrong.problem) == (history.operation.id, True)


def test_what_cannot_be_read_cites_nothing(ledger):
    """It is a violation of its own."""
    history = sent(ledger)
    broken = tuple(msgspec.structs.replace(event, record=b"{") for event in history.events)
    assert list(cited(msgspec.structs.replace(history, events=broken))) == []


def test_a_body_that_nobody_erased_is_missed(ledger):
    """Nulled behind the record's back; where it was erased on record, nothing is wrong."""
    history = sent(ledger)
    assert [*audit(history), *audit_bodies(history)] == []
    gone = tuple(msgspec.structs.replace(event, body=None) for event in history.events)
    problems = {v.problem for v in audit_bodies(msgspec.structs.replace(history, events=gone))}
    assert problems == {"its body is gone, and nobody erased it on record"}
    ledger.erase(history.operation.id, by="dana", reason="asked to")
    assert list(audit_bodies(ledger.history(history.operation.id))) == []
    assert audit(ledger.history(history.operation.id)) == ()
    assert (
        list(
            audit_bodies(
                msgspec.structs.replace(
                    history,
                    events=tuple(msgspec.structs.replace(event, record=b"{", body=None) for event in history.events),
                )
            )
        )
        == []
    )


def test_verification_asks_for_both(ledger):
    """A table that was emptied and bodies that were nulled, in the very file."""
    history = sent(ledger)
    assert verify(ledger, lambda: None).violations == []
    with ledger.store.lead() as db:
        for trigger in ("policy_is_kept", "event_is_final"):
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute("DELETE FROM policy")
        db.execute("UPDATE event SET body = NULL")
    wrong = {v.problem for v in verify(ledger, lambda: None).violations if v.operation == history.operation.id}
    assert len([problem for problem in wrong if "is no policy on record" in problem]) == 1
    assert "its body is gone, and nobody erased it on record" in wrong
