"""Attempts: whom evidence covers, who is quiesced, and what all of them come to together."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil.domain.attempt import Attempt, contradiction, fold, settle
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Coverage, Discrepancy, Dispatch, Finding, Outcome, Source

N, A, S, R, B, U = (
    Finding.NOT_SENT, Finding.ACCEPTED, Finding.SUCCEEDED, Finding.REJECTED, Finding.ABSENT, Finding.UNKNOWN,
)  # fmt: skip


def attempts(*findings, quiesced=True):
    """Attempts 1, 2, ... with these findings."""
    return tuple(
        Attempt(number=i, token=f"w.{i}", finding=f, quiesced=quiesced) for i, f in enumerate(findings, start=1)
    )


def evidence(finding, attempt=1, coverage=Coverage.ATTEMPT, source=Source.ANSWER, **said):
    """One observation."""
    return Evidence(source=source, finding=finding, attempt=attempt, coverage=coverage, **said)


def findings(before, said):
    """The findings after one more piece of evidence, and whether it contradicts."""
    after, contradicts = settle(before, said)
    return [a.finding for a in after], contradicts


@pytest.mark.parametrize("finding", [R, N, B, S, A, U])
def test_an_answer_speaks_for_its_own_attempt(finding):
    """What one attempt was told never settles another (F2, F3, R8)."""
    assert findings(attempts(U, None, U), evidence(finding, 2))[0] == [U, finding, U]


def test_evidence_of_an_attempt_nobody_made_changes_nothing():
    """A number without an attempt covers nobody."""
    before = attempts(U)
    assert settle(before, evidence(S, 7)) == (before, False)


@pytest.mark.parametrize("coverage", [Coverage.PROVIDER_KEY, Coverage.OPERATION])
@pytest.mark.parametrize("finding", [N, U])
def test_not_sent_and_unknown_cover_nobody_else(finding, coverage):
    """Whatever a contract says it covers, what one sender knows of its own bytes says nothing of another's."""
    assert findings(attempts(U, None), evidence(finding, 2, coverage))[0] == [U, finding]


def test_one_effect_with_the_key_explains_all_that_may_have_caused_it():
    """Attempts with one provider key had one effect between them; those that did nothing stay what they are."""
    assert findings(attempts(U, N, None), evidence(S, 3, Coverage.PROVIDER_KEY)) == ([S, N, S], False)


@pytest.mark.parametrize(("other", "left"), [(A, ([S, A], True)), (S, ([N, S], False))])
def test_a_proof_is_not_laid_to_what_was_merely_accepted(other, left):
    """An attempt that denies itself hands its effect on only to one that is proven as well: no proof is lost by it."""
    before = tuple(msgspec.structs.replace(each, external_id="b") for each in attempts(S, other))
    assert findings(before, evidence(N, 1)) == left


@pytest.mark.parametrize("coverage", [Coverage.PROVIDER_KEY, Coverage.OPERATION])
@pytest.mark.parametrize("finding", [B, R])
def test_that_nothing_happened_says_nothing_of_a_later_attempt(finding, coverage):
    """A look that was made before an attempt began may be recorded after it (mutant `stale_sweep`)."""
    assert findings(attempts(U, N, U), evidence(finding, 2, coverage, Source.LOOK))[0] == [finding, N, U]


def test_a_success_after_not_sent_is_no_contradiction():
    """Connection refused, then sent again and done: the first attempt still did nothing."""
    assert findings(attempts(N, None), evidence(S, 2, Coverage.PROVIDER_KEY)) == ([N, S], False)
    assert findings(attempts(R, None), evidence(S, 2, Coverage.PROVIDER_KEY)) == ([R, S], False)


@pytest.mark.parametrize("nothing", [N, R])
def test_which_of_them_did_nothing_may_be_said_before_or_after_the_effect(nothing):
    """A paused sender wakes after its repeat was answered, and says that it did nothing: the repeat did it (cell 19-N).

    In either order the same is known, and nothing is contradicted; unless nobody is left who may have caused it.
    """
    done = evidence(S, 2, Coverage.PROVIDER_KEY, external_id="ef_1")
    first, odd = settle(settle(attempts(U, None), done)[0], evidence(nothing, 1))
    other, none = settle(settle(attempts(U, None), evidence(nothing, 1))[0], done)
    assert (first, odd) == (other, none)
    assert [(a.finding, a.external_id) for a in first] == [(nothing, ""), (S, "ef_1")]
    assert findings(first, evidence(nothing, 2)) == ([nothing, S], True)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (attempts(S), evidence(N, 1)),
        (attempts(S, S), evidence(N, 1)),
        (attempts(S, U), evidence(R, 1)),
        (attempts(S, S), evidence(R, 1, Coverage.PROVIDER_KEY)),
    ],
)
def test_two_effects_are_not_one(before, said):
    """Each attempt with an effect of its own, or with one that has no name: what denies one of them contradicts it."""
    assert settle(before, said)[1]
    named = tuple(msgspec.structs.replace(a, external_id=f"ef_{a.number}") for a in before)
    after, contradicts = settle(named, said)
    assert (after[0].finding, contradicts) == (S, True)


@pytest.mark.parametrize("nothing", [N, R, B])
def test_an_effect_nobody_can_have_caused_contradicts(nothing):
    """Where every attempt is said to have done nothing, and yet it happened, the two are kept beside each other."""
    before = attempts(nothing, nothing)
    assert findings(before, evidence(S, 2, Coverage.PROVIDER_KEY)) == ([nothing, S], True)
    assert findings(before, evidence(S, 2, Coverage.OPERATION, Source.LOOK)) == ([nothing, S], True)


@pytest.mark.parametrize("coverage", [Coverage.PROVIDER_KEY, Coverage.OPERATION])
def test_a_proof_of_nothing_speaks_for_all(coverage):
    """Absence of what carries our name is absence for every attempt; what is proven to have happened contradicts it."""
    assert findings(attempts(U, N, U), evidence(B, 3, coverage, Source.LOOK)) == ([B, N, B], False)
    assert findings(attempts(S, U), evidence(B, 2, coverage, Source.LOOK)) == ([S, B], True)


def test_one_thing_that_is_found_explains_one_attempt():
    """Without a key two attempts may have had two effects: one thing found leaves the other attempt open."""
    look = evidence(S, 2, Coverage.OPERATION, Source.LOOK)
    assert findings(attempts(U, U), look)[0] == [S, U]
    assert findings(attempts(U, S), look)[0] == [U, S]
    assert findings(attempts(R, A), look)[0] == [R, S]
    assert findings(attempts(R, N), evidence(A, 2, Coverage.OPERATION))[0] == [R, A]


def test_only_whoever_reported_back_is_quiesced():
    """An answer for the key settles an earlier attempt and says nothing of its worker, which may still write."""
    before = attempts(U, None, quiesced=False)
    after, _ = settle(before, evidence(S, 2, Coverage.PROVIDER_KEY, quiesced=True))
    assert [(a.finding, a.quiesced) for a in after] == [(S, False), (S, True)]
    after, _ = settle(before, evidence(R, 1, quiesced=True))
    assert [(a.finding, a.quiesced) for a in after] == [(R, True), (None, False)]
    after, _ = settle(after, evidence(U, 1))
    assert after[0].quiesced


@pytest.mark.parametrize(
    ("found", "outcome", "exposure", "dispatch"),
    [
        ((None,), Outcome.UNOBSERVED, 1, Dispatch.STARTED),
        ((U,), Outcome.UNKNOWN, 1, Dispatch.COMPLETED),
        ((N,), Outcome.UNOBSERVED, 0, Dispatch.NOT_STARTED),
        ((N, N), Outcome.UNOBSERVED, 0, Dispatch.NOT_STARTED),
        ((A,), Outcome.ACCEPTED, 0, Dispatch.COMPLETED),
        ((S,), Outcome.SUCCEEDED, 0, Dispatch.COMPLETED),
        ((R,), Outcome.REJECTED, 0, Dispatch.COMPLETED),
        ((B,), Outcome.REJECTED, 0, Dispatch.COMPLETED),
        ((U, R), Outcome.UNKNOWN, 1, Dispatch.COMPLETED),
        ((U, N), Outcome.UNKNOWN, 1, Dispatch.COMPLETED),
        ((R, N), Outcome.REJECTED, 0, Dispatch.COMPLETED),
        ((U, S), Outcome.SUCCEEDED, 1, Dispatch.COMPLETED),
        ((R, None), Outcome.UNOBSERVED, 1, Dispatch.STARTED),
        ((U, None), Outcome.UNKNOWN, 2, Dispatch.STARTED),
        ((A, None), Outcome.UNOBSERVED, 1, Dispatch.STARTED),
    ],
)
def test_what_all_attempts_come_to(found, outcome, exposure, dispatch):
    """The outcome of the best proof, the count of what may still land, and whether a sender may still write."""
    tries = tuple(a if a.finding else Attempt(number=a.number, token=a.token) for a in attempts(*found))
    folded = fold(tries, Discrepancy.NONE, follows=False)
    assert (folded.outcome, folded.exposure, folded.dispatch) == (outcome, exposure, dispatch)
    assert folded.unresolved is (exposure > 0)


def test_an_unknown_that_may_still_write_is_not_completed():
    """Dispatch is over when nobody can write any more; until then it is started, whatever is known."""
    assert fold(attempts(U, quiesced=False), Discrepancy.NONE, follows=False).dispatch is Dispatch.STARTED
    assert fold(attempts(S, quiesced=False), Discrepancy.NONE, follows=False).dispatch is Dispatch.COMPLETED


@pytest.mark.parametrize(
    ("found", "outcome"), [(S, Outcome.SUCCEEDED), (R, Outcome.UNKNOWN), (A, Outcome.UNKNOWN), (N, Outcome.UNKNOWN)]
)
def test_a_discrepancy_hides_no_proof(found, outcome):
    """An open discrepancy leaves `succeeded` standing and makes everything weaker read as unknown; it is unresolved."""
    folded = fold(attempts(found), Discrepancy.OPEN, follows=False)
    assert (folded.outcome, folded.unresolved) == (outcome, True)
    assert not fold(attempts(S), Discrepancy.SETTLED, follows=False).unresolved


@pytest.mark.parametrize(("found", "unresolved"), [(A, True), (S, False), (R, False)])
def test_accepted_is_the_end_only_without_a_terminal_observation(found, unresolved):
    """Where the contract names a later word, accepted waits for it; without one the acceptance is the effect."""
    assert fold(attempts(found), Discrepancy.NONE, follows=True).unresolved is unresolved
    assert not fold(attempts(found), Discrepancy.NONE, follows=False).unresolved


def test_the_deadline_counts_from_the_claim():
    """A sender may write until so many seconds after the store's clock at the claim, and zero seconds are zero."""
    assert Attempt(number=1, token="w.1", started_at=100.0, send_seconds=10.0).deadline == 110.0
    assert Attempt(number=1, token="w.1", started_at=100.0, send_seconds=0.0).deadline == 100.0


@pytest.mark.parametrize(
    ("before", "settles", "contradicts", "after"),
    [
        (Discrepancy.OPEN, True, False, Discrepancy.SETTLED),
        (Discrepancy.OPEN, True, True, Discrepancy.SETTLED),
        (Discrepancy.OPEN, False, False, Discrepancy.OPEN),
        (Discrepancy.NONE, True, False, Discrepancy.NONE),
        (Discrepancy.NONE, True, True, Discrepancy.OPEN),
        (Discrepancy.SETTLED, False, False, Discrepancy.SETTLED),
        (Discrepancy.SETTLED, False, True, Discrepancy.OPEN),
    ],
)
def test_only_a_finding_that_settles_ends_a_discrepancy(before, settles, contradicts, after):
    """What contradicts opens it, also a second time; nothing but a person's finding about an open one ends it."""
    said = evidence(S, source=Source.OPERATOR, settles=settles)
    assert contradiction(before, said, attempts(S), contradicts=contradicts) is after


@pytest.mark.parametrize(
    ("stand", "said", "ends"),
    [
        ((S,), S, True),
        ((S,), R, False),  # proof stays, however often somebody denies it
        ((S,), A, False),
        ((A,), A, True),
        ((R, S), R, False),
        ((R, B), R, True),
        ((R, U), R, False),  # one of them may still land
        ((U,), S, False),
    ],
)
def test_a_finding_settles_only_what_it_agrees_with(stand, said, ends):
    """A person's word ends a contradiction where the outcome that stands is the one they found, and nobody else's."""
    found = evidence(said, source=Source.OPERATOR, settles=True)
    after = contradiction(Discrepancy.OPEN, found, attempts(*stand), contradicts=False)
    assert after is (Discrepancy.SETTLED if ends else Discrepancy.OPEN)
    other = evidence(said, source=Source.WEBHOOK, settles=True)
    assert contradiction(Discrepancy.OPEN, other, attempts(*stand), contradicts=False) is Discrepancy.OPEN
