"""`counterfoil-lab mutants`: each safety rule turned off once, and whether what must notice it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.journal import Journal
from counterfoil.lab.mutants.catalogue import BAR, CATALOGUE, MUTANTS, WORLDS, Mutant
from counterfoil.lab.mutants.trials import Trial, controls, tried
from counterfoil.lab.shares import pool

TRIALS = "trials.jsonl"
TIERS = ("pr", "full")
WORLDS_MAX = 100
"""How many worlds a mutant is hunted through at most."""
HUNTS = {"pr": (0,), "full": (0, 1_000, 2_000)}
"""Where each hunt begins: in full a mutant must be noticed in several regions of its terrain, not in a lucky one."""
KILLED_MIN = 38
"""How many must be noticed, whatever is left for the full tier."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Which mutants to try."""

    tier: str
    slugs: tuple[str, ...] = ()
    """Only these; none: all of the tier."""

    def __post_init__(self) -> None:
        """Refuse a mutant that would not be tried.

        Raises:
            RunFailed: there is none of that name, it is pending, or another tier's.
        """
        able = {m.slug for m in self.chosen()}
        for slug in self.slugs:
            if slug not in MUTANTS:
                raise RunFailed(f"--only {slug}: there is no such mutant; there are: {', '.join(sorted(MUTANTS))}")
            if MUTANTS[slug].awaits:
                raise RunFailed(f"--only {slug}: cannot be tried yet; it awaits {MUTANTS[slug].awaits}")
            if slug not in able:
                raise RunFailed(f"--only {slug}: is not of the tier {self.tier}")

    def chosen(self) -> list[Mutant]:
        """The mutants to try, those that take longest first."""
        able = [m for m in CATALOGUE if not m.awaits and (m.tier == "pr" or self.tier == "full")]
        return sorted((m for m in able if not self.slugs or m.slug in self.slugs), key=lambda m: -m.weight)

    def left(self) -> list[str]:
        """What another tier would try; where mutants are named nothing else was meant."""
        chosen = self.chosen()
        return [] if self.slugs else [m.slug for m in CATALOGUE if m not in chosen and not m.awaits]

    def hunts(self) -> list[tuple[Mutant, int]]:
        """What is tried, and from which world on; what is not hunted in worlds is tried once."""
        return [(m, at) for m in self.chosen() for at in (HUNTS[self.tier] if m.subject == WORLDS else (0,))]


def run(plan: Plan, step: Callable[[str], None], keep: Path | None = None) -> dict[str, Any]:
    """Try each mutant and add up; then the same without any.

    Args:
        plan: which.
        step: told of each trial when it is done.
        keep: gets a line per trial, and each world in which a mutant was noticed; None: nobody counts them again.

    Raises:
        RunFailed: one of them could not be tried to its end.
    """
    started = time.monotonic()
    chosen = plan.chosen()
    trials = sorted(_tried(plan, keep, step), key=lambda trial: trial.number)
    broken = controls(trials, MUTANTS)
    survivors = sorted({trial.slug for trial in trials if not trial.law})
    killed = [m for m in chosen if m.slug not in survivors and m.number <= BAR]
    least = 0 if plan.slugs else KILLED_MIN
    return {
        "tier": plan.tier, "mutants": BAR, "killed": len(killed),
        "pending": [{"number": m.number, "slug": m.slug, "awaits": m.awaits} for m in CATALOGUE if m.awaits],
        "left": plan.left(),
        "survivors": survivors,
        "beyond": [m.slug for m in chosen if m.slug not in survivors and m.number > BAR],
        "broken_without": broken,
        "rows": [msgspec.to_builtins(trial) for trial in trials],
        "seconds": round(time.monotonic() - started, 2),
        "ok": not survivors and not broken and len(killed) >= least,
    }  # fmt: skip


def _tried(plan: Plan, keep: Path | None, step: Callable[[str], None]) -> Iterator[Trial]:
    journal = None if keep is None else Journal(keep / TRIALS)
    with pool() as threads:
        waiting = [threads.submit(tried, mutant, range(at, at + WORLDS_MAX), keep) for mutant, at in plan.hunts()]
        for done in as_completed(waiting):
            trial = done.result()
            if journal is not None:
                journal.append(msgspec.to_builtins(trial))
            step(f"{trial.slug}: {trial.law or 'survived'}")
            yield trial


def listed() -> list[dict[str, Any]]:
    """Every mutant with the rule that is off and the laws that must notice."""
    return [
        {
            "number": m.number, "slug": m.slug, "rule": m.says(), "laws": sorted(m.laws), "subject": m.subject,
            "awaits": m.awaits,
        }
        for m in CATALOGUE
    ]  # fmt: skip
