"""The part of verification that is about fences, written apart from the rules that decide."""

from __future__ import annotations

import re

from counterfoil.domain.attempt import Attempt
from counterfoil.domain.event import Begun
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import AttemptClass, Discrepancy, Finding, Source

_WON = re.compile(r"fences\[[0-9]+\]\.won")


def against_begun(
    begun: Begun, attempts: tuple[Attempt, ...], discrepancy: Discrepancy, first: Begun | None
) -> tuple[str, ...]:
    """Say why a fence could not be sent then; empty where it could.

    Args:
        begun: its record.
        attempts: every attempt before it.
        discrepancy: as it stood.
        first: the record of the first attempt.
    """
    found = [a.finding for a in attempts]
    failed = {
        "it is no further attempt": first is None,
        "it names a basis for sending the effect again": bool(begun.basis),
        "it stands on another contract than its operation": first is not None and first.contract != begun.contract,
        "the effect had taken place or was accepted": Finding.SUCCEEDED in found or Finding.ACCEPTED in found,
        "evidence contradicted evidence": discrepancy is Discrepancy.OPEN,
        "an attempt had not been reported on": None in found,
        "nothing was unresolved": Finding.UNKNOWN not in found,
        "no person asked for it, with a reason": not begun.by or not begun.reason or begun.fence is None,
    }
    return tuple(said for said, fails in failed.items() if fails)


def is_about_fence(evidence: Evidence, attempts: tuple[Attempt, ...]) -> bool:
    """It is what the provider answered to a fence."""
    answered = evidence.source in (Source.ANSWER, Source.LATE_ANSWER)
    return answered and attempts[evidence.attempt - 1].attempt_class is AttemptClass.FENCE


def against_said(evidence: Evidence) -> str:
    """Say why the answer to a fence is no evidence of its finding; empty where it is."""
    match evidence.finding:
        case Finding.UNKNOWN:
            return ""
        case Finding.ABSENT:
            return "" if _WON.fullmatch(evidence.rule) else "the fence was not answered that it had won"
        case Finding.REJECTED:
            return "" if evidence.rule else "no rule judged it"
        case _:
            return "the answer to a fence says nothing of the effect"


def stands(attempts: tuple[Attempt, ...]) -> bool:
    """A fence was sent, or may have been."""
    return any(a.attempt_class is AttemptClass.FENCE and a.finding is not Finding.NOT_SENT for a in attempts)
