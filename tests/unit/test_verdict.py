"""From a reading to evidence: found succeeds, proven absence is absent, all else stays unknown."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.absence import Absence
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.contract import By
from counterfoil.domain.reading import Reading, ReadingKind
from counterfoil.domain.verdict import evidence_of
from counterfoil.domain.words import Coverage, Finding, Source

KEY, LOOKUP = contracts.load("lab.key").looks[0], contracts.load("lab.lookup").looks[0]
HEALTHY = {"items": 2, "positive_control": True, "negative_control": True}
PROVEN = Absence(proven=True)
ATTEMPTS = tuple(Attempt(number=n, token=f"w.{n}") for n in (1, 2, 3))


def evidence(kind, *, look=LOOKUP, absence=None, **fields):
    """The evidence of a healthy look."""
    reading = Reading(kind=kind, **(HEALTHY | fields))
    return evidence_of(reading, look=look, index=1, attempts=ATTEMPTS, effect="pay", absence=absence)


def test_found_is_succeeded_with_its_evidence():
    """The finding names effect, object, result, rule and what was compared."""
    seen = evidence(
        ReadingKind.FOUND, external_id="ef_1", result={"id": 1}, compared={"account": "equal"}, state={"/s": "done"}
    )
    assert (seen.source, seen.finding, seen.effect) == (Source.LOOK, Finding.SUCCEEDED, "pay")
    assert (seen.external_id, seen.result, seen.rule, seen.attempt) == ("ef_1", {"id": 1}, "looks[1].found", 3)
    assert seen.facts == HEALTHY | {"compared": {"account": "equal"}, "state": {"/s": "done"}}
    assert not seen.quiesced
    assert not seen.contradicts


@pytest.mark.parametrize(("look", "coverage"), [(KEY, Coverage.PROVIDER_KEY), (LOOKUP, Coverage.OPERATION)])
def test_a_look_speaks_for_what_it_searched_by(look, coverage):
    """By key it speaks for every attempt with that key, by client reference for the operation."""
    assert evidence(ReadingKind.FOUND, look=look).coverage is coverage


def test_absence_is_evidence_only_when_proven():
    """Only the calculator's proof makes a negative look say absent; the rest names what is missing."""
    assert evidence(ReadingKind.ABSENT, absence=PROVEN).finding is Finding.ABSENT
    unproven = evidence(ReadingKind.ABSENT, absence=Absence(proven=False, missing=("too early",), earliest=9.0))
    assert unproven.finding is Finding.UNKNOWN
    assert unproven.facts == HEALTHY | {"missing": ["too early"], "earliest": 9.0}
    assert evidence(ReadingKind.ABSENT).finding is Finding.UNKNOWN


@pytest.mark.parametrize("kind", [ReadingKind.INCONCLUSIVE, ReadingKind.FOREIGN, ReadingKind.CANDIDATE])
def test_nothing_else_settles(kind):
    """Inconclusive, foreign and candidate are unknown, even beside a mistaken proof of absence."""
    seen = evidence(kind, reason="why", external_id="ef_9", result={"id": 1}, absence=PROVEN)
    assert (seen.finding, seen.reason) == (Finding.UNKNOWN, "why")
    assert (seen.effect, seen.external_id, seen.result) == ("", "", None)
    assert seen.facts["candidates"] == ["ef_9"]


def test_a_duplicate_is_success_and_a_contradiction():
    """One of two is ours: the effect took place, and a discrepancy names both."""
    seen = evidence(
        ReadingKind.DUPLICATE, reason="duplicate_suspected", external_id="ef_1", external_ids=("ef_1", "ef_2")
    )
    assert (seen.finding, seen.contradicts, seen.external_id) == (Finding.SUCCEEDED, True, "ef_1")
    assert seen.facts["candidates"] == ["ef_1", "ef_2"]
    unmatched = evidence(ReadingKind.DUPLICATE, reason="duplicate_unmatched", external_ids=("a", "b"), external_id="a")
    assert (unmatched.finding, unmatched.contradicts) == (Finding.UNKNOWN, True)


def test_the_providers_word_on_waiting_is_a_fact():
    """Retry-After of a refused read is kept."""
    reading = Reading(kind=ReadingKind.INCONCLUSIVE, reason="status_429", retry_after_seconds=9.0)
    seen = evidence_of(reading, look=KEY, index=0, attempts=ATTEMPTS[:1], effect="pay")
    assert (seen.retry_after_seconds, "retry_after_seconds" in seen.facts) == (9.0, False)
    assert msgspec.json.encode(seen)


def test_what_ended_is_laid_to_the_attempt_it_came_of():
    """By its name, or because no other may have done anything; otherwise nobody can say whose end it is."""
    ended = {"look": LOOKUP, "index": 0, "effect": "pay"}
    reading = Reading(kind=ReadingKind.ENDED, external_id="ef_2", **HEALTHY)
    named = tuple(msgspec.structs.replace(a, external_id=f"ef_{a.number}") for a in ATTEMPTS)
    seen = evidence_of(reading, attempts=named, **ended)
    assert (seen.finding, seen.attempt, seen.coverage) == (Finding.REJECTED, 2, Coverage.ATTEMPT)
    assert (seen.rule, seen.effect, seen.external_id) == ("looks[0].ended", "", "ef_2")
    alone = (msgspec.structs.replace(ATTEMPTS[0], finding=Finding.ACCEPTED), *_unsent(*ATTEMPTS[1:]))
    assert evidence_of(reading, attempts=alone, **ended).attempt == 1
    unclear = evidence_of(reading, attempts=ATTEMPTS, **ended)
    assert (unclear.finding, unclear.reason, unclear.external_id) == (Finding.UNKNOWN, "several_attempts", "")


def _unsent(*attempts):
    return tuple(msgspec.structs.replace(a, finding=Finding.NOT_SENT) for a in attempts)


def test_what_ended_under_a_key_is_the_end_of_all_with_it():
    """One key stands for one effect: a look by key speaks of every attempt that carried it."""
    seen = evidence(ReadingKind.ENDED, look=KEY)
    assert (seen.finding, seen.attempt, seen.coverage) == (Finding.REJECTED, 3, Coverage.PROVIDER_KEY)


def test_a_look_by_id_is_about_the_attempt_that_has_it():
    """What is found under an attempt's own name settles that one and no later one."""
    by_id = msgspec.structs.replace(KEY, by=By.ID)
    named = (msgspec.structs.replace(ATTEMPTS[0], external_id="ef_1"), *ATTEMPTS[1:])
    reading = Reading(kind=ReadingKind.FOUND, external_id="ef_1", **HEALTHY)
    assert evidence_of(reading, look=by_id, index=0, attempts=named, effect="pay").attempt == 1
