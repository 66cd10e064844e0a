"""Breakers: how much may have happened and is unknown, counted under the write lock before anything new goes."""

from __future__ import annotations

from counterfoil.domain.command import Tripped
from counterfoil.domain.terms import Breaker
from counterfoil.store.rows import Runs

# A lone attempt in hand is not unknown yet; what its sender should have reported on by now is. Whatever may have left
# beside something that is known, or beside another attempt, is unknown at once: nobody waits for its answer alone.
_UNKNOWN = """SELECT coalesce(sum(value * CASE WHEN exposure > 1 THEN exposure ELSE 1 END), 0.0) FROM operation
    WHERE unresolved > 0 AND (outcome = 'unknown' OR discrepancy = 'open' OR deadline < ?
        OR exposure > CASE WHEN outcome = 'unobserved' THEN 1 ELSE 0 END)"""


def tripped(db: Runs, breaker: Breaker, now: float) -> Tripped | None:
    """Whether so much is unknown in a breaker's scope that nothing new may go; None while there is room."""
    exposure = float(db.execute(*counted(breaker, now)).fetchone()[0])
    if exposure < breaker.unknown_exposure_max:
        return None
    return Tripped(breaker=breaker.name, exposure=exposure, limit=breaker.unknown_exposure_max)


def counted(breaker: Breaker, now: float) -> tuple[str, tuple[object, ...]]:
    """The one statement that counts what is unknown in a breaker's scope, and its parameters.

    Args:
        breaker: whose scope.
        now: seconds since the epoch, by the store's clock.
    """
    scopes = (("action", breaker.actions), ("account", breaker.accounts))
    # Column names are ours; patterns are bound.
    within = " AND ".join(f"({' OR '.join(f'glob(?, {c})' for _ in patterns)})" for c, patterns in scopes)
    patterns = [pattern for _, named in scopes for pattern in named]
    return f"{_UNKNOWN} AND {within}", (now, *patterns)
