"""Compensation: asked for on the other's record before it is claimed, and only of what is known to have happened."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.crash.keeping import removed, settled
from tests.crash.stepping import NOON, claimed, draw, ends, observed, order, ruled

from counterfoil.domain import compensation
from counterfoil.domain.command import Amend, Amended, Claim, Declined
from counterfoil.domain.compensation import ask, asked, compensates
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import EventKind
from counterfoil.domain.words import Finding
from counterfoil.plans.claims import ClaimForm
from counterfoil.plans.dispatch import dispatch

UNDO = order(key="undo-1", compensates="op_9")
INTENT = UNDO.intent


def because(history, intent=INTENT):
    """Why a compensation is refused."""
    declined = ask(intent)(history, NOON)
    assert isinstance(declined, Declined)
    return declined.because


@pytest.mark.parametrize("finding", [Finding.SUCCEEDED, Finding.ACCEPTED])
def test_what_happened_can_be_compensated_once_by_each_key(finding):
    """A note, and nothing else of it moves; the same again notes nothing, another one does."""
    stood = observed(claimed(), finding, effect="pay", rule="answers[0]")
    after = ruled(stood, ask(INTENT))
    assert after.events[-1].kind is EventKind.NOTED
    assert (after.operation.outcome, after.operation.unresolved) == (
        stood.operation.outcome,
        stood.operation.unresolved,
    )
    assert asked(stood) == ()
    assert [one.key for one in asked(after)] == ["undo-1"]
    assert because(after) == (compensation.ALREADY,)
    second = ruled(after, ask(msgspec.structs.replace(INTENT, key="undo-2")))
    assert [one.key for one in asked(second)] == ["undo-1", "undo-2"]


@pytest.mark.parametrize("finding", [None, Finding.UNKNOWN, Finding.REJECTED, Finding.NOT_SENT])
def test_what_is_not_known_to_have_happened_is_not_undone(finding):
    """An unknown effect is a possible orphan: undoing it may do what nobody asked for."""
    stood = claimed() if finding is None else observed(claimed(), finding)
    assert because(stood) == (compensation.NOT_HAPPENED.format(stood.operation.outcome.value),)


def test_another_tenants_is_nobodys_to_undo():
    """Whatever came of it."""
    assert because(settled(), msgspec.structs.replace(INTENT, tenant="other")) == (compensation.OTHER_TENANT,)


def test_a_record_does_not_grow_without_end():
    """So many, and no more."""
    stood = settled()
    for number in range(compensation.ASKED_MAX):
        stood = ruled(stood, ask(msgspec.structs.replace(INTENT, key=f"undo-{number}")))
    assert because(stood, msgspec.structs.replace(INTENT, key="one more")) == (compensation.TOO_MANY,)


def test_other_notes_are_none_of_them():
    """What the store notes of another operation asks for no compensation."""
    from counterfoil.domain.command import Amendment, NewEvent
    from counterfoil.domain.event import Noted, encode

    note = NewEvent(kind=EventKind.NOTED, record=encode(Noted(note="reopened", facts={"operation": "op_2"})))
    stood = ruled(settled(), lambda history, now: Amendment(operation=history.operation, events=(note,)))
    assert asked(stood) == ()


def test_the_first_record_says_what_it_undoes():
    """In the claim, by the plain way; it outlives the events, and is in no claim that undoes nothing."""
    history = claimed(UNDO)
    assert compensates(history) == "op_9"
    assert compensates(claimed()) == ""
    undone = settled(made=UNDO)
    assert compensates(removed(undone)) == "op_9"
    assert compensates(msgspec.structs.replace(history, events=())) == ""
    assert not ClaimForm(order()).fits(UNDO)
    assert b"compensates" not in claimed().events[0].record


def announced():
    """The plan up to its note."""
    plan = dispatch(UNDO, draw(2))
    amend = next(plan)
    assert isinstance(amend, Amend)
    assert amend.operation == "op_9"
    return plan, amend


def test_it_is_asked_for_before_it_is_claimed():
    """First the note, then the claim, which names what it undoes; the same call again goes on too."""
    for reply in (Amended(history=settled()), Declined(because=(compensation.ALREADY,), history=settled())):
        plan, _ = announced()
        claim = plan.send(reply)
        assert isinstance(claim, Claim)
        assert json.loads(claim.record)["intent"]["compensates"] == "op_9"


def test_what_is_refused_claims_nothing():
    """The reason is the caller's error."""
    plan, _ = announced()
    with pytest.raises(BadValue, match="its outcome is unknown"):
        ends(plan, Declined(because=(compensation.NOT_HAPPENED.format("unknown"),), history=settled()))
