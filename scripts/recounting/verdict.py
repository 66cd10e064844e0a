"""Whether a run may be called `ok`, worked out again; and what of a report does not fit its own other figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from recounting.agreement import UNLIKE
from recounting.ground import Counts, Entry
from recounting.kinds import Kind

APPROVALS_MIN, KILLED_MIN = 50, 38
"""Fewer cases, or fewer mutants noticed of a whole tier, are no proof."""
UNKNOWN_SHARE, IN_FLIGHT = 10, "claim_to_outcome"
IN_FLIGHT_SHARE = {"kill-loop": 3, "chaos": 5}
"""At least one kill in so many fell between claim and outcome."""
EXPECTED = re.compile(r"(\d+) sent, (\S+), (\S+)")
"""What a case of `approvals` had to come to: sends, permission, outcome."""
TOLD_MAX = 20
"""Broken laws that a report names; all of them are counted."""

Facts = Iterator[str]


def against(kind: Kind, report: Entry, counts: Counts) -> list[str]:
    """Why a run cannot be `ok`: each figure that must be nought and is not, and what its kind must have besides."""
    return [
        *(f"{name} is {of(name, report, counts)!r}, not nought" for name in kind.nought if of(name, report, counts)),
        *_BESIDES.get(kind.name, _nothing)(report, counts),
    ]


def of(name: str, report: Entry, counts: Counts) -> object:
    """A figure as it was counted; where nothing counts it, as it was told."""
    return counts.get(name) if counts.get(name) is not None else report.get(name)


def disputed(kind: Kind, report: Entry, counts: Counts) -> Iterator[str]:
    """The report's own `ok` against what follows; what a sabotaged run did not notice need not be called `ok`."""
    if kind.barred:
        return
    said, why = report.get("ok"), against(kind, report, counts)
    why += [f"it says {report['error']!r}"] if report.get("error") else []
    if said is True:
        yield from (f"ok: reported True, and {reason}" for reason in why)
    elif said is False and not why and kind.claimed and not report.get("sabotage"):
        yield "ok: reported False, and nothing that was counted says so"


# -- what a kind must have besides -------------------------------------------------------------------------------------


def _nothing(_report: Entry, _counts: Counts) -> Facts:
    yield from ()


def _kill_loop(report: Entry, counts: Counts) -> Facts:
    for name, run in counts.get("runs", {}).items():
        own = report.get("contracts", {}).get(name, {})
        yield from (
            f"{name}: {reason}" for reason in _enough("kill-loop", {**run, "violations": own.get("violations")})
        )
        yield from (f"{name}: it says not ok" for _ in range(own.get("ok") is not True))


def _chaos(_report: Entry, counts: Counts) -> Facts:
    yield from _enough("chaos", counts)


def _enough(kind: str, run: Counts) -> Facts:
    """Every line has its operation, and enough was unknown and in flight for the rest to say anything."""
    if run["lines"] != run["operations"]:
        yield f"{run['lines']} lines were asked for and {run['operations']} operations stand"
    few = run["operations"] if kind == "kill-loop" else run["kills"]
    if (run["unknown_seen"] or 0) * UNKNOWN_SHARE < (few or 0):
        yield "too few operations were unknown at any time"
    if ((run["kills_by_window"] or {}).get(IN_FLIGHT, 0)) * IN_FLIGHT_SHARE[kind] < (run["kills"] or 0):
        yield "too few kills fell between claim and outcome"


def _mutants(report: Entry, counts: Counts) -> Facts:
    if report.get("left") and counts["killed"] < KILLED_MIN:
        yield f"only {counts['killed']} of a whole tier were noticed"


def _images(report: Entry, counts: Counts) -> Facts:
    modes = report.get("modes", {})
    yield from (
        f"{name} lost nothing" for name, found in counts["modes"].items() if _is_weak(name) and not found["violations"]
    )
    if not modes.get("rollback_journal", {}).get("refused"):
        yield "a rollback journal was not refused"


def _is_weak(mode: str) -> bool:
    return mode.startswith("wal_") and mode != "wal_full"


def _approvals(report: Entry, counts: Counts) -> Facts:
    yield from (f"{row.get('case')} did not hold" for row in report.get("rows", []) if row.get("held") is not True)
    if counts["cases"] < APPROVALS_MIN:
        yield f"only {counts['cases']} cases were played"
    if not report.get("mutations_refused"):
        yield "nothing that was changed was refused"


def _demo(_report: Entry, counts: Counts) -> Facts:
    for name, run in counts["runs"].items():
        guarded = name.endswith("-guarded")
        well = (run["effects"], run["told"]) == (1, "succeeded") if guarded else run["effects"] > 1
        unlike = [figure for figure in UNLIKE if run.get(figure)]
        if not well or unlike:
            yield f"{name} came to {run['effects']} effects and {run['told']}{', '.join(['', *unlike])}"


def _certify(_report: Entry, counts: Counts) -> Facts:
    runs = counts["runs"]
    yield from (f"{name}: {run['effects']} effects" for name, run in runs.items() if run["effects"] != 1)
    for name, run in runs.items():
        yield from (f"{name}: {figure} is {run[figure]}" for figure in UNLIKE if run.get(figure))


def _contracts(report: Entry, counts: Counts) -> Facts:
    yield from (
        f"{row.get('contract')} did not pass" for row in report.get("rows", []) if row.get("passed") is not True
    )
    if not counts["contracts"]:
        yield "none was checked"
    if counts["cases_unlike"]:
        yield f"{counts['cases_unlike']} cases are not what their journals say"


_BESIDES: Mapping[str, Callable[[Entry, Counts], Facts]] = {
    "kill-loop": _kill_loop, "chaos": _chaos, "mutants": _mutants, "images": _images,
    "approvals": _approvals, "demo": _demo, "certify": _certify, "certify --real": _certify, "contracts": _contracts,
}  # fmt: skip


# -- a report against itself -------------------------------------------------------------------------------------------


def unsound(kind: Kind, report: Entry, counts: Counts) -> Iterator[str]:
    """What cannot stand beside other figures of the same report."""
    for name, said, follows in _SUMS.get(kind.name, _no_sums)(report, counts):
        if said != follows:
            yield f"{name}: reported {said!r}, and its own other figures make it {follows!r}"


Sums = Iterator[tuple[str, object, object]]


def _no_sums(_report: Entry, _counts: Counts) -> Sums:
    yield from ()


def _sums_of_kills(report: Entry, counts: Counts) -> Sums:
    parts = report["contracts"].values()
    yield "violations", report["violations"], sum(part["violations"] for part in parts)
    yield "kills", report["kills"], sum(report["kills_by_window"].values())
    yield "contracts", sorted(report["contracts"]), sorted(counts["runs"])


def _sums_of_chaos(report: Entry, _counts: Counts) -> Sums:
    yield "kills", report["kills"], sum(report["kills_by_window"].values())
    yield "kills", report["kills"], sum(report["kills_by_aim"].values())


def _sums_of_worlds(report: Entry, _counts: Counts) -> Sums:
    met = report["situations"]
    yield "laws", sum(report["laws"].values()), report["violations"]
    yield "broken", len(report["broken"]), min(report["violations"], TOLD_MAX)
    yield "situations", met["hit"] + len(met["missing"]), met["total"]
    yield "situations", len(met["rarest"]), min(met["hit"], 10)


def _sums_of_cells(report: Entry, counts: Counts) -> Sums:
    folders = {name.rpartition(".")[0] for name in counts["runs"]}
    cells = report["passed"] + len(report["failed"])
    yield "cells", report["cells"], cells + len(report["pending"]) + len(report["missing"])
    yield "passed", cells, len(folders)
    # The lives of real processes are played elsewhere, one for a cell at most, and not kept.
    lives = report["lives"]
    yield "lives", lives, min(max(lives, len(counts["runs"])), len(counts["runs"]) + cells)


def _sums_of_images(report: Entry, counts: Counts) -> Sums:
    modes = {name: found for name, found in report["modes"].items() if "images" in found}
    yield "modes", sorted(report["modes"]), sorted([*counts["modes"], "rollback_journal"])
    yield "found", bool(report["found"]), bool(report["violations"])
    yield "first", bool(report["first"]), bool(report["violations"])
    for name, found in modes.items():
        yield f"modes: {name}: found", bool(found["found"]), bool(found["violations"])


def _sums_of_searches(report: Entry, _counts: Counts) -> Sums:
    bases = {row["base"] for row in report["rows"]}
    yield "scope: first_send", sorted(report["scope"]["first_send"]), sorted(bases)
    for row in report["rows"]:
        yield f"{row['kind']}, {row['base']}: broken", bool(row["broken"]), bool(row["violations"])


def _sums_of_cases(report: Entry, _counts: Counts) -> Sums:
    rows = report["rows"]
    for row in rows:
        wanted, permission, outcome = expected(row)
        fits = wanted == row["sent"] and permission in ("*", row["permission"]) and outcome in ("*", row["outcome"])
        yield f"{row['case']}: held", row["held"] and not fits, False
    refused = report["mutations_refused"]
    yield "mutations_refused", refused, min(refused, sum(row["sent"] == 0 for row in rows))


def expected(row: Entry) -> tuple[int, str, str]:
    """What one case of `approvals` had to come to, read from its words."""
    named = EXPECTED.fullmatch(row["expected"].rpartition(": ")[2])
    if named is None:
        return row["authorised"], "*", "*"  # two raced: as many sent as were claimed while approved
    return int(named[1]), named[2], named[3]


def _sums_of_checks(report: Entry, _counts: Counts) -> Sums:
    rows = report["rows"]
    yield "passed", report["passed"], sum(row["passed"] for row in rows)
    yield "weakened", report["weakened"], sum(row["weakened"] for row in rows)
    yield "weakened_caught", report["weakened_caught"], sum(len(row["caught"]) for row in rows)
    yield "equivalent", report["equivalent"], sum(len(row["equivalent"]) for row in rows)
    for row in rows:
        clean = not (row["unsafe"] or row["misfits"] or row["survivors"])
        yield f"{row['contract']}: passed", row["passed"], clean
        yield f"{row['contract']}: weakened", row["weakened"], len(row["caught"]) + len(row["survivors"])


def _sums_of_certified(report: Entry, counts: Counts) -> Sums:
    for row in report["rows"]:
        kept = counts["runs"].get(row["case"], {}).get("operations") is not None
        yield f"{row['case']}: runner", row["runner"], "guarded" if kept else "unguarded"


_SUMS: Mapping[str, Callable[[Entry, Counts], Sums]] = {
    "kill-loop": _sums_of_kills, "chaos": _sums_of_chaos, "chaos of a database": _sums_of_chaos,
    "simulate": _sums_of_worlds, "matrix": _sums_of_cells,
    "images": _sums_of_images, "exhaust": _sums_of_searches, "approvals": _sums_of_cases,
    "contracts": _sums_of_checks, "certify": _sums_of_certified,
}  # fmt: skip
