"""Verdicts on looks: a reading, and what the absence calculator makes of it, become evidence."""

from __future__ import annotations

import msgspec

from counterfoil.domain.absence import Absence
from counterfoil.domain.attempt import NO_EFFECT, Attempt
from counterfoil.domain.contract import By, Look
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.reading import COVERAGE, Reading, ReadingKind
from counterfoil.domain.words import AttemptClass, Coverage, Finding, Source


def evidence_of(
    reading: Reading,
    *,
    look: Look,
    index: int,
    attempts: tuple[Attempt, ...],
    effect: str,
    absence: Absence | None = None,
) -> Evidence:
    """Say what one look proves: found is `succeeded`, ended `rejected`, absence only when proven, all else unknown.

    Args:
        reading: what the look said.
        look: the contract's clause, and `index` its place among the looks.
        index: 0-based.
        attempts: every attempt there was; it is made on behalf of the last one, unless it shows what came of another.
        effect: the action's name for what it does.
        absence: the calculator's verdict, where the look found nothing.
    """
    happened = reading.kind is ReadingKind.FOUND or reading.reason == "duplicate_suspected"
    coverage = coverage_of(look, reading.kind)
    # What ended without effect is of one attempt: it says nothing of another that may still land.
    own = whose(attempts, reading.external_id) if coverage is Coverage.ATTEMPT else attempts[-1].number
    if reading.kind is ReadingKind.ENDED and own is None:
        reading = msgspec.structs.replace(reading, reason="several_attempts")
    finding = _finding(reading, absence, happened=happened)
    return Evidence(
        source=Source.LOOK,
        finding=finding,
        attempt=own or attempts[-1].number,
        coverage=coverage,
        rule=f"looks[{index}].{reading.kind}",
        reason=reading.reason,
        effect=effect if happened else "",
        contradicts=reading.kind is ReadingKind.DUPLICATE,
        external_id=reading.external_id if happened or finding is Finding.REJECTED else "",
        result=reading.result if happened else None,
        facts=_facts(reading, absence),
        retry_after_seconds=reading.retry_after_seconds or 0.0,
    )


ANOTHERS_OBJECT = "anothers_object"
"""The object that answers to it is on record as the effect of another operation."""


def of_another_operation(evidence: Evidence) -> Evidence:
    """What a look found where one object would prove two operations: nothing of this one, and a contradiction."""
    facts = {**evidence.facts, "candidates": [evidence.external_id]}
    return msgspec.structs.replace(
        evidence, finding=Finding.UNKNOWN, contradicts=True, reason=ANOTHERS_OBJECT, effect="", external_id="",
        result=None, facts=facts,
    )  # fmt: skip


def coverage_of(look: Look, kind: ReadingKind) -> Coverage:
    """What a look speaks for, by what it searched by and by what it shows."""
    if kind is ReadingKind.ENDED and look.by is not By.KEY:
        return Coverage.ATTEMPT
    return COVERAGE[look.by]


def whose(attempts: tuple[Attempt, ...], external_id: str) -> int | None:
    """The attempt that a thing came of: whose name it has, or the only one that may have done anything; else None."""
    may = [a for a in attempts if a.finding not in NO_EFFECT and a.attempt_class is not AttemptClass.FENCE]
    named = [a.number for a in may if external_id and a.external_id == external_id]
    if named or len(may) == 1:
        return (named or [may[0].number])[0]
    return None


def _finding(reading: Reading, absence: Absence | None, *, happened: bool) -> Finding:
    if happened:
        return Finding.SUCCEEDED
    if reading.kind is ReadingKind.ABSENT and absence is not None and absence.proven:
        return Finding.ABSENT
    if reading.kind is ReadingKind.ENDED and not reading.reason:
        return Finding.REJECTED
    return Finding.UNKNOWN


def _facts(reading: Reading, absence: Absence | None) -> dict[str, object]:
    facts: dict[str, object] = {
        "items": reading.items,
        "positive_control": reading.positive_control,
        "negative_control": reading.negative_control,
    }
    if reading.pages > 1:
        facts["pages"] = reading.pages
    if reading.compared:
        facts["compared"] = reading.compared
    if reading.state:
        facts["state"] = reading.state
    if reading.kind is not ReadingKind.FOUND and reading.external_id:
        facts["candidates"] = list(reading.external_ids or (reading.external_id,))
    if reading.kind is ReadingKind.ABSENT and absence is not None and not absence.proven:
        facts["missing"] = list(absence.missing)
        facts["earliest"] = absence.earliest
    return facts
