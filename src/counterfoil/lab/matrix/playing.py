"""Cells and sweeps played in a process of its own, a line of JSON each.

``python -m counterfoil.lab.matrix.playing cells DIR CELL ...`` plays those cells; DIR gets the truth of each life, and is
empty where nothing is kept. ``... sweeps SHARE OF`` plays every so-and-so-manieth sweep.
"""

from __future__ import annotations

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

SHOWN_MAX = 5


def played(cell: Cell, keep: Path | None) -> dict[str, Any]:
    """Play every life of one cell, and say what is not as it must be."""
    said: list[str] = []
    sums: Counter[str] = Counter()
    lives = cell.lives()
    for number, life in enumerate(lives):
        with run.folder() as folder:

            def ended(scene: Scene) -> None:
                scene.stands = scene.read(STANDS)
                sums.update(sends=len(scene.truth.wire), effects=len(scene.truth.effects), **counted(scene))
                if keep is not None:
                    _kept(scene, folder_of(keep, cell.name, number))  # noqa: B023 - told before the next life

            said += [f"{said} (life {number})" for said in judged(life, cell.kind, folder, ended)]
    if cell.row.real is not None:
        with run.folder() as folder:
            said += cell.row.real(cell.kind, folder)
    return {"cell": cell.name, "lives": len(lives) or 1, "said": said, "sums": dict(sums)}


def _kept(scene: Scene, folder: Path) -> None:
    scene.truth.keep(folder, assumptions="hold" if scene.options.assumptions_hold else "broken")
    shutil.copy(scene.path, folder / scene.path.name)
    for name in ("-wal",):
        log = scene.path.with_name(scene.path.name + name)
        if log.exists():
            shutil.copy(log, folder / log.name)


def _swept(share: int, of: int) -> Iterator[dict[str, Any]]:
    for number, sweep in enumerate(sweeps.all_of()):
        if number % of == share:
            yield sweeps.played(sweep)


def main() -> None:
    """Play what is asked for."""
    what, *rest = sys.argv[1:]
    with run.virtual():
        if what == "sweeps":
            told: Iterator[dict[str, Any]] = _swept(int(rest[0]), int(rest[1]))
        else:
            keep = Path(rest[0]) if rest[0] else None
            told = (played(CELLS[name], keep) for name in rest[1:])
        for line in told:
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
