"""The kills of one run: a line each as it happens, and how many fell into which window."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from counterfoil.lab.journal import Journal
from counterfoil.lab.kill_aim import Aim
from counterfoil.lab.kill_window import Window, fallen

KILLS = "kills.jsonl"


class KillRecord:
    """What is written down of every kill, at once.

    Args:
        folder: gets the journal.
        store: the receipts that the killed processes worked on: a file, or a database's URL.
    """

    def __init__(self, folder: Path, store: Path | str) -> None:
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
        fall = fallen(self._store, pid)
        line = {"at": fall.at, "pid": pid, "worker": fall.worker, "aim": aim.value, "window": fall.window.value}
        self._journal.append(line)
        self.windows[fall.window] += 1
        self.aims[aim.value] += 1
        return fall.window

    def close(self) -> None:
        """There are no more."""
        self._journal.close()
