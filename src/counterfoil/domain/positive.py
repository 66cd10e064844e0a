"""Verification of what is said to have happened: whether that source can say it."""

from __future__ import annotations

from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Finding, Source

_SENDING = {Source.TRANSPORT: "wire", Source.SENDER: "sender"}


def not_said(evidence: Evidence) -> str:
    """Whether something happened is said by a provider or a person, under a rule; never by the wire."""
    if evidence.source in _SENDING:
        return f"the {_SENDING[evidence.source]} does not say what happened"
    if not evidence.rule:
        return "no rule judged it"
    if evidence.finding is Finding.SUCCEEDED and not evidence.effect and evidence.source is not Source.OPERATOR:
        return "it names no effect"
    return ""
