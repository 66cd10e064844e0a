"""Virtual time for one operation at a time: nothing happens but what is queued, and what the product does."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from counterfoil.domain.steady import Steady
from counterfoil.lab.world.stage import EPOCH


class Clock:
    """What stands in the place of a world's stage: the product sleeps, and what is on its way arrives meanwhile."""

    def __init__(self) -> None:
        self.now = EPOCH
        self.process = None
        """Nobody's clock is stepped here."""
        self.stage = self
        self.skew: dict[str, float] = {}
        self.slept = 0.0
        """Nobody's host sleeps."""
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def uptime(self) -> Steady:
        """Read the clock that nobody can set."""
        return Steady("lab", self.now - EPOCH)

    def at(self, when: float, happens: Callable[[], None]) -> None:
        """Have something happen at a time."""
        heapq.heappush(self._due, (when, next(self._order), happens))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and everything happen that is due meanwhile."""
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            when, _, happens = heapq.heappop(self._due)
            self.now = max(self.now, when)
            happens()
        self.now = max(self.now, until)

    def drain(self) -> None:
        """Let whatever is still on its way arrive."""
        while self._due:
            self.pass_time(max(0.0, self._due[0][0] - self.now))
