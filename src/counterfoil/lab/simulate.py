"""`counterfoil-lab simulate`: thousands of operations in virtual worlds, each with troubles of its own.

The real plans, executor, worker and SQLite store; the clock, the processes and the providers are the world's. The same
seed makes the same worlds, event for event.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.lab import repeating
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.repeating import command
from counterfoil.lab.shares import cores, told_by, told_by_all
from counterfoil.lab.world.score import SUMMED, law_of
from counterfoil.lab.world.situations import SITUATIONS

PER_WORLD = 60
"""Messages in one world; now and then two of them are one operation."""
SHOWN_MAX = 20
"""Broken laws told in the result; all of them are counted."""
SHRINK_SECONDS, SHRINK_SABOTAGED_SECONDS = 20.0, 5.0
"""How long a failing world is made smaller; with a rule off nothing has to be found out, only shown."""
STORY = "counterfoil.lab.world.story"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run."""

    operations: int
    seed: int
    sabotage: str | None = None

    @property
    def worlds(self) -> int:
        """How many worlds have at least so many operations."""
        return -(-self.operations // (PER_WORLD * 9 // 10))


def run(plan: Plan, keep: Path | None, step: Callable[[str], None]) -> dict[str, Any]:
    """Play every world and add up.

    Raises:
        RunFailed: a share of the worlds did not come to its end.
    """
    started, worlds = time.monotonic(), plan.worlds
    told: dict[int, dict[str, Any]] = {}
    for one in _played(plan, worlds, keep):
        told[one["world"]] = one
        step(f"world {one['world']}")
    if len(told) != worlds:
        raise RunFailed(f"{worlds - len(told)} of {worlds} worlds did not come to an end")
    rows = [told[number] for number in sorted(told)]
    summed = _summed(plan, rows, time.monotonic() - started)
    return summed | {"again": _again(plan, rows), "smallest": _smallest(plan, summed["broken"])}


def story(plan: Plan, world: int | str) -> Iterator[dict[str, Any]]:
    """One world as it happens; its last line says which laws it broke.

    Args:
        plan: whose seed it is drawn from.
        world: its number, or the options that name it.
    """
    named = ("play", world) if isinstance(world, str) else ("tell", str(plan.seed), str(world), str(PER_WORLD))
    yield from told_by(plan.sabotage, STORY, *named)


def _again(plan: Plan, rows: list[dict[str, Any]]) -> str | None:
    """The command that tells the first world in which a law was broken."""
    broken = next((row for row in rows if row["violations"]), None)
    if broken is None:
        return None
    return command("simulate", "--seed", plan.seed, "--world", broken["world"], sabotage=plan.sabotage)


def _smallest(plan: Plan, broken: list[str]) -> dict[str, Any] | None:
    """The first world that broke a law, made smaller; with the options and the command that make it again."""
    if not broken:
        return None
    seconds = SHRINK_SECONDS if plan.sabotage is None else SHRINK_SABOTAGED_SECONDS
    world, _, said = broken[0].removeprefix(f"world {plan.seed}-").partition(": ")
    arguments = (str(plan.seed), world, str(PER_WORLD), law_of(said), str(seconds))
    found = next(iter(told_by(plan.sabotage, STORY, "shrink", *arguments)), None)
    return found and found | {"again": repeating.world(found.pop("differing"), plan.sabotage)}


def _played(plan: Plan, worlds: int, keep: Path | None) -> Iterator[dict[str, Any]]:
    """Each world as it ends, from as many processes as there are cores."""
    shares = min(cores(), worlds)
    rest = (str(shares), str(worlds), str(PER_WORLD), *([] if keep is None else [str(keep)]))
    given = [(str(plan.seed), str(share), *rest) for share in range(shares)]
    yield from told_by_all(plan.sabotage, "counterfoil.lab.world.batch", given)


def _summed(plan: Plan, rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    met: Counter[str] = Counter()
    trace = hashlib.sha256()
    for row in rows:
        met.update(row.pop("situations"))
        trace.update(row["trace"].encode())
    broken = [f"world {plan.seed}-{row['world']}: {said}" for row in rows for said in row["violations"]]
    hit = [name for name in SITUATIONS if met[name]]
    return {
        "seed": plan.seed, "sabotage": plan.sabotage,
        "worlds": len(rows), "operations": sum(row["operations"] for row in rows),
        **{name: sum(row[name] for row in rows) for name in SUMMED},
        "violations": len(broken), "laws": dict(Counter(law_of(said) for row in rows for said in row["violations"])),
        "broken": broken[:SHOWN_MAX], "seconds": round(seconds, 2), "trace": trace.hexdigest(),
        "situations": {
            "hit": len(hit), "total": len(SITUATIONS), "missing": [name for name in SITUATIONS if not met[name]],
            "rarest": {name: met[name] for name in sorted(hit, key=met.__getitem__)[:10]},
        },
        "ok": not broken,
    }  # fmt: skip
