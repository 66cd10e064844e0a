"""What time it is, between two answers of a database: its clock as it was last heard, and what has passed since."""

from __future__ import annotations

import time
from collections.abc import Callable


class Reckoning:
    """The time that one process judges by; it never goes back.

    Args:
        clock: seconds since the epoch, instead of the server's own: for tests.
    """

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self.clock = clock
        self.seen = 0.0
        """What was last judged by."""
        self._seen_at = time.monotonic()

    def saw(self, at: float) -> None:
        """Something was judged by this time."""
        self.seen, self._seen_at = at, time.monotonic()

    def reckoned(self) -> float:
        """What was last judged by, and what has passed since by this process's steady clock."""
        return self.seen + time.monotonic() - self._seen_at

    def now(self) -> float:
        """The time; a step backwards of a clock shortens no deadline and revives no approval."""
        reckoned = self.reckoned()
        if self.clock is None:
            return reckoned
        said = self.clock()
        self.saw(said if said >= self.seen else reckoned)
        return self.seen

    def judged(self, said: float, kept: float) -> float:
        """The time to judge by, from the server's clock and from what is kept in the book."""
        said = said if self.clock is None else self.now()
        # Set back: time goes on from where it was.
        return said if said >= max(self.seen, kept) else max(self.reckoned(), kept)

    def asked(self) -> tuple[float, float, float | None]:
        """The same as parameters, for a statement that judges by itself; see `statements`."""
        return self.seen, self.reckoned(), None if self.clock is None else self.now()
