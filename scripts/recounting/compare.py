"""What the laboratory reported, held against what was counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from recounting.ground import Counts, Entry, NotCountable
from recounting.kinds import PLAIN, Kind, missing
from recounting.run import OF_DATABASE, SUMMED, second_sends
from recounting.verdict import disputed, unsound

PER_CASE = ("effects", "sends", "authorised", "permission", "outcome")
PER_SEARCH = ("schedules", "violations", "complete")
PER_MODE = ("images", "violations")
PER_CHECK = ("cases", "outcomes", "unsafe")
TOP = (
    *SUMMED, *OF_DATABASE, "kills_by_window", "kills_by_aim", "troubles", "lines", "second_effects", "second_beyond",
    "false_beyond",
    "automatic_second_sends", "cases", "bytes_sent_without_authority", "approvals_used_twice",
)  # fmt: skip
"""Whatever of this a report says is held against the count, whether its kind must have it or not."""


def report_of(result: Path) -> Entry | None:
    """What the laboratory itself reported; None where it reported nothing.

    Raises:
        NotCountable: something else stands there.
    """
    if not result.exists():
        return None
    try:
        claimed = json.loads(result.read_text("utf-8"))
    except ValueError as broken:
        raise NotCountable(f"{result} is not JSON") from broken
    if not isinstance(claimed, dict):
        raise NotCountable(f"{result} is not one JSON object")
    return claimed


def is_of(kind: Kind, report: Entry) -> bool:
    """Whether a report could be one of this kind: it says anything that this kind must say, or that is counted."""
    return any(name in report for name in ((*TOP, "rows", "contracts") if kind is PLAIN else kind.required()))


def disagreements(kind: Kind, report: Entry, counts: Counts) -> list[str]:
    """Everything that stands against a report: what it lacks, what was counted otherwise, what it says of itself."""
    lacking = list(missing(kind, report))
    try:
        found = [*compared("", report, counts, (*TOP, *kind.counted)), *_parts(kind, report, counts)]
        found += [*_in_samples(counts), *disputed(kind, report, counts)]
        found += [] if lacking else unsound(kind, report, counts)
    except (KeyError, TypeError, ValueError, AttributeError) as broken:
        found = [f"the report is not in the form of its kind: {type(broken).__name__}: {broken}"]
    return list(dict.fromkeys([*lacking, *found]))


def _parts(kind: Kind, report: Entry, counts: Counts) -> Iterator[str]:
    """The figures of each contract, each mode and each row; and whether there is one of each that was counted."""
    runs = counts.get("runs", {})
    if isinstance(report.get("contracts"), dict):
        wanted = () if kind is PLAIN else (*kind.counted, "violations", "ok")
        for name, figures in report["contracts"].items():
            yield from (f"{name}: {one}: is missing from the report" for one in wanted if one not in figures)
            yield from compared(f"{name}: ", figures, runs.get(name, {}), TOP)
    for name in counts.get("modes", {}):
        own = report.get("modes", {}).get(name, {})
        yield from (f"{name}: {one}: is missing from the report" for one in (*PER_MODE, "found") if one not in own)
    for name, figures in report.get("modes", {}).items():
        said = {word: figures[word] for word in PER_MODE if word in figures}
        yield from compared(f"{name}: ", said, counts.get("modes", {}).get(name, {}), PER_MODE)
    yield from of_bench(report, counts)
    rows = report.get("rows", [])
    for row in rows:
        yield from of_row(row, counts)
    if kind.row:
        yield from _without_row(rows, counts)


def _without_row(rows: Sequence[Entry], counts: Counts) -> Iterator[str]:
    """Whatever was counted and has no row, or more than one."""
    listed = counts.get("searches") or counts.get("trials")
    own = [_place(one) for one in listed] if listed is not None else sorted(counts.get("runs", {}))
    said = [_place(row) if listed is not None else _folder(row, own) for row in rows]
    for name in own:
        if said.count(name) != 1:
            yield f"{name}: has {said.count(name)} rows"


def _place(row: Entry) -> str:
    """What a search or a trial is known by."""
    return ", ".join(str(row.get(word)) for word in ("kind", "base", "slug", "where") if word in row)


def _folder(row: Entry, own: Sequence[str]) -> str:
    """The folder that a row is about."""
    if "contract" in row:
        return str(row["contract"])
    name = name_of_row(row)
    return next((one for one in (name, folder_of(name), str(row.get("case"))) if one in own), name)


def name_of_row(row: Entry) -> str:
    """A row stands in a folder of its own name."""
    return "-".join(row[part] for part in ("subject", "case", "runner") if part in row)


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
        own: Entry = next((one for one in counts.get("trials", []) if _place(one) == _place(row)), {})
        return [
            *compared(f"{world}: ", row["figures"], runs.get(world, {}), tuple(row["figures"])),
            *compared(f"{row['slug']}: ", row, own, tuple(row)),
        ]
    if "base" in row:  # a search
        which = row["kind"], row["base"]
        own = next((one for one in counts.get("searches", []) if (one["kind"], one["base"]) == which), {})
        return compared(f"{row['kind']}, {row['base']}: ", row, own, PER_SEARCH)
    if "contract" in row:
        return compared(f"{row['contract']}: ", row, runs.get(row["contract"], {}), PER_CHECK)
    # A row says `sent` for the sends.
    name = name_of_row(row)
    said = {"sends" if part == "sent" else part: value for part, value in row.items()}
    if "authorised" in row:
        figures = {part: said.get(part) for part in PER_CASE}
        return compared(f"{name}: ", figures, runs.get(folder_of(name), {}), PER_CASE)
    counted = runs.get(name) or runs.get(row.get("case"), {})
    told = {} if counted.get("told") is None else {"outcome": counted["told"]}
    again = {"automatic_second_sends": second_sends(counted)} if "automatic_second_sends" in row else {}
    parts = ("effects", "sends", *told, *again)
    return compared(f"{name}: ", {part: said.get(part) for part in parts}, {**counted, **told, **again}, parts)


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
        for name in dict.fromkeys(names)
        if name in claimed and claimed[name] != counts.get(name)
    ]
