"""When an operation is passed up: after its age, again and again, later where somebody decided to wait."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import approved, asked, who
from tests.crash.keeping import settled
from tests.crash.stepping import NOON, claimed, held, observed, ruled

from counterfoil.domain.care import assign, escalate, wait_until
from counterfoil.domain.escalation import Due, due, waits
from counterfoil.domain.override import abandon
from counterfoil.domain.policy import Escalation
from counterfoil.domain.words import Finding

HOUR = 3_600.0
LADDER = Escalation(after_seconds=4 * HOUR, repeat_seconds=HOUR, to="duty")


def unknown():
    """One attempt of which nobody knows what became."""
    return observed(claimed(), Finding.UNKNOWN)


def passed_up(history, at):
    return ruled(history, escalate(who(history), to="duty"), at)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (unknown(), True),
        (claimed(), True),
        (asked(), True),
        (approved(), True),
        (settled(), False),
        (held(), True),
        (ruled(unknown(), abandon(who(unknown()))), False),
    ],
    ids=["unknown", "claimed", "asked", "approved", "settled", "held", "abandoned"],
)
def test_who_waits_for_somebody(history, expected):
    """Unresolved, or asked for and not sent, held ones too; what is done or abandoned waits for nobody."""
    assert waits(history.operation) is expected


def test_the_first_time_comes_with_its_age():
    """It counts from when it was asked, not from when it was last written to."""
    assert due(unknown(), LADDER) == Due(at=NOON + 4 * HOUR, to="duty", times=0)
    later = ruled(unknown(), assign(who(unknown()), "treasury"), NOON + 3 * HOUR)
    assert due(later, LADDER).at == NOON + 4 * HOUR


def test_it_is_passed_up_again_and_again():
    """Each time counts from the last: nobody's silence ends it."""
    history = unknown()
    for times in range(1, 4):
        at = NOON + (3 + times) * HOUR
        history = passed_up(history, at)
        assert due(history, LADDER) == Due(at=at + HOUR, to="duty", times=times)


def test_passed_up_early_it_still_comes_with_its_age():
    """A person who passes it up at once does not make the house hurry."""
    assert due(passed_up(unknown(), NOON + 60), LADDER).at == NOON + 4 * HOUR


def test_a_wait_starts_the_clock_anew_at_its_end():
    """Before its end nobody is bothered; the longest wait counts, and the age no more."""
    history = ruled(unknown(), wait_until(who(unknown()), NOON + 10 * HOUR), NOON + 2)
    assert due(history, LADDER).at == NOON + 14 * HOUR
    shorter = ruled(history, wait_until(who(history), NOON + HOUR), NOON + 3)
    assert due(shorter, LADDER).at == NOON + 14 * HOUR
    assert due(passed_up(shorter, NOON + 11 * HOUR), LADDER).at == NOON + 14 * HOUR
    assert due(passed_up(shorter, NOON + 14 * HOUR), LADDER).at == NOON + 15 * HOUR


def test_the_policy_in_force_says_when_and_to_whom():
    """Nothing of it is frozen with the operation."""
    other = msgspec.structs.replace(LADDER, after_seconds=60.0, to="finance")
    assert due(unknown(), other) == Due(at=NOON + 60, to="finance", times=0)
