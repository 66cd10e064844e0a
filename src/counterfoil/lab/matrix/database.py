"""Cells whose receipts stand in a database: the same lives, the same moments, and the same judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from counterfoil.lab.matrix.cells import Cell
from counterfoil.lab.matrix.judge import judged_in
from counterfoil.lab.matrix.life import Life
from counterfoil.lab.matrix.scene import Scene, begun
from counterfoil.lab.world import run
from counterfoil.lab.world.hands import SimStore, Struck
from counterfoil.lab.world.stage import Process
from counterfoil.ports.store import Store
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.session import translated


class SimDatabase(Struck, PostgresStore):
    """The real store of a database."""

    def __init__(self, world: Scene, url: str, process: Process) -> None:
        self._world, self._process, self._url = world, process, url
        super().__init__(url, clock=world.time.now, uptime=lambda: self._world.uptime(self._process.host))
        self._durable = self.write
        self.write = self._written

    def drop(self) -> None:
        """Hang up for good."""
        self._lines.hang_up()


class DatabaseScene(Scene):
    """One life whose receipts stand in a database.

    Args:
        life: what happens; no file system can fail in it.
        kind: of provider.
        url: of an empty book.
    """

    def __init__(self, life: Life, kind: str, url: str) -> None:
        super().__init__(life, kind, Path("receipts"), None)
        self._url = url
        self._database = psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor)

    def plain(self) -> Store:
        """The store, in nobody's hands."""
        return PostgresStore(self._url, clock=self.time.now)

    def store_of(self, process: Process) -> SimStore:
        """Open the store of a process; what a dead one held is nobody's any more."""
        return SimDatabase(self, self._url, process)  # type: ignore[return-value]

    def dropped(self, process: Process) -> None:
        """Forget what a process had in memory; the server notices that it is gone."""
        super().dropped(process)
        while self.stores:
            self.stores.pop().drop()

    def read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Read the tables as they stand, past everything that is tested."""
        return self._database.execute(translated(statement), parameters).fetchall()

    def end(self) -> None:
        """Close everything."""
        super().end()
        self._database.close()


def lives_of(cell: Cell) -> list[Life]:
    """The lives of a cell that a database can have: in the others a file system fails."""
    return [life for life in cell.lives() if not life.watched]


def played(life: Life, kind: str, url: str) -> list[str]:
    """Play one life and say what is not as it must be.

    Args:
        life: what happens.
        kind: of provider.
        url: of an empty book.
    """
    with run.virtual():
        scene = DatabaseScene(life, kind, url)
        with begun(scene):
            return judged_in(scene)
