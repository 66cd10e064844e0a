"""A second crash, inside the recovery of the first: what was promised still holds, and nothing is counted twice."""

from __future__ import annotations

import pytest
from tests.crash.stopping import Crash, left_behind, points, stopping
from tests.crash.world import KINDS, STEP_SECONDS, assert_honest, die

from counterfoil.domain.words import Lifecycle, Outcome
from counterfoil.runtime.worker import Worker


def crash_in_recovery(world, step, when):
    """Another process recovers and dies in turn; whether it died."""
    ledger = world.open()
    with stopping(step, when) as driver:
        try:
            world.rest(ledger)
        except Crash:
            return driver.seen, True
        finally:
            die(ledger)
    return driver.seen, False


CASES = [
    ("function", "answered", 2, "after"),
    ("lab.nothing", "answered", 2, "after"),
    ("lab.key", "answered", 2, "before"),
    ("lab.key", "answered", 2, "after"),
    ("lab.key", "reply_lost", 3, "after"),
    ("lab.lookup", "answered", 2, "before"),
    ("lab.lookup", "answered", 2, "after"),
    ("lab.lookup", "reply_lost", 3, "after"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "fate", "step", "when"), CASES)
def test_every_crash_point_of_a_recovery(tmp_path, kind, fate, step, when):
    """Stop before and after each effect of recover, look and replay: one effect at most, every outcome true."""
    first = left_behind(tmp_path / "first", kind, fate, "answered", step=step, when=when, longest_delivery=60.0)
    for number, again in enumerate(points()):
        world = first.copy(tmp_path / str(number))
        seen, stopped = crash_in_recovery(world, *again)
        ledger = world.open()
        world.rest(ledger)
        assert_honest(world, ledger)
        world.call(ledger)
        assert_honest(world, ledger)
        ledger.close()
        if not stopped:
            break
    assert "Amend" in seen
    assert again == (len(seen), "before")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["lab.key", "lab.lookup"])
def test_crash_in_look(tmp_path, kind, when):
    """A look is paid before it is made: dying in it costs one read of the budget and changes nothing else."""
    world = left_behind(tmp_path / "w", kind, "answered", step=2, when="after")
    world.now += STEP_SECONDS
    ledger = world.open()
    Worker(ledger).sweep()
    world.now += STEP_SECONDS
    with stopping(1, when) as driver, pytest.raises(Crash):
        Worker(ledger).sweep()
    assert driver.seen == ["Amend", "Look"]
    die(ledger)
    ledger = world.open()
    (operation,) = ledger.store.unresolved()
    assert (operation.looks, operation.outcome) == (1, Outcome.UNKNOWN)
    world.rest(ledger)
    receipt = ledger.get(operation.id)
    assert (receipt.outcome, receipt.operation.looks) == (Outcome.SUCCEEDED, 2)
    assert_honest(world, ledger)
    ledger.close()


def test_a_dying_looker_never_resets_the_budget(tmp_path):
    """Five paid looks that nobody lived to read are five looks: the sixth is a person's."""
    world = left_behind(tmp_path / "w", "lab.lookup", "request_lost", step=2, when="after")
    ledger = world.open()
    Worker(ledger).sweep()
    for _ in range(5):
        world.now += STEP_SECONDS
        with stopping(1, "before"), pytest.raises(Crash):
            Worker(ledger).sweep()
        die(ledger)
        ledger = world.open()
    world.rest(ledger)
    (operation,) = ledger.store.unresolved()
    receipt = ledger.get(operation.id)
    assert (operation.looks, receipt.outcome, receipt.lifecycle) == (5, Outcome.UNKNOWN, Lifecycle.MANUAL_REVIEW)
    assert_honest(world, ledger)
    ledger.close()


def test_a_look_asked_for_crashes_like_one_that_is_due(tmp_path):
    """Dying anywhere in `ledger.reconcile` leaves an unknown that the next look settles."""
    first = left_behind(tmp_path / "first", "lab.key", "answered", step=2, when="after")
    for number, (step, when) in enumerate(points()):
        world = first.copy(tmp_path / str(number))
        ledger = world.open()
        (operation,) = ledger.store.unresolved()
        with stopping(step, when) as driver:
            try:
                ledger.reconcile(operation.id)
                stopped = False
            except Crash:
                stopped = True
        die(ledger)
        ledger = world.open()
        world.rest(ledger)
        assert ledger.get(operation.id).outcome is Outcome.SUCCEEDED
        assert_honest(world, ledger)
        ledger.close()
        if not stopped:
            break
    assert driver.seen == ["Hand", "Uptime", "Amend", "Amend", "Look", "Others", "Amend"]


@pytest.mark.parametrize("kind", KINDS)
def test_recovering_twice_changes_nothing(tmp_path, kind):
    """What one process recovered a second one leaves as it is: no event is added that says nothing new."""
    world = left_behind(tmp_path / "w", kind, "answered", step=2, when="after")
    ledger = world.open()
    world.rest(ledger)
    (operation,) = ledger.store.operations(limit=9)
    die(ledger)
    ledger = world.open()
    world.rest(ledger)
    ledger.work(operation.id)
    assert ledger.get(operation.id).operation == operation
    ledger.close()
