"""Mutants of looking: when "not found" counts, whose things are looked at, and how often."""

from __future__ import annotations

from typing import Any


def _absence_without(*reasons: str) -> None:
    """Judge absence without some of its conditions."""
    import msgspec

    from counterfoil.plans import reconcile

    changed: Any = reconcile
    absence = changed.absence

    def judged(**said: Any) -> Any:
        verdict = absence(**said)
        missing = tuple(reason for reason in verdict.missing if reason not in reasons)
        return msgspec.structs.replace(verdict, proven=not missing, missing=missing)

    changed.absence = judged


def not_found_is_absent() -> None:
    """Take any 404 for proof, without a known item in the same look."""
    from counterfoil.domain import absence as conditions
    from counterfoil.domain import page as pages

    _absence_without(conditions.NO_POSITIVE, conditions.NO_NEGATIVE)
    page = pages._page  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = pages
    changed._page = lambda look, answer, **given: (  # noqa: SLF001 - likewise
        pages.Page() if getattr(answer, "status", 0) == 404 else page(look, answer, **given)  # noqa: PLR2004
    )


def eventual_absence() -> None:
    """Believe an index that lags."""
    from counterfoil.domain import absence as conditions

    _absence_without(conditions.NOT_STRONG, conditions.LAG_UNKNOWN)


def absence_without_horizon() -> None:
    """Believe a look that was made before the request could arrive."""
    from counterfoil.domain import absence as conditions

    _absence_without(conditions.TOO_EARLY, conditions.NOT_ELAPSED)


def absence_by_wall_clock() -> None:
    """Count what has elapsed by a clock that steps."""
    from counterfoil.domain import absence as conditions

    _absence_without(conditions.NOT_ELAPSED)


def key_by_wall_clock() -> None:
    """Take a key for as young as a clock says that was set back."""
    from counterfoil.domain import rules

    changed: Any = rules
    changed.since_first_claim = lambda _: None


def wrong_account_absent() -> None:
    """Believe what another account's things show."""
    from counterfoil.domain import reading

    changed: Any = reading
    changed._account = lambda *_: "equal"  # noqa: SLF001 - a mutant replaces what nobody may call


def read_budget_ignored() -> None:
    """Look as often as it takes."""
    from counterfoil.domain import looking

    against = looking._against_look  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = looking
    changed._against_look = lambda *given, **named: tuple(  # noqa: SLF001 - likewise
        said for said in against(*given, **named) if "budget" not in said
    )
    from counterfoil.domain import rules, schedule

    step = schedule.next_step
    changed = rules
    changed.next_step = lambda *given, looks, jitter: step(*given, looks=min(looks, 1), jitter=jitter)
