"""How long an automatic attempt waits after one that did not leave, and after how many in a row a person is asked.

Read from the recorded attempts alone: a restart, or another worker, goes on where the last one stood.
"""

from __future__ import annotations

from itertools import takewhile

from counterfoil.domain.attempt import Attempt
from counterfoil.domain.contract import ReadBudget
from counterfoil.domain.words import AttemptClass, Finding

WAIT_SECONDS_MAX = 300.0
"""Between two tries at most: a provider that is back is met within five minutes."""
IN_A_ROW_MAX = 16
"""With the longest waits about an hour: an outage that lasts longer is for people to know of."""
ATTEMPTS_MAX = 1_000
"""Of one operation without a person, callers' own included: a receipt holds 32,767 events, and its people need room."""

NOT_YET = "the last attempt did not leave, and the wait before the next is not over"
UNREACHED = f"{IN_A_ROW_MAX} repeats in a row did not leave: the provider cannot be reached from here"
PATIENCE = frozenset({(NOT_YET,), (UNREACHED,)})
TOO_MANY = f"{ATTEMPTS_MAX} attempts were made: only a person makes another"


def unsent_repeats(attempts: tuple[Attempt, ...]) -> int:
    """How many repeats with the same key, the last ones, did not leave."""
    unsent = takewhile(lambda a: a.finding is Finding.NOT_SENT, reversed(attempts))
    return sum(1 for _ in takewhile(lambda a: a.attempt_class is AttemptClass.SAME_KEY, unsent))


def wait_seconds(attempts: tuple[Attempt, ...], budget: ReadBudget) -> float:
    """Seconds to the next repeat: the contract's spacing, doubled with each that did not leave."""
    unsent = unsent_repeats(attempts)
    if not unsent:
        return 0.0
    return min(budget.spacing_seconds * 2.0 ** (min(unsent, IN_A_ROW_MAX) - 1), WAIT_SECONDS_MAX)


def against_repeat(attempts: tuple[Attempt, ...], budget: ReadBudget, now: float) -> tuple[str, ...]:
    """What keeps a worker from repeating now, as far as earlier repeats did not leave."""
    if unsent_repeats(attempts) >= IN_A_ROW_MAX:
        return (UNREACHED,)
    return (NOT_YET,) if now < attempts[-1].started_at + wait_seconds(attempts, budget) else ()


def never_reached(step: str, attempts: tuple[Attempt, ...]) -> str:
    """Why a person is next where repeats did not leave, so many times in a row; empty where that is not why."""
    return UNREACHED if step == "review" and unsent_repeats(attempts) >= IN_A_ROW_MAX else ""
