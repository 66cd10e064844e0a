"""Figures measured in turn: blocks of each subject, and the medians of their ratios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

BLOCK = 16
"""Operations of one subject, before it is another's turn."""

Block = Callable[[int], Sequence[float]]


def interleave(subjects: Mapping[str, Block], *, rounds: int, warm_up: int = 3) -> dict[str, list[float]]:
    """Run blocks of the subjects in turn, the order reversed every other round; return each round's median."""
    medians: dict[str, list[float]] = {name: [] for name in subjects}
    for turn in range(-warm_up, rounds):
        for name in sorted(subjects, reverse=bool(turn % 2)):
            durations = subjects[name](BLOCK)
            if turn >= 0:
                medians[name].append(statistics.median(durations))
    return medians


def ratio(subject: Sequence[float], floor: Sequence[float]) -> float:
    """The median over rounds of subject / floor: whatever the machine did in a round cancels."""
    return round(statistics.median(s / f for s, f in zip(subject, floor, strict=True)), 3)


def spread(one: Mapping[str, Sequence[float]], calls: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """The quartiles of every ratio to the thin floor, by the bar it is for."""
    return {
        "thin_ratio": quartiles(one["mine"], one["thin"]),
        "async_ratio": quartiles(one["async"], one["thin"]),
        "concurrent_ratio.threads": quartiles(calls["threads"], calls["raw"]),
        "concurrent_ratio.tasks": quartiles(calls["tasks"], calls["raw"]),
    }


def quartiles(subject: Sequence[float], floor: Sequence[float]) -> list[float]:
    """The quarter and three quarters of the rounds' ratios: how far a figure may be trusted on this machine."""
    ratios = [s / f for s, f in zip(subject, floor, strict=True)]
    first, _, third = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return [round(first, 3), round(third, 3)]
