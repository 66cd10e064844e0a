"""What surely elapsed in an operation's history, by readings of the clock that nobody can set.

Only what was recorded later than a thing bounds it: a reading that was taken under the write lock is no earlier than
any event before it, whatever host it was taken on. Where a boot has no such reading yet, the first that it has counts.
"""

from __future__ import annotations

import msgspec

from counterfoil.domain.event import Event, EventKind, History, begun_of, evidence_of, first_begun, read, removed_of
from counterfoil.domain.steady import Steady


class _Read(msgspec.Struct, frozen=True):
    steady: Steady | None = None


_read = msgspec.json.Decoder(_Read)
_LOCKED = frozenset({EventKind.BEGUN, EventKind.LOOKING})
"""Their readings are taken under the write lock, so they bound every event before them."""


def reading_of(event: Event) -> Steady | None:
    """When an event was recorded, by the clock of whoever recorded it; None where it does not say so."""
    return read(_read, event).steady if event.kind in _LOCKED else None


def since_last_write(events: tuple[Event, ...]) -> float | None:
    """Seconds that surely passed between the last moment at which a sender could write, and the look recorded last.

    Negative while a sender's own deadline is ahead; None where that look has no reading.
    """
    look = reading_of(events[-1])
    return None if look is None else look.seconds - _last_write(events, look)


def _last_write(events: tuple[Event, ...], look: Steady) -> float:
    """When no sender wrote any more, on the clock of the look that stands last; that look itself, if nothing earlier.

    A sender may write until its deadline, or until it is known to be quiet, whichever is later.
    """
    latest, owed, quiet = float("-inf"), [0.0] * (removed_of(events) is not None), set[int]()
    for event in events:
        reading = reading_of(event)
        if event.kind is EventKind.BEGUN:
            owed.append(begun_of(event).attempt.send_seconds)
        elif event.kind is EventKind.OBSERVED:
            evidence = evidence_of(event)
            if evidence.quiesced and evidence.attempt not in quiet:
                quiet.add(evidence.attempt)
                reported = evidence.steady
                if reported is not None and reported.boot == look.boot:
                    latest = max(latest, reported.seconds)
                else:
                    owed.append(0.0)
        if owed and reading is not None and reading.boot == look.boot:
            latest, owed = max(latest, reading.seconds + max(owed)), []
    return latest


def since_first_claim(history: History) -> float | None:
    """Seconds from the first claim to the reading of this history; None where its boot is another."""
    begun = first_begun(history.events)
    return history.read.since(begun.steady) if history.read is not None and begun is not None else None
