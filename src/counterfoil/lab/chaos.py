"""Mixed trouble: real workers on one file of receipts, killed, stopped, interrupted, with wrong clocks and full disks.

Between them and the provider are two bad ways, and the provider itself fails after it has acted. In the end every fault
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

from counterfoil.lab.chaos_round import Rounds, Trouble
from counterfoil.lab.chaos_scene import ROUGH, Scene
from counterfoil.lab.disk import Full, disk
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
)  # fmt: skip
UNKNOWN_SHARE = 10
"""At least one operation that was unknown for so many kills, or the figures say nothing."""
IN_FLIGHT_SHARE = 5
"""At least one kill in so many must have fallen between claim and outcome."""


class Plan(NamedTuple):
    """What is asked of the chaos."""

    kills: int
    seed: int = 1
    mutant: str | None = None
    full: Full | None = None
    """How the disk is to be full; None: as well as this machine allows."""


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
    chance = random.Random(plan.seed)
    with disk(top, plan.full) as room, ExitStack() as house:
        scene = Scene(top, room, plan.mutant, chance, house)
        rounds = Rounds(scene, chance, plan.kills, step)
        for entry in programme(plan.kills, room.full, chance):
            rounds.play(entry)
        rounds.finish()
        scene.calm(rounds.ahead)
        step("calm")
    figures = _figures(top, rounds, lines=len(scene.orders)) | {
        "disk_full": room.full.value,
        "seconds": round(time.monotonic() - began, 1),
    }
    return figures | _measured(figures, plan)


def rounds_of(kills: int) -> int:
    """How many steps a run is told of."""
    return kills + len(Trouble) * -(-kills // TROUBLE_SHARE) + 1


def programme(kills: int, full: Full, chance: random.Random) -> list[Aim | Trouble]:
    """Every round there will be, in an order drawn by chance."""
    each = -(-kills // TROUBLE_SHARE)
    troubles = [trouble for trouble in Trouble if trouble is not Trouble.DISK or full is not Full.NONE]
    rounds: list[Aim | Trouble] = [*aims(kills, chance, looks=True, shares=SHARES), *(troubles * each)]
    chance.shuffle(rounds)
    return rounds


def _figures(top: Path, rounds: Rounds, *, lines: int) -> dict[str, Any]:
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
        "violations": violations(top / STORE, top / f"{ROUGH}.yaml"),
    }


def _measured(figures: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    must = {**dict.fromkeys(MUST_BE_NOUGHT, 0), "kills": plan.kills, "operations": figures["lines"]}
    least = {
        "unknown_seen": plan.kills / UNKNOWN_SHARE,
        Window.CLAIM_TO_OUTCOME.value: plan.kills / IN_FLIGHT_SHARE,
    }
    return measured({**figures, **figures["kills_by_window"]}, must, least)
