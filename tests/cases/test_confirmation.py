"""The look after a success, where an action declares it."""

from __future__ import annotations

import pytest
from tests.cases.stage import evidence, guard

from counterfoil.domain.errors import BadValue, NotDeclared


@pytest.mark.parametrize("kind", ["lookup", "key"])
def test_a_success_is_looked_at_once(lab, book, kind):
    """One read, found: evidence beside the answer, and nothing else changes."""
    ledger = book()
    receipt = guard(ledger, lab.url, f"lab.{kind}", confirm=True)({"order": f"confirmed-{kind}", "amount": 10})
    assert [one["source"] for one in evidence(receipt)] == ["answer", "look"]
    assert (receipt.outcome.value, receipt.discrepancy.value, receipt.operation.looks) == ("succeeded", "none", 1)
    assert (lab.sends(receipt.id), lab.looks(receipt.id)) == (1, 1)
    again = guard(book(), lab.url, f"lab.{kind}", confirm=True)({"order": f"confirmed-{kind}", "amount": 10})
    assert (again.id, again.operation.looks) == (receipt.id, 1)


def test_r66_a_second_try_that_was_answered_is_found_after_the_success(lab, book):
    """Somebody between sent it twice and answered once: it succeeded, not once, and a person is next."""
    ledger = book()
    lab.fault("internal_duplicate")
    receipt = guard(ledger, lab.url, "lab.lookup", confirm=True)({"order": "r66-after", "amount": 10})
    assert len(lab.effects(receipt.id)) == 2
    assert (receipt.outcome.value, receipt.discrepancy.value, receipt.lifecycle.value) == (
        "succeeded", "open", "manual_review",
    )  # fmt: skip
    assert evidence(receipt)[-1]["reason"] == "duplicate_suspected"


@pytest.mark.parametrize("fault", ["look_empty", "look_500", "look_lost", "wrong_account"])
def test_a_look_that_is_not_healthy_contradicts_nothing(lab, book, fault):
    """A page without its known item, an error, silence, or somebody else's page: none of them proves anything."""
    ledger = book()
    lab.fault(fault)
    receipt = guard(ledger, lab.url, "lab.lookup", confirm=True)({"order": f"after-{fault}", "amount": 10})
    assert (receipt.outcome.value, receipt.discrepancy.value) == ("succeeded", "none")


def test_what_was_not_declared_is_looked_at_when_somebody_asks(lab, book):
    """By the ledger, once more, within the contract's budget; an unknown one is not confirmed but reconciled."""
    ledger = book()
    pay = guard(ledger, lab.url, "lab.lookup")
    receipt = pay({"order": "asked-after", "amount": 10})
    assert receipt.operation.looks == 0
    for looks in range(1, 6):
        assert ledger.confirm(receipt.id).operation.looks == looks
    assert ledger.confirm(receipt.id).because == ("the read budget is spent",)
    lab.fault("lose_reply")
    lost = pay({"order": "asked-lost", "amount": 10})
    assert ledger.confirm(lost.id).because == ("only a success without an open question is confirmed",)


def test_crash_in_confirmation(lab, book):
    """Paid and not made: the success stands as it was answered, and may be looked at again."""
    from counterfoil.plans.confirm import confirm

    ledger = book()
    pay = guard(ledger, lab.url, "lab.lookup")
    receipt = pay({"order": "crash-after", "amount": 10})
    plan = confirm(ledger.history(receipt.id), pay.action, ledger._drawer.draw(), by="w")
    ledger._executor.perform(next(plan))
    plan.close()
    stood = ledger.get(receipt.id)
    assert (stood.outcome.value, stood.operation.looks, stood.operation.unresolved) == ("succeeded", 1, 0)
    assert ledger.confirm(receipt.id).operation.looks == 2


def test_without_a_look_it_cannot_be_declared(lab, book):
    """A declaration that would never do anything is an error where it is made."""
    with pytest.raises(NotDeclared, match="looks are allowed"):
        guard(book(), lab.url, "lab.nothing", confirm=True)
    with pytest.raises(BadValue, match="True or False"):
        guard(book(), lab.url, "lab.key", confirm="yes")
