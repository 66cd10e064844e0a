"""Verification of "not found": whether a look that is on record could show that nothing had happened."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from counterfoil.domain.attempt import Attempt
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Source


class Paid(msgspec.Struct, frozen=True):
    """One look that was paid for."""

    at: float
    elapsed: float | None
    """Seconds that surely passed before it since a sender could last write; None on records of versions that did not
    say, and of these only the wall clock can be asked."""


def against_absence(
    evidence: Evidence, attempts: tuple[Attempt, ...], looks: Sequence[Paid], assumed: float | None
) -> str:
    """Say why evidence of absence is none: it counts only from a late enough look, with every sender stopped.

    Args:
        evidence: what says that nothing happened.
        attempts: every attempt there was.
        looks: every look that was paid for; which of them it came of is not on record.
        assumed: the longest delivery, in seconds, as the receipt prints it.
    """
    if evidence.source is not Source.LOOK or not looks:
        return "only a look that was paid for shows absence"
    if assumed is None:
        return "no longest_delivery is printed on the receipt"
    known = attempts[: evidence.attempt]  # what began after the look is none of its business
    if not all(a.quiesced for a in known):
        return "a worker of an earlier attempt could still write"
    latest = max(a.deadline for a in known) + assumed
    late = [look for look in looks if look.at > latest]
    if not late:
        return "the look was made too early"
    if not any(look.elapsed is None or look.elapsed > assumed for look in late):
        return "the look was made too early, by the clock that nobody can set"
    return ""
