"""Names that a sender gives its own write before it finishes it."""

from __future__ import annotations

from counterfoil.domain.command import Amendment, Declined, NewEvent, Rule
from counterfoil.domain.event import EventKind, History, attempts_of


def note(token: str, record: bytes) -> Rule:
    """Keep the name a sender gives its own write, while it may still finish it; what it says moves nothing.

    Args:
        token: proof that it speaks for its attempt.
        record: the encoded evidence.
    """

    def rule(history: History, now: float) -> Amendment | Declined:
        attempts, _ = attempts_of(history.events)
        mine = next((a for a in attempts if a.token == token), None)
        if mine is None or mine.finding is not None or mine.quiesced:
            return Declined(because=("nobody waits for this attempt any more",))
        if now >= mine.deadline:
            return Declined(because=("its sender must have ended by now",))
        return Amendment(operation=history.operation, events=(NewEvent(kind=EventKind.OBSERVED, record=record),))

    return rule
