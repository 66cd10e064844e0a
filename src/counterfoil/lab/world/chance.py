"""Who decides what goes wrong: chance by a seed, or a search that tries everything in turn."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chance(Protocol):
    """Every choice of a world, so that the same choices make the same world."""

    def strikes(self, fault: str) -> bool:
        """Say whether a fault happens here."""
        ...

    def fate(self, of: str, fates: Sequence[str]) -> str:
        """Say which of these happens; the first is the one where nothing goes wrong."""
        ...

    def among(self, what: str, options: Sequence[T]) -> T:
        """Pick one of several that are all right: who goes first, how long something takes."""
        ...

    def between(self, what: str, least: float, most: float) -> float:
        """Pick a number of seconds."""
        ...


class Dice:
    """Chance by a seed: each world draws which faults are on, and how often they strike (swarm testing).

    Args:
        seed: the same seed makes the same world.
        rates: how often each fault strikes; one that is not named never does.
        fates: per kind of fate, how likely each is.
    """

    def __init__(self, seed: str, rates: Mapping[str, float], fates: Mapping[str, Mapping[str, float]]) -> None:
        self._random = random.Random(seed)
        self._rates = rates
        self._fates = {of: (tuple(weights), tuple(weights.values())) for of, weights in fates.items()}
        self.calm = False
        """Nothing goes wrong any more: what is owed must come to an end."""

    def strikes(self, fault: str) -> bool:
        """Say whether a fault happens here."""
        rate = self._rates.get(fault, 0.0)
        return not self.calm and rate > 0.0 and self._random.random() < rate

    def fate(self, of: str, fates: Sequence[str]) -> str:
        """Say which of these happens; the first is the one where nothing goes wrong."""
        if self.calm:
            return fates[0]
        names, weights = self._fates[of]
        found = self._random.choices(names, weights)[0]
        return found if found in fates else fates[0]

    def among(self, what: str, options: Sequence[T]) -> T:
        """Pick one of several that are all right."""
        del what
        return options[0] if len(options) == 1 else options[int(self._random.random() * len(options))]

    def between(self, what: str, least: float, most: float) -> float:
        """Pick a number of seconds."""
        del what
        return least + (most - least) * self._random.random()


DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""What was taken at one choice of a path: no choice has more than these."""


class Search:
    """Depth first through everything that can go wrong: each run follows a path, and the next one is known after it.

    Args:
        faults_max: how many faults may strike in one run.
        switches_max: how often in one run somebody else may go on where whoever went last could have (the bound of
            Musuvathi and Qadeer, PLDI 2007: few such switches find most of what interleaving can break).
    """

    def __init__(self, faults_max: int, switches_max: int) -> None:
        self._faults_max, self._switches_max = faults_max, switches_max
        self.strayed = False
        """The path takes what there was not: it is another search's."""
        self._path: list[tuple[int, int]] = []
        """Per choice of this run, what was taken and how many there were."""
        self._at = self._struck = self._switched = 0
        self.done = False
        self.calm = False

    def begin(self) -> None:
        """Start the next run at its first choice."""
        self._at = self._struck = self._switched = 0
        self.calm = False

    def end(self) -> None:
        """Turn to the next path: the last choice that has something left."""
        del self._path[self._at :]
        while self._path:
            taken, of = self._path.pop()
            if taken + 1 < of:
                self._path.append((taken + 1, of))
                return
        self.done = True

    def path(self) -> str:
        """What was taken in this run, to name it and to run it again: a digit each, up to the last that is not 0."""
        return "".join(DIGITS[taken] for taken, _ in self._path[: self._at]).rstrip(DIGITS[0])

    @classmethod
    def along(cls, path: str, faults_max: int, switches_max: int) -> Search:
        """A search that stands on a path which another has named; what it does not name is the first of each.

        Raises:
            ValueError: it is no path.
        """
        search = cls(faults_max, switches_max)
        if not set(path) <= set(DIGITS):
            raise ValueError(path)
        search._path = [(int(taken, len(DIGITS)), 0) for taken in path]
        return search

    def choices(self) -> str:
        """The same with how many there were each time, so that anybody can see whether anything was left out."""
        return " ".join(f"{taken}/{of}" for taken, of in self._path[: self._at])

    def _take(self, of: int) -> int:
        if self._at == len(self._path):
            self._path.append((0, of))
        taken = self._path[self._at][0]
        self.strayed = self.strayed or taken >= of
        self._at += 1
        return min(taken, of - 1)

    def _spent(self) -> bool:
        return self.calm or self._struck >= self._faults_max

    def strikes(self, fault: str) -> bool:
        """Say whether a fault happens here; only so many do in one run."""
        if fault not in SEARCHED or self._spent():
            return False
        struck = self._take(2) == 1
        self._struck += struck
        return struck

    def fate(self, of: str, fates: Sequence[str]) -> str:
        """Say which of these happens; every one but the first is a fault."""
        del of
        if self._spent():
            return fates[0]
        taken = self._take(len(fates))
        self._struck += taken > 0
        return fates[taken]

    def among(self, what: str, options: Sequence[T]) -> T:
        """Try each in turn; who goes first only while switches are left."""
        if len(options) == 1:
            return options[0]
        if what == "who goes":
            if self.calm or self._switched >= self._switches_max:
                return options[0]
            taken = self._take(len(options))
            self._switched += taken > 0
            return options[taken]
        return options[self._take(len(options))]

    def between(self, what: str, least: float, most: float) -> float:
        """Take the least: how long something takes changes only who goes first, and that is tried by itself."""
        del most
        return 0.0 if what == "work" else least


SEARCHED = frozenset({"crash", "interrupt", "stop", "store_busy", "ack_lost"})
"""Faults that a search tries at every place; the clock and redelivery are part of its scenario."""
