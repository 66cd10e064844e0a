"""Breakers on a whole ledger: what may have happened is counted from the moment it may, whatever is known beside it."""

from __future__ import annotations

import pytest
from tests.cases.people import DANA, MARA, WHO, asks

import counterfoil
from counterfoil.domain.errors import BreakerOpen
from counterfoil.domain.terms import Breaker
from counterfoil.domain.words import Basis, Outcome

LIMIT = Breaker(name="psp", unknown_exposure_max=10.0)


class Shop:
    """A tool whose sends each end as the next of its scripts does."""

    def __init__(self, ledger):
        self.ledger, self.scripts = ledger, []

        def pay(order):
            return self.scripts.pop(0)() if self.scripts else {"id": order}

        self.call = ledger.action(pay, key=lambda order: order, value=lambda order: 10.0, **WHO)

    def lose(self):
        """No answer comes."""
        raise TimeoutError

    def again(self, operation):
        """One more attempt, because a person decided it."""
        self.ledger.decisions.override(operation, **DANA)
        return self.ledger.attempt(operation, basis=Basis.OPERATOR_OVERRIDE, by="dana")

    def found(self, operation, outcome):
        """What a person found out about the first attempt."""
        self.ledger.resolve(operation, outcome, evidence={"ticket": "T-1"}, attempt=1, **MARA)

    def is_stopped(self):
        """Whether nothing new goes."""
        try:
            return self.call("new").outcome is not Outcome.SUCCEEDED
        except BreakerOpen as stopped:
            return stopped.exposure >= LIMIT.unknown_exposure_max


@pytest.fixture
def shop(tmp_path):
    """A book with a breaker that one lost call opens."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:desk") as ledger:
        yield Shop(asks(ledger, actions=("none",), breakers=(LIMIT,)))


def test_an_unknown_attempt_counts_beside_one_that_succeeded(shop):
    """The second attempt succeeded and the first may still land: that is unknown now, not after a deadline."""
    shop.scripts = [shop.lose]
    lost = shop.call("o1")
    assert shop.again(lost.id).outcome is Outcome.SUCCEEDED
    assert shop.is_stopped()
    shop.found(lost.id, "rejected")
    assert not shop.is_stopped()


def test_an_attempt_in_hand_counts_beside_one_that_succeeded(shop):
    """The first turns out to have succeeded while the second is on its way: what that one does is unknown."""
    stopped = []

    def meanwhile():
        shop.found(lost.id, "succeeded")
        stopped.append(shop.is_stopped())
        return {"id": "o1"}

    shop.scripts = [shop.lose, meanwhile]
    lost = shop.call("o1")
    shop.again(lost.id)
    assert stopped == [True]
    assert not shop.is_stopped()


def test_a_lone_attempt_in_hand_counts_nothing(shop):
    """Its sender is about to report: another may go meanwhile."""
    stopped = []

    def meanwhile():
        stopped.append(shop.is_stopped())
        return {"id": "o1"}

    shop.scripts = [meanwhile]
    shop.call("o1")
    assert stopped == [False]
