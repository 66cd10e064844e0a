"""When "not found" is evidence: every condition of the absence calculator, each missing alone."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil.domain import absence as calculator
from counterfoil.domain.absence import absence
from counterfoil.domain.contract import By, Consistency, Look, LookTemplate, Match
from counterfoil.domain.reading import Reading, ReadingKind

LOOK = Look(
    by=By.CLIENT_REFERENCE,
    request=LookTemplate(path="/effects"),
    match=Match(),
    consistency=Consistency.STRONG,
    lag_seconds=5.0,
    authoritative=True,
    absence_means="never_happened",
    source="service",
)
READING = Reading(kind=ReadingKind.ABSENT, positive_control=True, negative_control=True)
DEADLINE, DELIVERY, LAG = 1000.0, 60.0, 5.0
NEEDED = DELIVERY + LAG
"""From the last write, until nothing of it is on its way or hidden any more."""


def judged(
    *, look=LOOK, reading=READING, looked_at=DEADLINE + NEEDED + 0.001, elapsed=NEEDED + 0.001, delivery=DELIVERY,
    quiesced=True,
):  # fmt: skip
    """A verdict in which everything holds that the test does not change."""
    return absence(
        look=look, reading=reading, looked_at=looked_at, elapsed=elapsed, deadline=DEADLINE, longest_delivery=delivery,
        quiesced=quiesced,
    )  # fmt: skip


def other(value, **changes):
    """The same value with some fields changed."""
    return msgspec.structs.replace(value, **changes)


def test_absence_is_proven_when_nothing_is_missing():
    """With every condition met, one look after the last possible moment is proof."""
    verdict = judged()
    assert verdict.proven
    assert verdict.missing == ()
    assert verdict.earliest == DEADLINE + DELIVERY + LAG


@pytest.mark.parametrize("looked_at", [0.0, DEADLINE, DEADLINE + DELIVERY, DEADLINE + DELIVERY + LAG])
def test_a_look_in_time_for_a_late_request_proves_nothing(looked_at):
    """Up to and including deadline + longest delivery + lag the request may still take effect unseen."""
    verdict = judged(looked_at=looked_at)
    assert not verdict.proven
    assert verdict.missing == (calculator.TOO_EARLY,)
    assert verdict.earliest == DEADLINE + DELIVERY + LAG


@pytest.mark.parametrize("elapsed", [-10.0, 0.0, DELIVERY, NEEDED])
def test_a_wall_clock_that_steps_forward_proves_nothing(elapsed):
    """However late the wall clock says it is: what has not surely elapsed has not, and the rest of it is waited for."""
    looked_at = DEADLINE + 3600.0
    verdict = judged(looked_at=looked_at, elapsed=elapsed)
    assert (verdict.proven, verdict.missing) == (False, (calculator.NOT_ELAPSED,))
    assert verdict.earliest == looked_at + NEEDED - elapsed


def test_where_nothing_says_what_elapsed_no_look_is_proof():
    """Without the clock that nobody can set, no waiting helps: no time is promised."""
    verdict = judged(looked_at=1e12, elapsed=None)
    assert (verdict.proven, verdict.missing) == (False, (calculator.NOT_ELAPSED,))
    assert verdict.earliest is None


def test_a_wall_clock_that_was_set_back_proves_nothing_either():
    """Both clocks must say that it is late enough."""
    assert judged(looked_at=DEADLINE, elapsed=1e9).missing == (calculator.TOO_EARLY,)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"by": By.ID}, calculator.BY_ID),
        ({"authoritative": False}, calculator.NOT_AUTHORITATIVE),
        ({"authoritative": "unknown"}, calculator.NOT_AUTHORITATIVE),
        ({"consistency": Consistency.EVENTUAL}, calculator.NOT_STRONG),
        ({"consistency": Consistency.UNKNOWN}, calculator.NOT_STRONG),
        ({"lag_seconds": "unknown"}, calculator.LAG_UNKNOWN),
        ({"absence_means": "not_now"}, calculator.NOT_NEVER),
        ({"absence_means": "unknown"}, calculator.NOT_NEVER),
    ],
)
def test_what_the_contract_does_not_grant_no_waiting_mends(change, sentence):
    """A clause that is missing or unknown makes this look never count, and no earliest time is promised."""
    verdict = judged(look=other(LOOK, **change), looked_at=1e12)
    assert not verdict.proven
    assert verdict.missing == (sentence,)
    assert verdict.earliest is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": ReadingKind.INCONCLUSIVE}, calculator.NOT_ABSENT),
        ({"kind": ReadingKind.CANDIDATE}, calculator.NOT_ABSENT),
        ({"kind": ReadingKind.FOREIGN}, calculator.NOT_ABSENT),
        ({"positive_control": False}, calculator.NO_POSITIVE),
        ({"negative_control": False}, calculator.NO_NEGATIVE),
    ],
)
def test_a_look_that_was_not_shown_to_work_proves_nothing(change, sentence):
    """Both controls and a healthy negative are needed in the very look."""
    verdict = judged(reading=other(READING, **change))
    assert not verdict.proven
    assert verdict.missing == (sentence,)


def test_without_an_assumption_the_request_may_always_still_arrive():
    """No longest_delivery, no absence by look, however late."""
    verdict = judged(delivery=None, looked_at=1e12)
    assert verdict.missing == (calculator.NO_DELIVERY,)
    assert verdict.earliest is None


def test_a_worker_that_may_still_write_forbids_absence():
    """Quiescence of every earlier attempt is a condition of its own."""
    assert judged(quiesced=False).missing == (calculator.NOT_QUIESCED,)


def test_every_missing_condition_is_named():
    """The receipt prints all that is missing, not the first."""
    look = other(LOOK, authoritative=False, consistency=Consistency.EVENTUAL)
    verdict = judged(look=look, reading=Reading(kind=ReadingKind.INCONCLUSIVE), delivery=None, quiesced=False)
    assert set(verdict.missing) == {
        calculator.NOT_AUTHORITATIVE,
        calculator.NOT_STRONG,
        calculator.NOT_ABSENT,
        calculator.NO_POSITIVE,
        calculator.NO_NEGATIVE,
        calculator.NO_DELIVERY,
        calculator.NOT_QUIESCED,
    }


@pytest.mark.parametrize(("stable", "pages", "proven"), [
    (True, 2, True), (False, 2, False), ("unknown", 2, False), ("unknown", 1, True),
])  # fmt: skip
def test_what_was_read_in_pages_may_have_moved_between_them(stable, pages, proven):
    """A thing that stood on the second page when the first was read may stand on the first when the second is."""
    verdict = judged(look=other(LOOK, stable_pages=stable), reading=other(READING, pages=pages))
    assert (verdict.proven, verdict.missing) == (proven, () if proven else (calculator.NOT_STABLE,))
