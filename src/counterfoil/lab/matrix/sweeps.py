"""Crash before and after every effect of every plan, once and ever after; and then inside what recovers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from counterfoil.domain.words import Basis
from counterfoil.lab.matrix.acts import answered_late, attempt, call, decide, find, looked_at, ordinary, sweeping
from counterfoil.lab.matrix.expected import BLIND, CODES, LOOKED
from counterfoil.lab.matrix.judge import judged
from counterfoil.lab.matrix.life import AGAIN, END, Act, Life, Moment
from counterfoil.lab.matrix.scene import Scene
from counterfoil.lab.matrix.scene import played as scene_of
from counterfoil.lab.matrix.script import Strike
from counterfoil.lab.world import run
from counterfoil.lab.world.stage import EPOCH

RECOVER = "recover"
"""What is swept after another crash, and not after an ordinary call."""
ONCE, EVER = 1, 4
"""How often a process dies at its place: ever after means more often than it is started again in time."""


class Plan(NamedTuple):
    """One plan, with a life that carries it out."""

    life: Callable[[str], Life]
    by: str
    """The process that carries it."""
    codes: tuple[str, ...] = tuple(CODES)


def _lost(code: str, *acts: Act, begins: float = 11.0) -> Life:
    """A call of which nobody knows what came, and looks that say nothing."""
    return Life(
        acts=ordinary(*acts, begins=begins), sends=("reply_lost",), looks=BLIND if code in LOOKED else (), moments=()
    )  # fmt: skip


def _asked(*acts: Act, asks: int = 1) -> Life:
    return Life(
        acts=(Act(0.0, "caller", call()), *acts, *sweeping(begins=2.0), Act(AGAIN, "caller", call())), asks=asks,
        moments=(),
    )  # fmt: skip


_APPROVE = Act(0.5, "desk", decide("approve"))
_LATER = 40.0
"""When the worker begins, so that somebody else does it first."""
PLANS: Mapping[str, Plan] = {
    "dispatch": Plan(lambda _: Life(acts=ordinary(), moments=()), "caller"),
    "propose": Plan(lambda _: _asked(_APPROVE), "caller"),
    "dispatch approved": Plan(lambda _: _asked(_APPROVE), "worker"),
    "look and replay": Plan(_lost, "worker", LOOKED),
    "reconcile": Plan(
        lambda code: _lost(code, Act(12.0, "desk", looked_at), begins=_LATER), "desk", LOOKED
    ),
    "find": Plan(lambda code: _lost(code, Act(20.0, "desk", find("succeeded")), begins=_LATER), "desk"),
    "decide": Plan(
        lambda _: _asked(_APPROVE, Act(0.8, "desk", decide("revoke"))), "desk"
    ),
    "override": Plan(
        lambda code: _lost(
            code, Act(500.0, "desk", decide("override")), Act(501.0, "desk", attempt(Basis.OPERATOR_OVERRIDE))
        ),
        "desk", ("K", "N", "LS", "LE", "0"),
    ),
    "abandon": Plan(lambda code: _lost(code, Act(500.0, "desk", decide("abandon"))), "desk"),
    "late": Plan(lambda code: _lost(code, Act(20.0, "hearer", answered_late), begins=_LATER), "hearer"),
}  # fmt: skip
"""Every plan, by name."""
_TAKEN_UP = (Strike("crash", "before Send"), Strike("crash", "mid_answer"))
"""What recovery finds, before the bytes left and after: inside it the worker dies in turn."""


class Sweep(NamedTuple):
    """One plan under one kind, with a crash at each place of it."""

    plan: str
    code: str
    times: int
    inside: int = -1
    """Which of the first crashes it recovers from; -1: it is the first."""


def all_of() -> Iterator[Sweep]:
    """Every sweep there is."""
    for name, plan in PLANS.items():
        for code in plan.codes:
            for times in (ONCE, EVER):
                yield Sweep(name, code, times)
    for code in CODES:
        for inside in range(len(_TAKEN_UP)):
            for times in (ONCE, EVER):
                yield Sweep(RECOVER, code, times, inside)


def _carried(sweep: Sweep) -> tuple[Life, str]:
    if sweep.inside < 0:
        plan = PLANS[sweep.plan]
        return plan.life(sweep.code), plan.by
    return Life(acts=ordinary(begins=2.5), strikes=(_TAKEN_UP[sweep.inside],), moments=()), "worker"


def played(sweep: Sweep) -> dict[str, Any]:
    """Crash at each place of one plan in turn, and say which law was broken where."""
    life, by = _carried(sweep)
    kind = CODES[sweep.code]
    said, places = [], _places(life, kind, by)
    for where, nth in places:
        strike = Strike("crash", where, by, nth, sweep.times)
        crashed = msgspec.structs.replace(
            life, strikes=(*life.strikes, strike), moments=(Moment(END, {}),), fates_fire=False
        )
        with run.folder() as folder:
            said += [f"{where} ({nth}): {each}" for each in judged(crashed, kind, folder)]
    return {
        "sweep": sweep.plan, "code": sweep.code, "times": "once" if sweep.times == ONCE else "ever after",
        "places": len(places), "said": said,
    }  # fmt: skip


def _places(life: Life, kind: str, by: str) -> list[tuple[str, int]]:
    """Every place that a process comes by when nothing befalls it, with how often it has."""
    with run.folder() as folder, scene_of(life, kind, folder) as scene:
        scene.stage.run(EPOCH + END)
        return _numbered(scene, by)


def _numbered(scene: Scene, by: str) -> list[tuple[str, int]]:
    seen: dict[str, int] = {}
    found = []
    for name, where in scene.passed:
        if name == by:
            seen[where] = seen.get(where, 0) + 1
            found.append((where, seen[where]))
    return found
