"""Transitions are total: every finding meets every other, and each pair has one right answer, written out here."""

from __future__ import annotations

import itertools

import pytest

from counterfoil.domain.attempt import Attempt, settle
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Coverage, Finding, Source

N, A, S, R, B, U = (
    Finding.NOT_SENT, Finding.ACCEPTED, Finding.SUCCEEDED, Finding.REJECTED, Finding.ABSENT, Finding.UNKNOWN,
)  # fmt: skip

TABLE = {
    None: {N: (N, False), A: (A, False), S: (S, False), R: (R, False), B: (B, False), U: (U, False)},
    U: {N: (N, False), A: (A, False), S: (S, False), R: (R, False), B: (B, False), U: (U, False)},
    N: {N: (N, False), A: (A, True), S: (S, True), R: (N, False), B: (N, False), U: (N, False)},
    A: {N: (A, True), A: (A, False), S: (S, False), R: (R, False), B: (A, True), U: (A, False)},
    S: {N: (S, True), A: (S, False), S: (S, False), R: (S, True), B: (S, True), U: (S, False)},
    R: {N: (R, False), A: (A, True), S: (S, True), R: (R, False), B: (R, False), U: (R, False)},
    B: {N: (B, False), A: (A, True), S: (S, True), R: (B, False), B: (B, False), U: (B, False)},
}
"""By what was known, for each thing that is said: what is known then, and whether the two contradict each other.

`rejected` after `accepted` is the provider's later word on what it took in; the other way round nobody took it in.
"""

PAIRS = list(itertools.product([None, *Finding], Finding))


def moved(old, new, source=Source.ANSWER, coverage=Coverage.ATTEMPT, **said):
    """What becomes of one attempt, and whether the two contradict each other."""
    attempt = Attempt(number=1, token="w.1", finding=old, external_id=said.pop("known", ""))
    (after,), contradicts = settle(
        (attempt,), Evidence(source=source, finding=new, attempt=1, coverage=coverage, **said)
    )
    return after, contradicts


def test_the_table_names_every_pair():
    """No finding is left out, on either side."""
    assert {(old, new) for old, row in TABLE.items() for new in row} == set(PAIRS)


@pytest.mark.parametrize("coverage", Coverage)
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_every_pair_has_its_answer(old, new, coverage):
    """What one attempt is found to have done follows from what was known and what is said, whomever it covers."""
    after, contradicts = moved(old, new, coverage=coverage)
    assert (after.finding, contradicts) == TABLE[old][new]


UNREPORTED = (Source.LOOK, Source.SENDER)
"""What they do not know is no report of the attempt's own sender."""


@pytest.mark.parametrize("source", [s for s in Source if s not in UNREPORTED])
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_source_changes_no_answer(old, new, source):
    """Who says it decides what may be said, never what follows."""
    after, contradicts = moved(old, new, source)
    assert (after.finding, contradicts) == TABLE[old][new]


@pytest.mark.parametrize("source", UNREPORTED)
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_an_empty_look_and_a_name_report_for_nobody(old, new, source):
    """A look that came to nothing, or a sender that only names its write, leaves the attempt unreported."""
    after, _ = moved(old, new, source)
    assert after.finding is (None if (old, new) == (None, U) else TABLE[old][new][0])


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_proof_is_never_lowered(old, new):
    """Whatever comes after `succeeded`, it stays `succeeded`; and nothing but `unknown` leads to `unknown`."""
    after, _ = moved(old, new)
    if old is S:
        assert after.finding is S
    if after.finding is U:
        assert new is U
        assert old in (None, U)


@pytest.mark.parametrize(("known", "named", "contradicts"), [("a", "b", True), ("a", "a", False), ("", "b", False)])
def test_two_objects_for_one_attempt_contradict(known, named, contradicts):
    """Two different names for what one attempt did are one too many; the first name stays."""
    after, conflict = moved(S, S, known=known, external_id=named)
    assert conflict is contradicts
    assert after.external_id == (known or named)


def test_a_name_is_taken_only_from_what_is_believed():
    """Evidence that changes nothing names nothing either."""
    after, _ = moved(R, N, external_id="x")
    assert after.external_id == ""
    after, _ = moved(U, S, external_id="x")
    assert after.external_id == "x"
