"""Virtual worlds: those of a simulation, those a search left as samples, and those in which a mutant was noticed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from recounting.agreement import UNLIKE
from recounting.ground import EFFECTS, WIRE, Counts, NotCountable, lines, total
from recounting.run import SUMMED as OF_RUNS
from recounting.run import count

WORDS, WORLD = "words.jsonl", "world.json"
SUMMED = (*OF_RUNS, "second_effects", "second_beyond", "false_beyond", *UNLIKE)


def world(folder: Path) -> Counts:
    """Count one virtual world; where an assumption is broken, what was concluded from it is counted apart."""
    counts = count(folder)
    said = Counter(entry["name"] for entry in lines(folder / WORDS) or [] if entry["verb"] == "override")
    try:
        assumed = json.loads((folder / WORLD).read_text("utf-8"))
        held, bound = assumed["assumptions"] == "hold", float(assumed["delivery_seconds"])
    except (OSError, ValueError, KeyError) as broken:
        raise NotCountable(f"{folder / WORLD} does not say whether the assumptions hold") from broken
    sent = {entry["seq"]: entry["at"] for entry in lines(folder / WIRE) or []}
    requests: dict[str, dict[int, bool]] = {}
    for effect in lines(folder / EFFECTS) or []:
        if effect["wire"]:
            late = (
                not held and effect["kind"] == "key" and effect["at"] - sent.get(effect["wire"], effect["at"]) > bound
            )
            requests.setdefault(effect["name"], {})[effect["wire"]] = late
    extra = {name: max(0, len(found) - 1 - said[name]) for name, found in requests.items()}
    beyond = sum(min(count, sum(requests[name].values())) for name, count in extra.items())
    wrong = counts["false_outcomes"]
    return counts | {
        "second_effects": sum(extra.values()) - beyond,
        "second_beyond": beyond,
        "false_outcomes": wrong if held else 0,
        "false_beyond": 0 if held else wrong,
    }


def simulation(top: Path) -> Counts:
    """Count every world of a simulation and add up."""
    runs = kept(top)
    return {name: total(run[name] for run in runs.values()) for name in SUMMED} | {"worlds": len(runs), "runs": runs}


def kept(top: Path) -> dict[str, Counts]:
    """Count every world that stands there."""
    return {path.parent.name: world(path.parent) for path in sorted(top.glob(f"*/{WORDS}"))}
