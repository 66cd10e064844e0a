"""A share of a simulation's worlds, played in a process of its own: one line of JSON per world.

``python -m counterfoil.lab.world.batch SEED FIRST STEP LAST OPERATIONS [DIR]`` plays the worlds FIRST, FIRST + STEP,
... below LAST; with a folder, each leaves its truth there.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from counterfoil.lab.world import run
from counterfoil.lab.world.options import Options, drawn
from counterfoil.lab.world.play import World
from counterfoil.lab.world.score import counted


def tell(world: World, number: int, operations: int) -> dict[str, Any]:
    """What one world came to."""
    return {
        "world": number, "operations": operations, **counted(world), "trace": world.digest(),
        "situations": dict(world.situations), "violations": world.violations,
    }  # fmt: skip


def played(
    options: Options, keep: Path | None = None, tell: Callable[[float, str], None] | None = None
) -> tuple[World, int]:
    """Play one world in a file of its own; how many operations it had."""
    with run.folder() as folder:
        path = folder / "receipts.db"
        world = run.play(options, path, tell)
        if keep is not None:
            world.truth.keep(keep, options.assumed_of())
            shutil.copy(path, keep / path.name)
    return world, world.operations


def main() -> None:
    """Play a share of the worlds."""
    seed, first, step, last, operations = sys.argv[1], *map(int, sys.argv[2:6])
    top = Path(sys.argv[6]) if len(sys.argv) > 6 else None  # noqa: PLR2004 - the last argument
    with run.virtual():
        for number in range(first, last, step):
            keep = None if top is None else top / f"{number:05d}"
            world, had = played(drawn(f"{seed}-{number}", operations), keep)
            print(json.dumps(tell(world, number, had)), flush=True)


if __name__ == "__main__":
    main()
