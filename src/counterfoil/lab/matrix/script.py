"""A script in the place of chance: what strikes, whom, at which place, and what becomes of each send and look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Strike(NamedTuple):
    """One fault at one place of one process."""

    fault: str
    """As a world names it: `crash`, `stop`, `interrupt`, `store_busy`, `ack_lost`, `outage`, `slow`, `clock_step`; or
    what a file system answers: `full`, `io_error`, `read_only`, `locked`."""
    where: str
    """The place: before or after an effect, or within a send."""
    by: str = "caller"
    nth: int = 1
    """Which time that process comes by."""
    times: int = 1
    """And how many times from then on: once, or ever after up to a bound."""
    seconds: float = 0.0
    """Of a stop, an outage, a step of the clock or a fault of the file system."""


class Script:
    """Choices that are written down; whatever is not is the first of its options, where nothing goes wrong.

    Args:
        strikes: each must fire, or the life says nothing about its fault.
        fates: by `send` and `look`, what becomes of the first, the second and so on.
        said: by what is asked, how long something takes or which of several it is.
    """

    def __init__(self, strikes: Sequence[Strike], fates: Mapping[str, Sequence[str]], said: Mapping[str, Any]) -> None:
        self._strikes, self._said = tuple(strikes), said
        self._visits, self._fired = [0] * len(self._strikes), [0] * len(self._strikes)
        self._fates = {of: list(each) for of, each in fates.items()}
        self._seconds = 0.0
        self.place: Callable[[], tuple[str, str]] = lambda: ("", "")
        """Who runs now, and where it stands."""

    def strikes(self, fault: str) -> bool:
        """Say whether a fault happens here."""
        by, where = self.place()
        struck = False
        for i, one in enumerate(self._strikes):
            if (one.fault, one.where, one.by) != (fault, where, by):
                continue
            self._visits[i] += 1
            if self._visits[i] >= one.nth and self._fired[i] < one.times:
                self._fired[i] += 1
                self._seconds, struck = one.seconds, True
        return struck

    @property
    def seconds(self) -> float:
        """How long what struck last takes."""
        return self._seconds

    def fate(self, of: str, fates: Sequence[str]) -> str:
        """Say which of these happens: what is written down next, and then nothing bad."""
        written = self._fates.get(of)
        if not written:
            return fates[0]
        found = written.pop(0)
        if found not in fates:
            raise ValueError(f"no {of} has the fate {found}")
        return found

    def among(self, what: str, options: Sequence[T]) -> T:
        """Pick what is written down, or the first."""
        if what in ("stop", "step", "outage"):
            return self._seconds  # type: ignore[return-value]
        said: T = self._said.get(what, options[0])
        return said

    def between(self, what: str, least: float, most: float) -> float:
        """Take what is written down, or the least."""
        del most
        return float(self._said.get(what, least))

    def unfired(self) -> list[str]:
        """Say which faults were written down and did not strike."""
        return [f"{one.fault} {one.where} by {one.by}" for i, one in enumerate(self._strikes) if not self._fired[i]]

    def unmet(self) -> list[str]:
        """Say which fates were written down and did not come up."""
        return [f"{of}: {fate}" for of, fates in self._fates.items() for fate in fates]
