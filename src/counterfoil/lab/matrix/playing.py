"""Cells and sweeps played in a process of its own, a line of JSON each.

``python -m counterfoil.lab.matrix.playing cells DIR CELL ...`` plays those cells; DIR gets the truth of each life, and
is empty where nothing is kept. ``... sweeps SHARE OF`` plays every so-and-so-manieth sweep.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterfoil.lab.matrix import sweeps
from counterfoil.lab.matrix.cells import CELLS, Cell, folder_of
from counterfoil.lab.matrix.judge import judged
from counterfoil.lab.matrix.scene import Scene
from counterfoil.lab.world import run
from counterfoil.lab.world.score import STANDS, counted


def played(cell: Cell, keep: Path | None) -> dict[str, Any]:
    """Play every life of one cell, and what cannot be played in a virtual world; say what is not as it must be.

    Args:
        cell: not pending.
        keep: gets a folder for each life, with its truth and its receipts; None: nothing is kept.
    """
    said: list[str] = []
    sums: Counter[str] = Counter()
    lives = cell.lives()
    with run.virtual():
        for number, life in enumerate(lives):
            where = None if keep is None else folder_of(keep, cell.name, number)
            with run.folder() as folder:
                found = judged(life, cell.kind, folder, functools.partial(_ended, sums=sums, where=where))
            said += [f"{each} (life {number})" for each in found]
    if cell.row.real is not None:
        with run.folder() as folder:
            said += cell.row.real(cell.kind, folder)
    return {"cell": cell.name, "lives": len(lives) + (cell.row.real is not None), "said": said, "sums": dict(sums)}


def _ended(scene: Scene, sums: Counter[str], where: Path | None) -> None:
    """Count what happened, and keep it where it is to be kept."""
    scene.stands = scene.read(STANDS)
    sums.update(counted(scene))
    if where is not None:
        _kept(scene, where)


def _kept(scene: Scene, folder: Path) -> None:
    scene.truth.keep(folder, scene.options.assumed_of())
    shutil.copy(scene.path, folder / scene.path.name)
    log = scene.path.with_name(f"{scene.path.name}-wal")
    if log.exists():  # its processes are not closed yet
        shutil.copy(log, folder / log.name)


def _swept(share: int, of: int) -> Iterator[dict[str, Any]]:
    with run.virtual():
        for number, sweep in enumerate(sweeps.all_of()):
            if number % of == share:
                yield sweeps.played(sweep)


def main() -> None:
    """Play what is asked for."""
    what, first, *rest = sys.argv[1:]
    if what == "sweeps":
        told = _swept(int(first), int(rest[0]))
    else:
        keep = Path(first) if first else None
        told = (played(CELLS[name], keep) for name in rest)
    for line in told:
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
