"""Mixed trouble: real workers on one book of receipts, killed, stopped, interrupted, with wrong clocks and full disks.

Between them and the provider are two bad ways, and the provider itself fails after it has acted. Where the book stands
in a database, that is stopped at once in the middle of it all, and commits lose their answers. In the end every fault
is turned off, a run of everything goes on until nothing is left to do, and what happened is counted outside.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from counterfoil.lab.chaos_database import Database, database
from counterfoil.lab.chaos_round import Outage, Round, Rounds, Trouble
from counterfoil.lab.chaos_scene import ROUGH, Scene
from counterfoil.lab.disk import Disk, Full, disk
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.kill_aim import Aim, aims
from counterfoil.lab.kill_window import Window
from counterfoil.lab.run_folder import STORE
from counterfoil.lab.scoreboard import score, unowned
from counterfoil.lab.verification import violations
from counterfoil.lab.yardstick import measured

SHARES = (
    (Aim.SEND, 0.3), (Aim.START, 0.15), (Aim.SOCKET, 0.15), (Aim.EFFECT, 0.15), (Aim.RANDOM, 0.15), (Aim.LOOK, 0.1),
)  # fmt: skip
"""Where the kills are aimed."""
TROUBLE_SHARE = 20
"""One trouble of each other kind for so many kills."""

MUST_BE_NOUGHT = (
    "duplicates", "false_outcomes", "unrecorded", "excess_sends", "unsettled", "unowned_unknowns", "violations",
    "acknowledged_lost",
)  # fmt: skip
"""What of it a run counts: only a database acknowledges to a wire."""
UNKNOWN_SHARE = 10
"""At least one operation that was unknown for so many kills, or the figures say nothing."""
AMBIGUOUS_SHARE = 20
"""Of commits that nobody answered for, one in so many at least must stand, and one not."""
IN_FLIGHT_SHARE = 5
"""At least one kill in so many must have fallen between claim and outcome."""


class Plan(NamedTuple):
    """What is asked of the chaos."""

    kills: int
    seed: int = 1
    mutant: str | None = None
    full: Full | None = None
    """How the disk is to be full; None: as well as this machine allows."""
    postgresql: bool = False
    """Whether the receipts stand in a database, which has no disk that could be full."""
    restarts: int = 0
    commit_cuts: int = 0
    pooler: bool = False
    """Whether its workers reach that database through a pooler."""

    @property
    def steps(self) -> int:
        """How many a run is told of."""
        return self.kills + len(Trouble) * -(-self.kills // TROUBLE_SHARE) + self.restarts + 1


def run(top: Path, plan: Plan, step: Callable[[str], None]) -> dict[str, Any]:
    """Run the chaos and return its figures.

    Args:
        top: gets the raw truth.
        plan: how much of it, and by which seed.
        step: told of every round, and of the calm after them.

    Raises:
        RunFailed: it could not be made, or a worker ended in a way that no trouble explains.
    """
    began = time.monotonic()
    actions, stored = top / f"{ROUGH}.yaml", {}
    with database(top, plan.seed, pooled=plan.pooler) if plan.postgresql else disk(top, plan.full) as where:
        rounds, lines = _play(top, plan, where, step)
        if isinstance(where, Database):
            stored = where.concluded(actions)
    figures = _figures(top, rounds, lines) | {"store": "postgresql" if plan.postgresql else "sqlite"}
    figures |= stored or {"violations": violations(top / STORE, actions)}
    figures |= {"disk_full": where.full.value, "seconds": round(time.monotonic() - began, 1)}
    return figures | _measured(figures, plan)


def _play(top: Path, plan: Plan, where: Disk | Database, step: Callable[[str], None]) -> tuple[Rounds, int]:
    """Play every round and the calm after them; the rounds, and how many lines there were."""
    chance = random.Random(plan.seed)
    with ExitStack() as house:
        scene = Scene(top, where, plan.mutant, chance, house)
        rounds = Rounds(scene, chance, plan.kills, step)
        entries = programme(plan.kills, where.full, chance, plan.restarts)
        for number, entry in enumerate(entries, start=1):
            if isinstance(where, Database):
                where.cuts.allow(plan.commit_cuts * number // len(entries))
            rounds.play(entry)
        if isinstance(where, Database):
            _cut_the_rest(where, rounds, plan.commit_cuts)
        rounds.finish()
        scene.calm(rounds.ahead)
        step("calm")
    return rounds, len(scene.orders)


def _cut_the_rest(where: Database, rounds: Rounds, cuts: int) -> None:
    """Let runs write, each commit of one in some being cut, until all cuts are made."""
    for _ in range(cuts):
        where.cuts.allow(cuts)
        if where.cuts.made < cuts:
            rounds.unhurt()
    if where.cuts.made < cuts:
        raise RunFailed(f"{where.cuts.made} of {cuts} commits could be cut: too little was written")


def programme(kills: int, full: Full, chance: random.Random, restarts: int = 0) -> list[Round]:
    """Every round there will be, in an order drawn by chance."""
    each = -(-kills // TROUBLE_SHARE)
    troubles = [trouble for trouble in Trouble if trouble is not Trouble.DISK or full is not Full.NONE]
    rounds: list[Round] = [*aims(kills, chance, looks=True, shares=SHARES), *(troubles * each)]
    rounds += [Outage.RESTARTED] * restarts
    chance.shuffle(rounds)
    return rounds


def _figures(top: Path, rounds: Rounds, lines: int) -> dict[str, Any]:
    found, record = score(top), rounds.record
    return {
        "kills": record.kills,
        "kills_by_window": dict(record.windows),
        "kills_by_aim": dict(sorted(record.aims.items())),
        "troubles": dict(sorted(rounds.troubles.items())),
        "ends": dict(sorted(rounds.ends.items())),
        "lines": lines,
        **msgspec.structs.asdict(found),
        "unowned_unknowns": unowned(top),
    }


def _measured(figures: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Hold the figures against what they must be; what another store does not have is not asked for."""
    must = {
        **dict.fromkeys(MUST_BE_NOUGHT, 0), "kills": plan.kills, "operations": figures["lines"],
        "restarts": plan.restarts, "commit_cuts": plan.commit_cuts,
    }  # fmt: skip
    least = {
        "unknown_seen": plan.kills / UNKNOWN_SHARE,
        Window.CLAIM_TO_OUTCOME.value: plan.kills / IN_FLIGHT_SHARE,
        **dict.fromkeys(figures.get("ambiguous", {}), plan.commit_cuts / AMBIGUOUS_SHARE),
    }
    if plan.postgresql:
        least["acknowledged"] = figures["operations"]
    figures = {**figures, **figures["kills_by_window"], **figures.get("ambiguous", {})}
    return measured(figures, {name: wanted for name, wanted in must.items() if name in figures}, least)
