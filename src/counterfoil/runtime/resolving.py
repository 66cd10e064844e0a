"""An operator's finding: evidence by a named person, with the fields it rests on."""

from __future__ import annotations

from typing import Any

from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import History, attempts_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Coverage, Discrepancy, Finding, Source

_FINDINGS = {
    "succeeded": Finding.SUCCEEDED,
    "accepted": Finding.ACCEPTED,
    "rejected": Finding.REJECTED,
}


def finding_of(  # noqa: PLR0913 - a finding has this many parts
    history: History,
    outcome: str,
    *,
    evidence: dict[str, Any],
    by: str,
    reason: str,
    how: str,
    attempt: int | None,
) -> Evidence:
    """Turn what a person found into evidence; of the whole operation, it settles a discrepancy that stands open.

    Raises:
        BadValue: no evidence, no name, no attempt to speak of, or a word that is no finding.
    """
    attempts, _ = attempts_of(history.events)
    if outcome not in _FINDINGS:
        raise BadValue("outcome", outcome, wanted=f"a finding is one of {', '.join(sorted(_FINDINGS))}")
    blank = [name for name, value in evidence.items() if not str(name).strip() or value is None or value == ""]
    if not evidence or blank:
        raise BadValue("evidence", evidence, wanted="name at least one field that was seen, e.g. refund_id=re_123")
    if not by:
        raise BadValue("by", by, wanted="a finding has a name to it")
    if not attempts:
        raise BadValue("operation", history.operation.id, wanted="nothing of it was attempted, so nothing can be found")
    if attempt is not None and not 1 <= attempt <= len(attempts):
        raise BadValue("attempt", attempt, wanted=f"1 to {len(attempts)}")
    settles = history.operation.discrepancy is Discrepancy.OPEN and attempt is None
    named = next((str(evidence[k]) for k in ("id", "external_id") if k in evidence), "")
    return Evidence(
        source=Source.OPERATOR,
        finding=_FINDINGS[outcome],
        attempt=attempt or attempts[-1].number,
        coverage=Coverage.OPERATION if attempt is None else Coverage.ATTEMPT,
        rule="operator.finding",
        by=by,
        how=how,
        why=reason,
        settles=settles,
        external_id=named,
        # What was seen is all that a replay can return: the function's own answer was lost.
        result=dict(evidence) if _FINDINGS[outcome] is not Finding.REJECTED else None,
        facts={"by": by, "how": how, "reason": reason, "evidence": evidence},
    )
