"""The absence calculator: when "not found" is evidence, and what is missing while it is not."""

from __future__ import annotations

import msgspec

from counterfoil.domain.contract import By, Consistency, Look
from counterfoil.domain.reading import Reading, ReadingKind


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict on one negative look, with every condition that fails."""

    proven: bool
    missing: tuple[str, ...] = ()
    earliest: float | None = None
    """Seconds since the epoch after which a look like this one may count; None: never, as things are."""


BY_ID = "an id that is known only after success proves nothing when it is not found"
NOT_ABSENT = "the look did not say that nothing is there"
NOT_AUTHORITATIVE = "the contract does not call this look authoritative"
NOT_STRONG = "the contract does not call this look strongly consistent, so a late write may still be hidden from it"
LAG_UNKNOWN = "the contract does not say how far this look lags behind"
NOT_NEVER = "the contract does not say that absence here means it never happened"
NOT_STABLE = "it was read in pages, and the contract does not say that nothing is missed between them"
NO_DELIVERY = "no longest_delivery is assumed, so the request may still arrive"
NO_POSITIVE = "no known item was found in the same look (positive control)"
NO_NEGATIVE = "a random reference was not shown to be missing in the same look (negative control)"
NOT_QUIESCED = "a worker of an earlier attempt may still write"
TOO_EARLY = "the look was made before the last moment at which the request could take effect and show"
NOT_ELAPSED = "by a clock that nobody can set, too little time has passed for the request to have taken effect and show"


def absence(  # noqa: PLR0913 - each is a condition of its own
    *,
    look: Look,
    reading: Reading,
    looked_at: float,
    elapsed: float | None,
    deadline: float,
    longest_delivery: float | None,
    quiesced: bool,
) -> Absence:
    """Say whether this look proves that the effect never took place.

    Args:
        look: the contract's clause.
        reading: what the look said.
        looked_at: seconds since the epoch, by the store's clock, read before the look was made.
        elapsed: seconds that surely passed between the last moment at which a sender could write and this look, by a
            clock that nobody can set; None where none tells.
        deadline: seconds since the epoch after which no sender of this operation writes: the latest of all attempts.
        longest_delivery: seconds within which the provider applies or drops what it was sent, as the
            deployment assumes it; None where nobody does.
        quiesced: every attempt's worker reported back or is proven dead.
    """
    never = _never(look)
    needed = _needed(look, longest_delivery)
    earliest = None if needed is None else deadline + needed
    missing = list(never)
    if reading.kind is not ReadingKind.ABSENT:
        missing.append(NOT_ABSENT)
    if not reading.positive_control:
        missing.append(NO_POSITIVE)
    if not reading.negative_control:
        missing.append(NO_NEGATIVE)
    if reading.pages > 1 and look.stable_pages is not True:
        missing.append(NOT_STABLE)
    if longest_delivery is None:
        missing.append(NO_DELIVERY)
    if not quiesced:
        missing.append(NOT_QUIESCED)
    if needed is not None and earliest is not None:
        if looked_at <= earliest:
            missing.append(TOO_EARLY)
        if elapsed is None or elapsed <= needed:
            missing.append(NOT_ELAPSED)
        # No wall clock shortens that: it says only when to look again.
        earliest = None if elapsed is None else max(earliest, looked_at + needed - elapsed)
    return Absence(proven=not missing, missing=tuple(missing), earliest=None if never else earliest)


def _never(look: Look) -> tuple[str, ...]:
    """The conditions no waiting can mend."""
    failed = {
        BY_ID: look.by is By.ID,
        NOT_AUTHORITATIVE: look.authoritative is not True,
        NOT_STRONG: look.consistency is not Consistency.STRONG,
        LAG_UNKNOWN: look.lag_seconds == "unknown",
        NOT_NEVER: look.absence_means != "never_happened",
    }
    return tuple(sentence for sentence, fails in failed.items() if fails)


def _needed(look: Look, longest_delivery: float | None) -> float | None:
    """Seconds from the last write until a request has taken effect and shows; None where nobody says how many."""
    if longest_delivery is None or look.lag_seconds == "unknown":
        return None
    return longest_delivery + look.lag_seconds
