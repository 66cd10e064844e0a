"""Undoing what was found: an operation of its own, linked on both receipts, and never made by us."""

from __future__ import annotations

import pytest
from tests.cases.stage import document, guard, is_unknown

from counterfoil.domain.errors import BadValue, KeyConflict, NoSuchOperation


@pytest.fixture
def till(lab, book):
    """A ledger that pays, and takes payments back."""
    ledger = book()
    return ledger, guard(ledger, lab.url), guard(ledger, lab.url, "lab.lookup", name="take_back")


def exported(ledger, operation):
    """The receipt as it leaves the house."""
    from counterfoil.runtime.export import document as made

    history = ledger.history(operation)
    return made(history, outcome=history.operation.outcome, compensated_by=ledger.compensated_by(history))


def test_r11_only_what_was_found_is_undone_and_both_receipts_say_so(lab, till):
    """An unknown effect is refused; once a look has found it, its compensation is an operation of its own."""
    ledger, pay, take_back = till
    lab.fault("lose_reply")
    paid = pay({"order": "r11-undo", "amount": 10})
    lab.faults()
    back = {"order": "r11-undo", "amount": -10}
    with pytest.raises(BadValue, match="its outcome is unknown"):
        take_back(back, compensates=paid.id)
    assert is_unknown(paid.refresh())
    assert lab.effects(back) == []
    assert ledger.reconcile(paid.id).outcome.value == "succeeded"
    undone = take_back(back, compensates=paid.id)
    assert (undone.outcome.value, len(lab.effects(undone.id))) == ("succeeded", 1)
    assert exported(ledger, undone.id)["compensates"] == paid.id
    assert exported(ledger, paid.id)["compensated_by"] == [undone.id]
    assert paid.refresh().outcome.value == "succeeded"
    again = take_back(back, compensates=paid.id)
    assert (again.id, again.standing.value, len(lab.effects(undone.id))) == (undone.id, "existing", 1)
    assert exported(ledger, paid.id)["chain"]["violations"] == exported(ledger, undone.id)["chain"]["violations"] == []


def test_what_it_undoes_is_part_of_what_is_asked(lab, till):
    """The same key for undoing another operation, or none, is another intent."""
    ledger, pay, take_back = till
    first, second = (pay({"order": f"r11-part-{n}", "amount": 10}) for n in (1, 2))
    undone = take_back({"order": "r11-part", "amount": -10}, compensates=first.id)
    for other in ({"compensates": second.id}, {}):
        with pytest.raises(KeyConflict):
            take_back({"order": "r11-part", "amount": -10}, **other)
    assert ledger.compensated_by(ledger.history(second.id)) == ()
    assert len(lab.effects(undone.id)) == 1


def test_the_same_effect_is_held_whether_or_not_it_undoes(lab, till):
    """What it undoes is no part of the effect: two equal ones beside each other hold."""
    _, pay, take_back = till
    paid = pay({"order": "r11-held", "amount": 10})
    lab.fault("lose_reply")
    take_back({"order": "r11-held", "amount": -10}, key="r11-held-1")
    held = take_back({"order": "r11-held", "amount": -10}, key="r11-held-2", compensates=paid.id)
    assert held.operation.held_by
    assert document(held)["compensates"] == paid.id


@pytest.mark.parametrize(("named", "error"), [("op_1", BadValue), ("op_" + "0" * 32, NoSuchOperation), (7, BadValue)])
def test_nothing_is_sent_for_what_is_not_there(lab, till, named, error):
    """An id that is none, or nobody's."""
    _, _, take_back = till
    with pytest.raises(error):
        take_back({"order": "r11-none", "amount": -10}, compensates=named)
    assert lab.effects({"order": "r11-none", "amount": -10}) == []


def test_a_note_makes_nobody_younger(lab, till):
    """Retention counts from what happened to the operation itself."""
    ledger, pay, take_back = till
    paid = pay({"order": "r11-age", "amount": 10})
    at = paid.operation.updated_at
    take_back({"order": "r11-age", "amount": -10}, compensates=paid.id)
    assert ledger.get(paid.id).operation.updated_at == at


def test_crash_between_note_and_claim(lab, till):
    """Asked for, and never claimed: the other receipt names nobody, and the same call is the first one."""
    from counterfoil.plans.dispatch import dispatch

    ledger, pay, take_back = till
    paid = pay({"order": "r11-crash", "amount": 10})
    back = {"order": "r11-crash", "amount": -10}
    plan = dispatch(take_back.order(back, compensates=paid.id), ledger._drawer.draw())
    ledger._executor.perform(next(plan))
    plan.close()
    assert ledger.compensated_by(ledger.history(paid.id)) == ()
    undone = take_back(back, compensates=paid.id)
    assert ledger.compensated_by(ledger.history(paid.id)) == (undone.id,)


def test_a_function_undoes_too(book):
    """`compensating` names it; a plain call of the function undoes nothing."""
    ledger = book()
    who = {"owner": "payments", "authoriser": "lead", "key": lambda order, amount: f"{order}:{amount}"}
    move = ledger.action(lambda order, amount: {"id": f"mv_{order}"}, name="move", **who)
    paid = move("r11-f", 10)
    undone = move.compensating(paid.id)("r11-f", -10)
    assert ledger.compensated_by(ledger.history(paid.id)) == (undone.id,)
    assert ledger.compensated_by(ledger.history(undone.id)) == ()
