"""Verdicts on looks: a reading, and what the absence calculator makes of it, become evidence."""

from __future__ import annotations

from counterfoil.domain.absence import Absence
from counterfoil.domain.contract import Look
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.reading import COVERAGE, Reading, ReadingKind
from counterfoil.domain.words import Finding, Source


def evidence_of(
    reading: Reading, *, look: Look, index: int, attempt: int, effect: str, absence: Absence | None = None
) -> Evidence:
    """Say what one look proves: found is `succeeded`, disproved `rejected`, absence only when proven, all else unknown.

    Args:
        reading: what the look said.
        look: the contract's clause, and `index` its place among the looks.
        index: 0-based.
        attempt: the attempt on whose behalf it was made: the one it was asked by its name, or the last one.
        effect: the action's name for what it does.
        absence: the calculator's verdict, where the look found nothing.
    """
    happened = reading.kind is ReadingKind.FOUND or reading.reason == "duplicate_suspected"
    return Evidence(
        source=Source.LOOK,
        finding=_finding(reading, absence, happened=happened),
        attempt=attempt,
        coverage=COVERAGE[look.by],
        rule=f"looks[{index}].{reading.kind}",
        reason=reading.reason,
        effect=effect if happened else "",
        contradicts=reading.kind is ReadingKind.DUPLICATE,
        external_id=reading.external_id if happened else "",
        result=reading.result if happened else None,
        facts=_facts(reading, absence),
    )


def _finding(reading: Reading, absence: Absence | None, *, happened: bool) -> Finding:
    if happened:
        return Finding.SUCCEEDED
    if reading.kind is ReadingKind.DISPROVED:
        return Finding.REJECTED
    if reading.kind is ReadingKind.ABSENT and absence is not None and absence.proven:
        return Finding.ABSENT
    return Finding.UNKNOWN


def _facts(reading: Reading, absence: Absence | None) -> dict[str, object]:
    facts: dict[str, object] = {
        "items": reading.items,
        "positive_control": reading.positive_control,
        "negative_control": reading.negative_control,
    }
    if reading.compared:
        facts["compared"] = reading.compared
    if reading.state:
        facts["state"] = reading.state
    if reading.kind is not ReadingKind.FOUND and reading.external_id:
        facts["candidates"] = list(reading.external_ids or (reading.external_id,))
    if reading.retry_after_seconds is not None:
        facts["retry_after_seconds"] = reading.retry_after_seconds
    if reading.kind is ReadingKind.ABSENT and absence is not None and not absence.proven:
        facts["missing"] = list(absence.missing)
        facts["earliest"] = absence.earliest
    return facts
