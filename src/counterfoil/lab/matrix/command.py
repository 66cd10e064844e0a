"""`counterfoil-lab matrix`: 45 fault points by six kinds of provider, and a crash at every place of every plan."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.matrix import sweeps
from counterfoil.lab.matrix.cells import CELLS, NAMES, ROWS, missing
from counterfoil.lab.matrix.trying import PLAYING, able, tried
from counterfoil.lab.shares import cores, told_by_all
from counterfoil.lab.world.score import SUMMED

SHOWN_MAX = 20


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to play."""

    cells: tuple[str, ...] = ()
    """Only these, and no sweep; none: everything."""
    mutants: bool = False
    """Each cell under its mutant too."""
    sabotage: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be played.

        Raises:
            RunFailed: a cell that there is not; none that can be played yet; one rule off for all of them, and another
                for each.
        """
        if self.mutants and self.sabotage:
            raise RunFailed("--mutants turns a rule off for each cell: with --sabotage there would be two")
        for name in self.cells:
            if name not in NAMES:
                raise RunFailed(
                    f"--cell {name}: there is no such cell; they are called 1-K to 45-B (K, N, LS, LE, 0, B)"
                )
        if not able(self.names):
            raise RunFailed(f"--cell {self.cells[0]}: cannot be played yet; it awaits {CELLS[self.cells[0]].awaits}")

    @property
    def names(self) -> tuple[str, ...]:
        """The cells to play or to list as pending."""
        return self.cells or tuple(name for name in NAMES if name in CELLS)

    @property
    def steps(self) -> int:
        """How many there are to tell of."""
        built = len(able(self.names))
        return built * (2 if self.mutants else 1) + (0 if self.cells else len(list(sweeps.all_of())))


def run(plan: Plan, keep: Path | None, step: Callable[[str], None]) -> dict[str, Any]:
    """Play the cells, then the sweeps, then each cell under its mutant.

    Raises:
        RunFailed: a share of it did not come to its end.
    """
    started = time.monotonic()
    built = able(plan.names)
    rows = list(_cells(plan, keep, step))
    places = [] if plan.cells else list(swept(plan.sabotage, step))
    noticed = sorted(tried(built, step), key=lambda each: NAMES.index(each.cell)) if plan.mutants else []
    failed = [{"cell": row["cell"], "said": row["said"]} for row in rows if row["said"]]
    broken = [row for row in places if row["said"]]
    unnoticed = [msgspec.to_builtins(each) for each in noticed if not each.said]
    sums = Counter[str](dict.fromkeys(SUMMED, 0))
    for row in rows:
        sums.update({name: row["sums"].get(name, 0) for name in SUMMED})
    return {
        "cells": len(plan.cells or NAMES), "passed": len(rows) - len(failed),
        "pending": [{"cell": n, "awaits": CELLS[n].awaits} for n in plan.names if CELLS[n].awaits],
        "missing": [] if plan.cells else missing(), "failed": failed, "lives": sum(row["lives"] for row in rows),
        "sweeps": _counted(places), "sweeps_broken": [_shown(row) for row in broken[:SHOWN_MAX]], **sums,
        "mutants_checked": len(noticed), "unnoticed": unnoticed,
        "seconds": round(time.monotonic() - started, 2),
        "ok": not (failed or broken or unnoticed or (missing() and not plan.cells)),
    }  # fmt: skip


def _cells(plan: Plan, keep: Path | None, step: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Each cell as it ends, in the order of the table."""
    names = [cell.name for cell in able(plan.names)]
    shares = [each for at in range(cores()) if (each := names[at :: cores()])]
    where = "" if keep is None else str(keep)
    rows = {}
    for row in told_by_all(plan.sabotage, PLAYING, [("cells", where, *share) for share in shares]):
        rows[row["cell"]] = row
        step(row["cell"])
    if len(rows) != len(names):
        raise RunFailed(f"{len(names) - len(rows)} of {len(names)} cells did not come to an end")
    yield from (rows[name] for name in names)


def swept(sabotage: str | None, step: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Each sweep as it ends: one plan under one kind, with a crash at each place of it.

    Raises:
        RunFailed: a share of them did not come to its end.
    """
    count, shares = 0, [("sweeps", str(share), str(cores())) for share in range(cores())]
    for row in told_by_all(sabotage, PLAYING, shares):
        count += 1
        step(f"{row['sweep']}, {row['code']}, {row['times']}")
        yield row
    if count != len(list(sweeps.all_of())):
        raise RunFailed("a share of the sweeps did not come to an end")


def _counted(places: list[dict[str, Any]]) -> dict[str, int]:
    """By plan, at how many places somebody died."""
    counts: Counter[str] = Counter()
    for row in places:
        counts[row["sweep"]] += row["places"]
    return dict(sorted(counts.items()))


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "said": row["said"][:SHOWN_MAX]}


def listed() -> list[dict[str, Any]]:
    """Every row in words, with its mutants."""
    return [
        {
            "row": row.number, "point": row.point, "requires": row.requires, "never": row.never, "awaits": row.awaits,
            "mutants": sorted({row.mutant(cell.code) for cell in CELLS.values() if cell.row is row} - {""}),
        }
        for row in ROWS.values()
    ]  # fmt: skip
