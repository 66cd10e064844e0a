"""`counterfoil-lab exhaust`: one operation, two callers and a worker, and everything that can go wrong at any place.

The same plans, executor and store as ever, under a scheduler that tries every placement of so many faults, and every
order in which processes can go on with so many switches. Nothing is drawn: a run is complete or says that it is not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.repeating import command
from counterfoil.lab.shares import cores, told_by, told_by_all
from counterfoil.lab.world.options import BASES
from counterfoil.lab.world.provider import KINDS

SWITCHES = 1
STORY = "counterfoil.lab.world.story"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to explore."""

    faults: int
    kinds: tuple[str, ...] = KINDS
    switches: int = SWITCHES
    most: int | None = None
    """Schedules of one kind and base at most; None: all there are."""
    sabotage: str | None = None

    @property
    def tasks(self) -> list[tuple[str, str]]:
        """Each kind, from each thing that can become of the first send."""
        return [(kind, base) for kind in self.kinds for base in BASES]


def run(plan: Plan, step: Callable[[str], None], keep: Path | None = None) -> dict[str, Any]:
    """Explore each kind from each base and add up.

    Args:
        plan: what to explore.
        step: told of each search when it is done.
        keep: gets every schedule; None: nobody counts them again.

    Raises:
        RunFailed: a share of the search did not come to its end.
    """
    started = time.monotonic()
    tasks = plan.tasks
    rows = []
    for row in _explored(plan, keep):
        rows.append(row)
        step(f"{row['kind']}, {row['base']}")
    if len(rows) != len(tasks):
        raise RunFailed(f"{len(tasks) - len(rows)} of {len(tasks)} searches did not come to an end")
    rows.sort(key=lambda row: tasks.index((row["kind"], row["base"])))
    schedules: dict[str, int] = {}
    for row in rows:
        schedules[row["kind"]] = schedules.get(row["kind"], 0) + row["schedules"]
    violations = sum(row["violations"] for row in rows)
    complete = all(row["complete"] for row in rows)
    return {
        "schedules": schedules,
        "scope": {
            "operations": 1, "callers": 2, "workers": 1, "faults": plan.faults, "switches": plan.switches,
            "first_send": list(BASES),
        },
        "sabotage": plan.sabotage,
        "rows": rows, "violations": violations, "complete": complete, "seconds": round(time.monotonic() - started, 2),
        "ok": not violations and (complete or plan.most is not None),
    }  # fmt: skip


def story(plan: Plan, base: str, path: str) -> Iterator[dict[str, Any]]:
    """One schedule as it happens; its last line says which laws it broke.

    Args:
        plan: of one kind.
        base: what becomes of the first send.
        path: as the search named it.

    Raises:
        RunFailed: that search has no such path.
    """
    (kind,) = plan.kinds
    given = ("follow", kind, base, str(plan.faults), str(plan.switches), path)
    for line in told_by(plan.sabotage, STORY, *given):
        if line.get("strayed"):
            raise RunFailed(f"--path {path}: no schedule of {kind} from {base} with {plan.faults} faults goes there")
        yield line


def _explored(plan: Plan, keep: Path | None) -> Iterator[dict[str, Any]]:
    """Each search as it ends, with the command that tells each schedule that broke a law."""
    bounds = (str(plan.faults), str(plan.switches), str(plan.most or sys.maxsize))
    left = () if keep is None else (str(keep),)
    shares = [(*task, *bounds, *left) for task in plan.tasks]
    for row in told_by_all(plan.sabotage, "counterfoil.lab.world.searching", shares, most=cores()):
        named = ("--kind", row["kind"], "--faults", plan.faults, "--first-send", row["base"], "--path")
        again = [command("exhaust", *named, each["path"], sabotage=plan.sabotage) for each in row["broken"]]
        yield row | {"broken": [each | {"again": said} for each, said in zip(row["broken"], again, strict=True)]}
