"""Each kind of run: what its report must say, what of that is counted again, and what has to be taken as told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from recounting import authority, images, rounds, searches, worlds
from recounting.agreement import UNLIKE
from recounting.ground import EFFECTS, Entry
from recounting.run import KILLS, OF_DATABASE, RESTARTS, STATE, SUMMED, TOLD

CASES = "cases.jsonl"
"""Of a contract that was checked: a line for each case that was played."""
ROUGH = "rough-wire"
WORST = ("second_effects", "false_outcomes", "unrecorded")

OF_RUNS = tuple(name for name in SUMMED if name != "unowned_unknowns")
OF_WORLDS = ("sends", "effects", "second_effects", "second_beyond", "false_outcomes", "false_beyond", "unrecorded")
OF_IMAGES = ("images", "boundaries", "scenarios", "faults", "violations")
OF_ROUNDS = ("thin_ratio", "async_ratio", "concurrent_ratio", "p50_ms", "rounds")
OF_CHECKS = ("contracts", "cases", "unsafe_answers")
BROKEN = ("duplicates", "unrecorded", "excess_sends", "false_outcomes", "unsettled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What one command's report must have; whatever else it says is named as not recounted."""

    name: str
    found: Callable[[Path], bool]
    """Whether a folder is of this kind, by its raw files alone."""
    claimed: str
    """A figure that only its report has: of a folder whose raw files were taken away."""
    counted: tuple[str, ...] = ()
    """Figures that are counted again from the raw files."""
    summed: tuple[str, ...] = ()
    """Figures, and lists, that are held against others of the same report."""
    told: tuple[str, ...] = ()
    """Figures that nothing in the raw files shows: they must be there, and are named."""
    nought: tuple[str, ...] = ()
    """Of what was counted or told: with one that is not nought nothing can be `ok`."""
    row: tuple[str, ...] = ()
    """What each of its `rows` must have and is counted."""
    row_told: tuple[str, ...] = ()
    """What each of its `rows` must have besides."""
    barred: bool = False
    """Its `ok` says that bars are met, which only the laboratory knows; of any other kind it is worked out again."""

    def required(self) -> tuple[str, ...]:
        """Everything a report of this kind must say."""
        besides = ("ok", "sabotage") if self.claimed and not self.barred else ()
        return (*self.counted, *self.summed, *self.told, *besides, *(["rows"] if self.row else []))


def _has(name: str) -> Callable[[Path], bool]:
    return lambda top: (top / name).exists()


def _below(name: str) -> Callable[[Path], bool]:
    return lambda top: any(top.glob(f"*/{name}"))


def _of_a_demo(top: Path) -> bool:
    return _below(TOLD[0])(top) or any(top.glob(f"*-guarded/{EFFECTS}"))


def _of_a_matrix(top: Path) -> bool:
    return any(path.parent.suffix[1:].isdigit() for path in top.glob(f"*/{worlds.WORDS}"))


def _of_rounds(beside: str) -> Callable[[Path], bool]:
    """Whether a benchmark measured a floor of this name."""
    return lambda top: (top / rounds.ROUNDS).exists() and f'"{beside}"' in (top / rounds.ROUNDS).read_text("utf-8")


CHAOS = Kind(
    name="chaos", found=_has(ROUGH), claimed="disk_full",
    counted=(*SUMMED, "kills_by_window", "kills_by_aim", "troubles", "lines"),
    told=("ends", "disk_full", "violations", "why", "store", "seconds"),
    nought=(*BROKEN, "unowned_unknowns", "violations", "why", *UNLIKE),
)  # fmt: skip

KINDS: Sequence[Kind] = (
    Kind(
        name="approvals", found=_has(authority.CASES), claimed="mutations_refused",
        counted=("cases", "bytes_sent_without_authority", "approvals_used_twice"), told=("mutations_refused",),
        nought=("bytes_sent_without_authority", "approvals_used_twice"),
        row=("case", "sent", "effects", "authorised", "permission", "outcome"), row_told=("expected", "held"),
    ),
    Kind(
        name="images", found=_has(images.BOUNDARIES), claimed="scenarios",
        counted=OF_IMAGES, summed=("modes", "found", "first"), told=("seed", "seconds"),
        nought=("violations",),
    ),
    Kind(
        name="exhaust", found=_has(searches.SCHEDULES), claimed="schedules",
        counted=("schedules", "violations", "complete"), summed=("scope",), told=("seconds",),
        nought=("violations",),
        row=("kind", "base", "schedules", "violations", "complete"), row_told=("broken",),
    ),
    Kind(
        name="mutants", found=_has(searches.TRIALS), claimed="survivors",
        counted=("killed", "survivors", "beyond", "mutants"),
        told=("tier", "pending", "left", "broken_without", "seconds"),
        nought=("survivors", "broken_without"), row=searches.TRIAL,
    ),
    Kind(
        name="bench", found=_of_rounds("same"), claimed="sequential_ratio", barred=True,
        counted=("sequential_ratio", "rows_per_operation", *OF_ROUNDS),
    ),
    Kind(name="bench on a server", found=_of_rounds("thin"), claimed="thin_ratio", barred=True, counted=OF_ROUNDS),
    Kind(
        name="contracts", found=_below(CASES), claimed="unsafe_answers",
        counted=OF_CHECKS, summed=("passed", "weakened", "weakened_caught", "equivalent"), nought=("unsafe_answers",),
        row=("contract", "cases", "outcomes", "unsafe"),
        row_told=(
            "provider", "mechanism", "passed", "misfits", "weakened", "caught", "survivors", "equivalent", "seconds",
        ),
    ),
    replace(
        CHAOS, name="chaos of a database", found=_has(RESTARTS), claimed="commit_cuts",
        counted=(*CHAOS.counted, *OF_DATABASE), told=(*CHAOS.told, "pooler"),
        nought=(*CHAOS.nought, "acknowledged_lost"),
    ),
    CHAOS,
    Kind(
        name="kill-loop", found=_below(KILLS), claimed="kills_by_window",
        counted=(*OF_RUNS, "kills_by_window"), summed=("contracts", "violations"), told=("why",),
        nought=(*BROKEN, "violations", "why", *UNLIKE),
    ),
    Kind(
        name="matrix", found=_of_a_matrix, claimed="cells",
        counted=OF_WORLDS, summed=("cells", "passed", "lives"),
        told=("pending", "missing", "failed", "sweeps", "sweeps_broken", "mutants_checked", "unnoticed", "seconds"),
        nought=(*WORST, "missing", "failed", "sweeps_broken", "unnoticed", "wrong_payloads"),
    ),
    Kind(
        name="simulate", found=_below(worlds.WORDS), claimed="situations",
        counted=(*OF_WORLDS, "operations", "worlds"), summed=("laws", "broken", "violations", "situations"),
        told=("seed", "trace", "seconds", "smallest", "again"),
        nought=(*WORST, "violations", "broken", "wrong_payloads"),
    ),
    Kind(
        name="certify --real", found=lambda top: any(top.glob(f"*-guarded/{STATE}")), claimed="automatic_second_sends",
        counted=("automatic_second_sends",), told=("why",), nought=("automatic_second_sends", "why"),
        row=("case", "sent", "effects", "outcome", "automatic_second_sends"),
        row_told=("subject", "server", "runner", "lifecycle"),
    ),
    Kind(
        name="certify", found=_below(STATE), claimed="why",
        told=("why",), nought=("why",),
        row=("case", "sent", "effects", "outcome"), row_told=("subject", "runner", "waited_seconds"),
    ),
    Kind(
        name="demo", found=_of_a_demo, claimed="leaks",
        told=("leaks",), nought=("leaks",),
        row=("case", "runner", "sent", "effects", "outcome"), row_told=("waited_seconds",),
    ),
)  # fmt: skip
"""Each command that keeps something; the first that fits."""

PLAIN = Kind(name="provider", found=lambda _: True, claimed="", nought=(*BROKEN, *UNLIKE))
"""A provider's own journals, by no command: nothing has to be reported of them."""


def kind_of(top: Path, report: Entry | None) -> Kind:
    """What kind of run stands in a folder, by its raw files; where those do not say, by its report."""
    by_files = next((kind for kind in KINDS if kind.found(top)), None)
    by_report = next((kind for kind in KINDS if kind.claimed in (report or {})), None)
    return by_files or by_report or PLAIN


def missing(kind: Kind, report: Entry) -> Iterator[str]:
    """Name every figure that a report of this kind must have and has not, in itself and in its rows."""
    yield from (f"{name}: is missing from the report" for name in kind.required() if name not in report)
    for place, row in enumerate(report.get("rows", []) if kind.row else []):
        gone = [name for name in (*kind.row, *kind.row_told) if name not in row]
        yield from (f"row {place}: {name}: is missing from the report" for name in gone)


def not_recounted(kind: Kind, report: Entry, compared: Sequence[str]) -> list[str]:
    """Name what a report says that nothing was held against: figures it must have, and those that nobody knows."""
    held = {*kind.counted, *kind.summed, *compared, "ok", "rows"}
    rows = dict.fromkeys(name for row in report.get("rows", []) for name in row if name not in kind.row)
    return [*(name for name in report if name not in held), *(f"rows/*/{name}" for name in rows)]
