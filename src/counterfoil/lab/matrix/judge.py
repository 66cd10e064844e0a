"""Judge one life: its faults fired, each moment is as the row says, and no law of the house is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.domain.lifecycle import lifecycle, outcome_now, permission_now, permitted
from counterfoil.domain.operation import COLUMNS, Operation
from counterfoil.lab.matrix.life import Facts, Life
from counterfoil.lab.matrix.scene import Scene, played
from counterfoil.lab.world.check import at_end
from counterfoil.lab.world.stage import EPOCH

FAULT, STANDS, ENDED = "fault", "stands", "ended"
"""First words of what is said: the life shows nothing; a moment is not as it must be; a program ended by an error."""
NO_KILL = frozenset({FAULT, ENDED})
"""What notices no mutant: nothing was shown, or it crashed."""


def judged(life: Life, kind: str, folder: Path, ended: Callable[[Scene], object] = lambda _: None) -> list[str]:
    """Play a life on a file and say everything that is not as it must be.

    Args:
        life: what happens.
        kind: of provider.
        folder: gets the receipts file.
        ended: told of the scene when all is over, while its file still stands.
    """
    with played(life, kind, folder) as scene:
        said = judged_in(scene)
        ended(scene)
        return said


def judged_in(scene: Scene) -> list[str]:
    """The same of a scene that has begun."""
    said: list[str] = []
    for moment in scene.life.moments:
        scene.stage.run(EPOCH + moment.at)
        said += _against(moment.facts, facts(scene), f"at {moment.at:g} s")
    said += [f"{FAULT}: {unfired} did not happen" for unfired in unfired_in(scene)]
    if scene.gate is not None and not scene.gate.refusals:
        said.append(f"{FAULT}: the file system refused nothing")
    return said + at_end(scene) + scene.violations


def unfired_in(scene: Scene) -> list[str]:
    """What the life was to be about and did not come up."""
    return scene.script.unfired() + (scene.script.unmet() if scene.life.fates_fire else [])


def _against(wanted: Facts, found: dict[str, Any], when: str) -> list[str]:
    return [
        f"{STANDS}: {when} {name} is {_spelled(found.get(name))}, not {_spelled(value)}"
        for name, value in wanted.items()
        if found.get(name) != value
    ]


def _spelled(fact: object) -> str:
    """A fact as people write it: words by their names, several in a row, and nothing for none of them."""
    if isinstance(fact, frozenset | tuple):
        return ", ".join(map(str, sorted(fact) if isinstance(fact, frozenset) else fact)) or "none"
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if fact is None:
        return "not there"
    return str(fact) or "nothing"


def facts(scene: Scene) -> dict[str, Any]:
    """Everything there is to say of one moment: the file read past the product, and the truth outside of it."""
    truth = scene.truth
    stands = scene.read(f"SELECT {', '.join(COLUMNS)} FROM operation ORDER BY n")  # noqa: S608 - its own columns
    known: dict[str, Any] = {
        "operations": len(stands), "all_sends": len(truth.wire), "all_effects": len(truth.effects),
        "told": scene.told[-1] if scene.told else "", "all_told": tuple(scene.told), "spooled": len(scene.spooled),
        "sends": 0, "effects": 0,
    }  # fmt: skip
    if not stands:
        return known
    operation = msgspec.convert(dict(zip(COLUMNS, stands[0], strict=True)), Operation)
    return known | _of(scene, operation) | {"others": tuple(row[COLUMNS.index("outcome")] for row in stands[1:])}


def _of(scene: Scene, operation: Operation) -> dict[str, Any]:
    truth, now = scene.truth, scene.stage.now
    outcome = outcome_now(operation, now, alive=scene.in_hand(operation.id))
    rows = scene.rows(operation.id)
    observed = [row.record for row in rows if row.kind == "observed"]
    return {
        **msgspec.to_builtins(operation),
        "sends": len(truth.sent(operation.id)), "effects": len(truth.of(operation.id)),
        "reads": outcome.value, "lifecycle": lifecycle(operation, outcome).value,
        "permitted": frozenset(permitted(operation, outcome, permission_now(operation, now))),
        "owned": bool(operation.owner), "observed": len(observed),
        "findings": tuple(record["finding"] for record in observed),
        "kept": any(row.body for row in rows if row.kind == "observed"),
        "rests_for": round(operation.due_at - operation.updated_at) if operation.step else 0,
        "decided": tuple(row.record["decision"] for row in rows if row.kind == "decided"),
        "bases": tuple(row.record.get("basis", "") for row in rows if row.kind == "begun"),
    }  # fmt: skip
