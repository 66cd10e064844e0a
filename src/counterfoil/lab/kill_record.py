"""The kills of one run: a line each as it happens, and how many fell into which window."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

from counterfoil.lab.journal import Journal
from counterfoil.lab.kill_aim import Aim
from counterfoil.lab.kill_window import Window, is_made, window
from counterfoil.lab.scoreboard import read_only

KILLS = "kills.jsonl"


class KillRecord:
    """What is written down of every kill, at once.

    Args:
        folder: gets the journal.
        store: the receipts file that the killed processes worked on.
    """

    def __init__(self, folder: Path, store: Path) -> None:
        self._store = store
        self._journal = Journal(folder / KILLS)
        self.windows = dict.fromkeys((w.value for w in Window), 0)
        self.aims: Counter[str] = Counter()

    @property
    def kills(self) -> int:
        """How many there were."""
        return sum(self.windows.values())

    def add(self, pid: int, aim: Aim) -> Window:
        """Record one kill, as the store shows it right after, and return the window it fell into."""
        worker, fell = window(self._store, pid)
        line = {"at": self._last(), "pid": pid, "worker": worker, "aim": aim.value, "window": fell.value}
        self._journal.append(line)
        self.windows[fell] += 1
        self.aims[aim.value] += 1
        return fell

    def close(self) -> None:
        """There are no more."""
        self._journal.close()

    def _last(self) -> float:
        """When the last event before the kill was written, by the clock of the store that is read with it."""
        if not is_made(self._store):
            return 0.0
        with closing(read_only(self._store)) as store:
            row = store.execute("SELECT max(at) FROM event").fetchone()
        return float(row[0] or 0.0)
