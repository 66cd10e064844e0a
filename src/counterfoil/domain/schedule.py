"""What happens next to an unresolved operation without a person, and when."""

from __future__ import annotations

import math

import msgspec

from counterfoil.domain.attempt import Attempt, Fold
from counterfoil.domain.contract import Contract
from counterfoil.domain.fence import fenced
from counterfoil.domain.patience import wait_seconds
from counterfoil.domain.words import AttemptClass, Discrepancy, Dispatch, Finding, Outcome

RECOVER, LOOK, REPLAY, FOLLOW, REVIEW = "recover", "look", "replay", "follow", "review"
APPROVE, DISPATCH = "approve", "dispatch"
"""Not sent yet: it waits for people, or for whoever sends it once."""
CALL = "call"
"""Held, or approved and not sent since: whoever asked for it asks again, and nobody else sends it."""
WAITING = frozenset({APPROVE, DISPATCH, CALL})
"""Nothing is unresolved, and it waits for people or for whoever sends it. Its due time is when their question or their
answer ends; 0: nobody was asked, and nothing ends."""
REST = "rest"
"""Abandoned while unresolved: nothing is done about it until evidence comes by itself."""


DOUBLINGS_MAX = 8
"""Each look waits twice as long as the one before, up to 256 times the contract's spacing: an outage of minutes must
not spend the whole budget."""


class Next(msgspec.Struct, frozen=True, gc=False):
    """A step by name, and how many seconds from now it is due; empty where nothing is owed."""

    step: str = ""
    after_seconds: float = 0.0


NOTHING = Next()


def next_step(
    contract: Contract,
    attempts: tuple[Attempt, ...],
    folded: Fold,
    discrepancy: Discrepancy,
    *,
    looks: int,
    jitter: float,
) -> Next:
    """Name the next step: look while the budget lasts, replay where the contract grants it, then a person.

    Args:
        contract: what may be read and repeated.
        attempts: every attempt there was.
        folded: what follows from them.
        discrepancy: an open one is for a person at once.
        looks: reads used so far.
        jitter: a number from 0 to 1 that spreads the workers' reads.
    """
    if not folded.unresolved:
        return NOTHING
    if discrepancy is Discrepancy.OPEN:
        return Next(REVIEW)
    if any(a.finding is None for a in attempts):
        return Next(RECOVER, max(a.send_seconds for a in attempts if a.finding is None))
    budget = contract.read_budget
    if contract.reconcile == "allowed" and contract.looks and looks < budget.looks_max:
        doubled = 2 ** min(looks - 1, DOUBLINGS_MAX) if looks else 1
        wait = budget.spacing_seconds * doubled if looks else budget.first_after_seconds
        step = FOLLOW if folded.outcome is Outcome.ACCEPTED else LOOK
        return Next(step, wait * (1 + budget.jitter * jitter))
    if _replays_left(contract, attempts):
        return Next(REPLAY, wait_seconds(attempts, budget) * (1 + budget.jitter * jitter))
    return Next(REVIEW)


def follow_until(contract: Contract, attempts: tuple[Attempt, ...]) -> float:
    """Seconds since the epoch until which what was accepted is followed; after it a person is next."""
    if contract.follow_seconds == "unknown":
        return math.inf
    taken_in = (a.started_at for a in attempts if a.finding is Finding.ACCEPTED)
    return max(taken_in, default=math.inf) + contract.follow_seconds


def allowed_step(dispatch: Dispatch, outcome: Outcome, *, unused: bool, callers: bool, worked_on: bool = True) -> str:
    """Name the step that an approval leaves, where nothing is unresolved: it is in sight as long as it may be used.

    Args:
        dispatch: whether anything left.
        outcome: what came of it.
        unused: nothing was begun since the approval.
        callers: it was held, and only its caller sends it.
        worked_on: nobody gave the operation up since.
    """
    if outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED):
        return ""
    if dispatch is Dispatch.NOT_STARTED:
        return DISPATCH if unused and worked_on and not callers else CALL
    return CALL if unused else ""  # what was settled goes again only for whoever asks


def _replays_left(contract: Contract, attempts: tuple[Attempt, ...]) -> bool:
    """Whether a repeat is granted still; what has happened or was taken in is never sent again, whatever is open."""
    if fenced(attempts) or any(a.finding in (Finding.SUCCEEDED, Finding.ACCEPTED) for a in attempts):
        return False
    used = sum(a.attempt_class is AttemptClass.SAME_KEY and a.finding is not Finding.NOT_SENT for a in attempts)
    return used < contract.automatic_attempts.same_key_replay
