"""What a search leaves for whoever counts it again: a line per schedule, and some worlds as they were."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from counterfoil.lab.run_folder import STORE
from counterfoil.lab.world.chance import Search
from counterfoil.lab.world.play import World

SCHEDULES = "schedules"
EVERY, SAMPLES = 400, 8
"""One world of so many is kept, up to so many of one kind and first send."""


class Searched:
    """Collects the schedules of one kind from one first send.

    Args:
        top: of the run.
        name: of this search.
        search: stands on each world's path while it is told of.
    """

    def __init__(self, top: Path, name: str, search: Search) -> None:
        self._top, self._name, self._search = top, name, search
        (top / SCHEDULES).mkdir(exist_ok=True)
        self._lines = (top / SCHEDULES / f"{name}.jsonl").open("w", encoding="utf-8")
        self._count = 0

    def add(self, world: World) -> None:
        """Write one schedule down, and keep its world when it is its turn."""
        line = {"path": self._search.choices(), "violations": len(world.violations)}
        if self._count % EVERY == 0 and self._count < EVERY * SAMPLES:
            keep = self._top / f"{self._name}-{self._count:05d}"
            world.truth.keep(keep, world.options.assumed_of())
            with closing(sqlite3.connect(world.path)) as stands, closing(sqlite3.connect(keep / STORE)) as copy:
                stands.backup(copy)
        self._lines.write(json.dumps(line) + "\n")
        self._count += 1

    def close(self) -> None:
        """There are no more."""
        self._lines.close()
