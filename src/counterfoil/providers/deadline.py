"""A deadline that nobody can set and that no suspended machine outlives."""

from __future__ import annotations

import time


class Deadline:
    """One absolute point in time, on a clock that nobody sets and that goes on while the machine is suspended."""

    def __init__(self, seconds: float) -> None:
        self._at = _now() + seconds

    def left(self) -> float:
        """Seconds that remain; negative once it has passed."""
        return self._at - _now()

    def sooner(self, seconds: float | None) -> Deadline:
        """The same deadline, or the one in `seconds` if that is earlier."""
        return self if seconds is None or seconds >= self.left() else Deadline(seconds)


def _now() -> float:
    # Linux stops its monotonic clock during suspend, which would let a deadline outlive the night.
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
