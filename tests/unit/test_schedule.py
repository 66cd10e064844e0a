"""What happens next without a person: recover, look while the budget lasts, replay where it is granted, then review."""

from __future__ import annotations

import math

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.attempt import Attempt, fold
from counterfoil.domain.contract import AutomaticAttempts, Terminal
from counterfoil.domain.schedule import NOTHING, Next, follow_until, next_step
from counterfoil.domain.words import AttemptClass, Discrepancy, Finding

KEY, LOOKUP, NONE = (contracts.load(f"lab.{name}") for name in ("key", "lookup", "nothing"))
U = Finding.UNKNOWN


def attempt(finding, attempt_class=AttemptClass.FIRST, send_seconds=10.0):
    return Attempt(
        number=1, token="w.1", finding=finding, quiesced=True, attempt_class=attempt_class, send_seconds=send_seconds
    )


def step(contract, *attempts, discrepancy=Discrepancy.NONE, looks=0, jitter=0.0):
    folded = fold(attempts, discrepancy, follows=contract.follows)
    return next_step(contract, attempts, folded, discrepancy, looks=looks, jitter=jitter)


@pytest.mark.parametrize("finding", [Finding.SUCCEEDED, Finding.REJECTED, Finding.NOT_SENT, Finding.ABSENT])
def test_a_resolved_operation_owes_nothing(finding):
    """No step and no time once nothing may have happened unseen."""
    assert step(KEY, attempt(finding)) == NOTHING == Next("", 0.0)


def test_a_discrepancy_is_for_a_person_at_once():
    """No look and no replay mends evidence that contradicts evidence."""
    assert step(KEY, attempt(U), discrepancy=Discrepancy.OPEN) == Next("review")


def test_an_unreported_attempt_is_recovered_after_its_deadline():
    """The longest of the senders still out decides when; a settled one does not."""
    tries = (attempt(U, send_seconds=90.0), attempt(None, send_seconds=10.0), attempt(None, send_seconds=30.0))
    assert step(KEY, *tries) == Next("recover", 30.0)


def test_the_gap_between_looks_stops_doubling():
    """A contract with many looks is looked at for as long as it says; the gap never outgrows its bound."""
    budget = msgspec.structs.replace(KEY.read_budget, looks_max=2_000)
    found = step(msgspec.structs.replace(KEY, read_budget=budget), attempt(U), looks=1_500)
    assert found == Next("look", 256 * budget.spacing_seconds)


@pytest.mark.parametrize(("looks", "jitter", "after"), [(0, 0.0, 0.2), (0, 1.0, 0.24), (1, 0.0, 1.0), (4, 0.5, 8.8)])
def test_looks_are_spaced_and_spread(looks, jitter, after):
    """The first look comes soon, each later one after twice the gap, all spread by the contract's jitter."""
    found = step(KEY, attempt(U), looks=looks, jitter=jitter)
    assert found.step == "look"
    assert found.after_seconds == pytest.approx(after)


def test_after_the_looks_the_granted_replays():
    """With the read budget spent a keyed contract is replayed as often as it grants, then a person is asked."""
    replay = AttemptClass.SAME_KEY
    assert step(KEY, attempt(U), looks=5) == Next("replay")
    assert step(KEY, attempt(U), attempt(U, replay), looks=5) == Next("replay")
    assert step(KEY, attempt(U), attempt(U, replay), attempt(U, replay), looks=5) == Next("review")
    assert step(KEY, attempt(U), attempt(Finding.NOT_SENT, replay), attempt(U, replay), looks=5) == Next("replay")


@pytest.mark.parametrize("happened", [Finding.SUCCEEDED, Finding.ACCEPTED])
def test_what_happened_is_not_sent_again_because_another_attempt_is_open(happened):
    """No rule would let it go, so it is no step: whoever settles the rest is a person, at once."""
    assert step(KEY, attempt(happened), attempt(U, AttemptClass.SAME_KEY), looks=5) == Next("review")


@pytest.mark.parametrize(
    ("contract", "looks"),
    [
        (NONE, 0),
        (LOOKUP, 5),
        (msgspec.structs.replace(LOOKUP, reconcile="forbidden"), 0),
        (msgspec.structs.replace(LOOKUP, looks=()), 0),
        (msgspec.structs.replace(KEY, automatic_attempts=AutomaticAttempts()), 5),
    ],
)
def test_what_nothing_automatic_can_settle_is_for_a_person(contract, looks):
    """No look left or none allowed, and no replay granted: review, whatever the clock says."""
    assert step(contract, attempt(U), looks=looks) == Next("review")


def test_accepted_is_looked_at_and_never_replayed():
    """What was taken in and is not finished is followed by reads; sending it again would be a second order."""
    terminal = (Terminal(source="service", state={"/state": ("paid",)}, finding="succeeded"),)
    following = msgspec.structs.replace(KEY, terminal=terminal)
    assert step(following, attempt(Finding.ACCEPTED)).step == "follow"
    assert step(following, attempt(Finding.UNKNOWN)).step == "look"
    assert step(following, attempt(Finding.ACCEPTED), looks=5) == Next("review")


def test_what_is_accepted_is_followed_until_its_deadline():
    """Counted from the claim of what was accepted last; without a deadline, or anything accepted, for ever."""
    tries = tuple(
        msgspec.structs.replace(attempt(f), started_at=at)
        for f, at in [(Finding.ACCEPTED, 100.0), (Finding.ACCEPTED, 200.0), (U, 300.0)]
    )
    assert follow_until(msgspec.structs.replace(KEY, follow_seconds=50.0), tries) == 250.0
    assert follow_until(msgspec.structs.replace(KEY, follow_seconds=50.0), tries[2:]) == math.inf
    assert follow_until(KEY, tries) == math.inf
