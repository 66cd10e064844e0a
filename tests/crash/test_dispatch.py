"""A crash between any two effects of a call: never a second effect, never a false outcome, no unknown forgotten."""

from __future__ import annotations

import pytest
from tests.crash.stopping import Crash, points, stopping
from tests.crash.world import KINDS, World, assert_honest, die

from counterfoil.domain.words import Dispatch, Lifecycle, Outcome

FATES = ("answered", "reply_lost", "request_lost")


def crash(world, step, when):
    """Make the call and stop at one point; the names of the effects that were begun, and whether it stopped there."""
    ledger = world.open()
    with stopping(step, when) as driver:
        try:
            world.call(ledger)
            stopped = False
        except Crash:
            stopped = True
    die(ledger)
    return driver.seen, stopped


def settled(world):
    """A new process takes the file up and works until nothing is left to do; the receipt of the one operation."""
    ledger = world.open()
    world.rest(ledger)
    return ledger, [ledger.get(o.id) for o in ledger.store.operations(limit=9)]


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_crash_point_of_a_call(tmp_path, kind, fate):
    """Stop before and after each effect until the call outlives it: one effect at most, and every outcome true."""
    reached = set()
    for number, (step, when) in enumerate(points()):
        world = World(tmp_path / str(number), kind, fate)
        seen, stopped = crash(world, step, when)
        reached.update(seen)
        ledger, _ = settled(world)
        assert_honest(world, ledger)
        world.call(ledger)
        world.rest(ledger)
        assert_honest(world, ledger)
        ledger.close()
        if not stopped:
            break
    assert step == len(seen)
    assert reached == {"Validate", "Claim", "Send", "Settle"}


@pytest.mark.parametrize("kind", KINDS)
def test_crash_before_claim(tmp_path, kind):
    """Nothing is recorded and nothing left: the same call again is the first one."""
    world = World(tmp_path / "w", kind)
    seen, stopped = crash(world, 1, "before")
    assert (seen[-1], stopped) == ("Claim", True)
    ledger, receipts = settled(world)
    assert receipts == []
    assert world.truth.requests == []
    assert world.call(ledger).outcome is Outcome.SUCCEEDED
    assert_honest(world, ledger)
    ledger.close()


@pytest.mark.parametrize(("step", "when"), [(1, "after"), (2, "before"), (2, "after")])
@pytest.mark.parametrize("kind", ["function", "lab.nothing"])
def test_crash_after_claim(tmp_path, kind, step, when):
    """Claimed and unreported reads as unknown at once, and stays so where nothing can be looked up: for a person."""
    world = World(tmp_path / "w", kind)
    crash(world, step, when)
    ledger = world.open()
    (operation,) = ledger.store.unresolved()
    assert ledger.get(operation.id).outcome is Outcome.UNKNOWN
    world.rest(ledger)
    world.now += 10 * 365 * 86_400.0
    receipt = world.call(ledger)
    assert (receipt.outcome, receipt.lifecycle) == (Outcome.UNKNOWN, Lifecycle.MANUAL_REVIEW)
    assert len(world.truth.requests) == (1 if (step, when) == (2, "after") else 0)
    assert_honest(world, ledger)
    ledger.close()


@pytest.mark.parametrize("kind", ["lab.key", "lab.lookup"])
def test_crash_before_outcome(tmp_path, kind):
    """Answered and unrecorded is unknown until a look finds the effect, with the provider's own name for it."""
    world = World(tmp_path / "w", kind)
    seen, stopped = crash(world, 3, "before")
    assert (seen[-1], stopped) == ("Settle", True)
    ledger = world.open()
    (operation,) = ledger.store.unresolved()
    assert ledger.get(operation.id).outcome is Outcome.UNKNOWN
    world.rest(ledger)
    receipt = ledger.get(operation.id)
    assert (receipt.outcome, receipt.operation.settled_by) == (Outcome.SUCCEEDED, "succeeded:look")
    assert receipt.result["id"] == world.truth.effects[0]["id"]
    assert world.truth.requests == [operation.id]
    assert_honest(world, ledger)
    ledger.close()


@pytest.mark.parametrize(
    ("kind", "assumed", "outcome", "requests"),
    [
        ("lab.key", None, Outcome.SUCCEEDED, 1),  # the key still protects: the worker sends with it again
        ("lab.lookup", None, Outcome.UNKNOWN, 0),  # nobody says how late a request may be applied
        ("lab.lookup", 60.0, Outcome.REJECTED, 0),  # absence is proven
        ("lab.nothing", 60.0, Outcome.UNKNOWN, 0),
    ],
)
def test_what_a_claim_without_a_send_comes_to(tmp_path, kind, assumed, outcome, requests):
    """A claim whose send was never begun ends by what the contract allows, and by nothing else."""
    world = World(tmp_path / "w", kind, longest_delivery=assumed)
    crash(world, 2, "before")
    ledger, (receipt,) = settled(world)
    assert receipt.outcome is outcome
    assert len(world.truth.requests) == requests
    assert_honest(world, ledger)
    ledger.close()


def test_a_second_attempt_crashes_like_the_first(tmp_path):
    """After a proven not_sent the same call claims again, and a crash in that attempt is unknown too."""
    for number, (step, when) in enumerate(points()):
        world = World(tmp_path / str(number), "lab.nothing", "connect_failed", "answered")
        ledger = world.open()
        assert world.call(ledger).dispatch is Dispatch.NOT_STARTED
        die(ledger)
        seen, stopped = crash(world, step, when)
        ledger, (receipt,) = settled(world)
        assert_honest(world, ledger)
        if seen[-1] in {"Send", "Settle"} and stopped:
            assert receipt.outcome is (
                Outcome.SUCCEEDED if (seen[-1], when) == ("Settle", "after") else Outcome.UNKNOWN
            )
        ledger.close()
        if not stopped:
            break
    assert seen == ["Validate", "Claim", "Amend", "Send", "Settle"]
