"""Field reports 22 and 41, the parts about retention: numbers that never go back, and doors that stay shut."""

from __future__ import annotations

import json
import time

import pytest
from tests.cases.stage import later
from tests.integration.store.keeping import RECEIPTS, adopt

import counterfoil
from counterfoil.cli.verify import verify
from counterfoil.domain.errors import KeyConflict
from counterfoil.domain.event import EventKind, attempts_of, removed_of
from counterfoil.domain.words import Outcome, Standing

WHO = {"owner": "payments", "authoriser": "payments-lead"}
YEARS = 10 * 365 * 86_400.0


class Till:
    """A payment function that counts what it was called with, and ends as it is told."""

    def __init__(self, ledger, *ends):
        self.calls, self.ends = [], list(ends)

        def pay(order, amount=10):
            self.calls.append(order)
            end = self.ends.pop(0) if self.ends else {"id": f"re_{len(self.calls)}"}
            if isinstance(end, Exception):
                raise end
            return end

        self.pay = ledger.action(pay, key=lambda order, amount: order, **WHO)


ENDS = {
    "succeeded": None,
    "rejected": counterfoil.Rejected("the card is closed"),
    "not_sent": counterfoil.NotSent("no connection"),
}


@pytest.mark.parametrize("end", ENDS)
def test_r41_a_task_that_is_redelivered_after_retention_is_never_sent(book, end):
    """Finish, run retention, redeliver: key, print and outcome still answer, over years and restarts."""
    ledger = book()
    till = Till(ledger, *([ENDS[end]] if ENDS[end] else []))
    first = till.pay("o-1")
    adopt(ledger.store)
    for age in (2 * RECEIPTS, YEARS):
        ledger = book()
        again = Till(ledger)
        later(ledger, age)
        assert [done.did for done in ledger.retain()] == (["removed"] if age < YEARS else [])
        for _ in range(3):
            told = again.pay("o-1")
            assert (told.id, told.standing, told.outcome) == (first.id, Standing.EXISTING, first.outcome)
            assert "its record was removed by retention on" in told.because[0]
        with pytest.raises(KeyConflict):  # the print stays, and is compared first
            again.pay("o-1", amount=11)
        assert again.calls == []
    assert till.calls == ["o-1"]
    assert verify(ledger, lambda: None).violations == []


def test_r41_what_is_unknown_is_kept_until_it_is_known(book):
    """No age makes retention remove an effect that may have happened; once it is settled, its time begins then."""
    ledger = book()
    till = Till(ledger, TimeoutError())
    receipt = till.pay("o-1")
    adopt(ledger.store)
    later(ledger, YEARS)
    assert list(ledger.retain()) == []
    assert till.pay("o-1").outcome is Outcome.UNKNOWN
    ledger.resolve(receipt.id, "succeeded", evidence={"id": "re_9"}, by="user:mara", reason="seen")
    assert list(ledger.retain()) == []
    later(ledger, YEARS + 2 * RECEIPTS)
    assert [done.did for done in ledger.retain()] == ["removed"]
    assert till.pay("o-1").outcome is Outcome.SUCCEEDED
    assert till.calls == ["o-1"]


def test_r22_numbers_and_tokens_survive_retention(book):
    """Events go on counting over a removal, attempts keep their numbers, and no token is given out again."""
    ledger = book()
    till = Till(ledger, counterfoil.NotSent("no connection"))
    till.pay("o-1")
    receipt = till.pay("o-1")
    before = ledger.history(receipt.id)
    tokens = [json.loads(e.record)["attempt"]["token"] for e in before.events if e.kind is EventKind.BEGUN]
    adopt(ledger.store)
    later(ledger, 2 * RECEIPTS)
    assert [done.did for done in ledger.retain()] == ["removed"]
    after = ledger.history(receipt.id)
    assert after.operation.seq == before.operation.seq + 1 == removed_of(after.events).events + 1
    assert [(a.number, a.token) for a in attempts_of(after.events)[0]] == list(enumerate(tokens, start=1))
    fresh = [till.pay(f"o-{n}").id for n in range(2, 5)]
    for each in fresh:
        begun = ledger.history(each).events[0]
        assert json.loads(begun.record)["attempt"]["token"] not in tokens
        assert ledger.get(each).operation.n > receipt.operation.n
    assert time.time() < ledger.store.now()
