"""Each cell under the mutant that must make it fail, a process for each mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from typing import Any

import msgspec

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.matrix.cells import CELLS, Cell
from counterfoil.lab.matrix.judge import NO_KILL
from counterfoil.lab.shares import pool, told_by
from counterfoil.lab.world.score import law_of

PLAYING = "counterfoil.lab.matrix.playing"


class Noticed(msgspec.Struct, frozen=True, kw_only=True):
    """What one cell said of its mutant."""

    cell: str
    mutant: str
    said: str
    """The first thing that broke; empty: nothing did, or it only crashed."""


def first_broken(said: Iterable[str]) -> str:
    """The first thing that is not as it must be: neither a crash, nor a fault that did not come up."""
    return next((each for each in said if law_of(each) not in NO_KILL), "")


def tried(cells: Iterable[Cell], step: Callable[[str], None]) -> Iterator[Noticed]:
    """Play cells, each with its rule off.

    Args:
        cells: none of them pending.
        step: told of each mutant.
    """
    by_mutant: dict[str, list[str]] = {}
    for cell in cells:
        by_mutant.setdefault(cell.mutant, []).append(cell.name)
    with pool() as threads:
        most_first = sorted(by_mutant.items(), key=lambda each: -len(each[1]))
        waiting = {threads.submit(_played, mutant, names): mutant for mutant, names in most_first}
        for done in as_completed(waiting):
            mutant = waiting[done]
            for line in done.result():
                yield Noticed(cell=line["cell"], mutant=mutant, said=first_broken(line["said"]))
                step(f"{line['cell']} without {mutant}")


def _played(mutant: str, names: list[str]) -> list[dict[str, Any]]:
    lines = list(told_by(mutant, PLAYING, "cells", "", *names))
    if len(lines) != len(names):
        raise RunFailed(f"the cells of {mutant} did not come to an end")
    return lines


def able(names: Iterable[str]) -> list[Cell]:
    """The cells among these that are built."""
    return [CELLS[name] for name in names if not CELLS[name].awaits]
