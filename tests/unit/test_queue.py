"""How one operation waits: what people were asked, what is exposed, and when it is passed up to whom."""

from __future__ import annotations

import pytest
from tests.surface.governed import HOUR, Governed

from counterfoil.domain.policy import Escalation
from counterfoil.runtime.queue import Asks, Fill, arranged, waiting_of

EVERY_HOUR = Escalation(after_seconds=HOUR, repeat_seconds=HOUR, to="lead", business_owner="finance")


@pytest.fixture(scope="module")
def histories(tmp_path_factory):
    """The history of each operation of a governed book, by key."""
    book = Governed(tmp_path_factory.mktemp("queue")).whole()
    with book.open() as ledger:
        return {key: ledger.history(operation) for key, operation in book.ids.items()}


def waits(histories, key, *, after=0.0):
    """How one of them waits, so many seconds after it was asked for."""
    history = histories[key]
    return waiting_of(history, EVERY_HOUR, now=history.operation.created_at + after)


def test_what_is_settled_waits_for_nobody(histories):
    """A resolved operation has no entry."""
    assert waits(histories, "done") is None


def test_it_is_overdue_from_its_hour_on(histories):
    """To the second, by the policy's own time."""
    early, late = waits(histories, "old", after=HOUR - 1), waits(histories, "old", after=HOUR)
    assert (early.overdue, late.overdue) == (False, True)
    assert (late.escalates_to, late.escalated, late.business_owner) == ("lead", 0, "finance")
    assert (late.exposed, late.age) == (300.0, HOUR)


def test_what_was_abandoned_rests(histories):
    """It is never passed up, and stays exposed."""
    left = waits(histories, "left", after=1e6)
    assert (left.abandoned, left.overdue, left.escalates_at, left.exposed) == (True, False, None, 50.0)


def test_an_open_question_says_who_has_answered(histories):
    """Who may, who has, and until when; nothing of it is exposed."""
    asked = waits(histories, "asked").asked
    assert (asked.people, asked.approvers, asked.approved_by) == (2, ("dana", "mara"), ("user:mara",))
    assert asked.ends_at == histories["asked"].operation.created_at + 30 * 24 * HOUR
    assert waits(histories, "asked", after=9 * HOUR).exposed == 0.0
    assert waits(histories, "may-go").asked.approved_by == ("user:mara", "user:dana")
    assert waits(histories, "old").asked is None


def test_a_breaker_is_open_from_its_limit_on():
    """As the store refuses: at the limit, not above it."""
    assert [Fill(breaker="b", exposure=e, limit=5.0).open for e in (4.9, 5.0, 5.1)] == [False, True, True]


def test_what_people_were_asked_is_ranked_by_the_value_at_risk(histories):
    """Nothing of it is exposed, so it comes after what is; among its like, value x age orders and not age alone."""
    large, small = waits(histories, "asked", after=60), waits(histories, "may-go", after=120)
    assert large.operation.value / small.operation.value > 2
    found = arranged([small, large, waits(histories, "old", after=1)], Asks())
    assert [w.operation.key for w in found.shown] == ["old", "asked", "may-go"]
    older = waits(histories, "asked", after=61)
    assert arranged([large, older], Asks()).shown == (older, large)
