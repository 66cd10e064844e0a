"""Searches and hunts: every schedule that was tried, and every world in which a mutant was noticed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from recounting.ground import Counts, lines
from recounting.worlds import kept

SCHEDULES, TRIALS = "schedules", "trials.jsonl"
BAR = 48
"""The list of mutants that is counted; what is numbered beyond it was added later."""
TRIAL = ("number", "slug", "subject", "law", "said", "where", "operations", "figures", "seconds")
"""What the line of a trial says, and its row as well."""
FALSE = ("second_effects", "false_outcomes", "unrecorded")
"""What no kept world of a search may show."""

Choice: TypeAlias = tuple[int, int]
"""What was taken, and of how many."""


def searched(top: Path) -> Counts:
    """Count schedules, see whether any was left out, and count the worlds that were kept."""
    found = [search(path) for path in sorted((top / SCHEDULES).glob("*.jsonl"))]
    kinds: dict[str, int] = {}
    for row in found:
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + row["schedules"]
    runs = kept(top)
    return {
        "schedules": kinds,
        "violations": sum(row["violations"] for row in found),
        "complete": bool(found) and all(row["complete"] for row in found),
        "searches": found,
        "false_in_samples": sum(run[name] for run in runs.values() for name in FALSE),
        "runs": runs,
    }


def search(path: Path) -> Counts:
    """Count the schedules of one kind from one first send, and follow them in the order they were tried."""
    kind, _, base = path.stem.partition("-")
    count = violations = 0
    whole = True
    expected: list[Choice] | None = []
    for entry in lines(path) or []:
        taken = [choice(word) for word in entry["path"].split()]
        follows = expected is not None and taken[: len(expected)] == expected
        whole = whole and follows and not any(which for which, _ in taken[len(expected or ()) :])
        expected = following(taken)
        count, violations = count + 1, violations + entry["violations"]
    complete = bool(count) and whole and expected is None
    return {"kind": kind, "base": base, "schedules": count, "violations": violations, "complete": complete}


def choice(word: str) -> Choice:
    """Read one choice."""
    taken, _, of = word.partition("/")
    return int(taken), int(of)


def following(path: Sequence[Choice]) -> list[Choice] | None:
    """How the schedule after this one must begin: the last choice that has something left takes the next."""
    left = list(path)
    while left:
        taken, of = left.pop()
        if taken + 1 < of:
            return [*left, (taken + 1, of)]
    return None


def hunted(top: Path) -> Counts:
    """Count the mutants that were noticed, and each world that was left of it."""
    trials = lines(top / TRIALS) or []
    survivors = {trial["slug"] for trial in trials if not trial["law"]}
    noticed = {trial["slug"]: trial["number"] for trial in trials if trial["slug"] not in survivors}
    return {
        "mutants": BAR,
        "killed": sum(number <= BAR for number in noticed.values()),
        "survivors": sorted(survivors),
        "beyond": sorted(slug for slug, number in noticed.items() if number > BAR),
        "trials": trials,
        "runs": kept(top),
    }
