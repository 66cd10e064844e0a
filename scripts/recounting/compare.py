"""What the laboratory reported, held against what was counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from recounting.ground import Counts, Entry, NotCountable
from recounting.run import OF_DATABASE, SUMMED

PER_CASE = ("effects", "sends", "authorised", "permission", "outcome")
PER_SEARCH = ("schedules", "violations", "complete")
PER_MODE = ("images", "violations")
TOP = (
    *SUMMED, *OF_DATABASE, "kills_by_window", "kills_by_aim", "troubles", "second_effects", "false_beyond",
    "automatic_second_sends", "cases", "bytes_sent_without_authority", "approvals_used_twice",
)  # fmt: skip
"""What a result may claim that is counted here as well; other fields are the laboratory's own."""
OF_KIND = {
    "scenarios": ("images", "boundaries", "scenarios", "faults", "violations"),
    "schedules": ("schedules", "complete", "violations"),
    "killed": ("killed", "survivors"),
    "thin_ratio": (
        "sequential_ratio", "thin_ratio", "async_ratio", "concurrent_ratio", "p50_ms", "rounds", "rows_per_operation",
    ),
}  # fmt: skip
"""What else is counted of some kinds of runs, by a figure that only they have."""


def disagreements(counts: Counts, result: Path) -> list[str]:
    """Compare with what the laboratory itself reported."""
    if not result.exists():
        return []
    try:
        claimed = json.loads(result.read_text("utf-8"))
    except ValueError as broken:
        raise NotCountable(f"{result} is not JSON") from broken
    if not isinstance(claimed, dict):
        raise NotCountable(f"{result} is not one JSON object")
    whole = (*TOP, *(name for kind, names in OF_KIND.items() if kind in counts for name in names))
    found = compared("", claimed, counts, whole)
    runs = counts.get("runs", {})
    for name, figures in claimed.get("contracts", {}).items():
        found += compared(f"{name}: ", figures, runs.get(name, {}), TOP)
    for name, figures in claimed.get("modes", {}).items():
        said = {word: figures[word] for word in PER_MODE if word in figures}
        found += compared(f"{name}: ", said, counts.get("modes", {}).get(name, {}), PER_MODE)
    found += of_bench(claimed, counts)
    for row in claimed.get("rows", []):
        found += of_row(row, counts)
    return found + list(_in_samples(counts))


def of_bench(claimed: Counts, counts: Counts) -> list[str]:
    """Compare what a benchmark says of peers and of full stores."""
    found = []
    for name, figures in claimed.get("peers", {}).items():
        own = {
            **counts.get("peers", {}).get(name, {}),
            "over": counts.get("over", {}).get(name, {}).get(figures["way"]),
        }
        found += compared(f"{name}: ", figures, own, ("mine_ratio", "thin_ratio", "over"))
        found += compared("concurrent_over: ", claimed["concurrent_over"], {name: own["over"]}, (name,))
    if "growth" in claimed:
        found += compared("growth: ", claimed["growth"], counts.get("growth", {}), ("ratio", "p50_ms"))
    return found


def of_row(row: Entry, counts: Counts) -> list[str]:
    """Compare one row with what stands in the folder of its name."""
    runs = counts.get("runs", {})
    if "figures" in row:  # a mutant, with the world that noticed it
        world = f"{row['slug']}-{int(row['where']):05d}" if row["figures"] else ""
        return compared(f"{world}: ", row["figures"], runs.get(world, {}), tuple(row["figures"]))
    if "base" in row:  # a search
        which = row["kind"], row["base"]
        own = next((one for one in counts.get("searches", []) if (one["kind"], one["base"]) == which), {})
        return compared(f"{row['kind']}, {row['base']}: ", row, own, PER_SEARCH)
    # A row stands in a folder of its own name, and says `sent` for the sends.
    name = "-".join(row[part] for part in ("subject", "case", "runner") if part in row)
    said = {"sends" if part == "sent" else part: value for part, value in row.items()}
    if "authorised" in row:
        figures = {part: said.get(part) for part in PER_CASE}
        return compared(f"{name}: ", figures, runs.get(folder_of(name), {}), PER_CASE)
    counted = runs.get(name) or runs.get(row.get("case"), {})
    told = {} if counted.get("told") is None else {"outcome": counted["told"]}
    parts = ("effects", "sends", *told)
    return compared(f"{name}: ", {part: said.get(part) for part in parts}, {**counted, **told}, parts)


def folder_of(name: str) -> str:
    """The folder in which a case of this name stands."""
    return "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in name)


def _in_samples(counts: Counts) -> Iterator[str]:
    """What kept images or worlds show that their run does not say."""
    if counts.get("samples_disagree"):
        yield f"{counts['samples_disagree']} of {counts['samples']} kept images are not what was said of them"
    if counts.get("false_in_samples") and not counts["violations"]:
        yield f"{counts['false_in_samples']} false figures in kept worlds of a search that found nothing"


def compared(whose: str, claimed: Counts, counts: Counts, names: Sequence[str]) -> list[str]:
    """Name every figure that is claimed and was not counted so."""
    return [
        f"{whose}{name}: reported {claimed[name]!r}, counted {counts.get(name)!r}"
        for name in names
        if name in claimed and claimed[name] != counts.get(name)
    ]
