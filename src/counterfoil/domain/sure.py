"""Sureness: a clause carries proof only where its source establishes it; what is inferred, or unknown, is unknown."""

from __future__ import annotations

import msgspec

from counterfoil.domain.contract import Clause, Confidence, Contract, Look

SURE = frozenset({Confidence.DOCUMENTED, Confidence.SOURCE_CODE, Confidence.MEASURED})


def is_sure(contract: Contract, clause: Clause) -> bool:
    """The source that a clause names says so itself, and nobody concluded it."""
    said = contract.sources.get(clause.source)
    return said is not None and said.confidence in SURE


def believed(contract: Contract, look: Look) -> Look:
    """The look as far as absence may rest on it: where its source is unsure, all that could prove one is unknown."""
    if is_sure(contract, look):
        return look
    return msgspec.structs.replace(look, authoritative="unknown", absence_means="unknown", lag_seconds="unknown")
