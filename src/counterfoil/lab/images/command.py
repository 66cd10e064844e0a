"""`counterfoil-lab images`: the power goes at every boundary, everything fails once, and nothing promised is lost."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab import sabotage
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.images import faults
from counterfoil.lab.images.recording import WITHIN, workshop
from counterfoil.lab.images.share import PRODUCT, ROLLBACK, WEAK, journal_of, tasks
from counterfoil.lab.journal import Journal
from counterfoil.lab.processes import Child
from counterfoil.lab.watch import POLL_SECONDS, Tail

PROCESSES_MAX = 4
"""More would share one memory bus, and the laboratory's machine has two."""
SECONDS_MAX = 1_800.0
"""For a hundred thousand images; the usual run takes about one minute."""
FIRST_MAX = 5
"""Violations that are told in words; all are counted."""
VIOLATIONS, FAULTS = "violations", "faults.jsonl"

Entry = Mapping[str, Any]


class Plan(NamedTuple):
    """What is asked of the images."""

    images: int
    """How many at least."""
    script: str
    """One script, or `all`."""
    seed: int
    mutant: str | None
    """A rule that is off in all of these processes."""

    def tasks(self) -> int:
        """How many pieces the work has."""
        return len(tasks(self.images, self.script))


def run(top: Path, plan: Plan, step: Callable[[str], None]) -> dict[str, Any]:
    """Let processes share the work, and sum up what came of it.

    Args:
        top: gets what violates, and what each process did meanwhile.
        plan: how much of it.
        step: told of each task when it is done.
    """
    began = time.monotonic()
    shares = range(max(1, min(PROCESSES_MAX, os.cpu_count() or 1)))
    with contextlib.ExitStack() as house:
        within = house.enter_context(workshop())
        children = [house.enter_context(_child(top, share, plan, within)) for share in shares]
        entries = _done(top, children, plan.tasks(), step)
    for path in (*top.glob("task-*"), *(journal_of(top, share) for share in shares)):
        path.unlink()
    _write_faults(top / FAULTS, entries)
    return {**_figures(entries), "seed": plan.seed, "seconds": round(time.monotonic() - began, 1)}


def _write_faults(path: Path, entries: Iterable[Entry]) -> None:
    """Leave how often each kind of fault struck each script, and how often that violated."""
    journal = Journal(path)
    for entry in entries:
        if entry["mode"] in faults.KINDS:
            journal.append({name: entry[name] for name in ("mode", "script", "runs", "violating")})
    journal.close()


def _child(top: Path, share: int, plan: Plan, within: str) -> Child:
    said = {
        "folder": top, "kept": top / VIOLATIONS, "share": share, "images": plan.images, "script": plan.script,
        "seed": plan.seed,
    }  # fmt: skip
    arguments = [word for name, value in said.items() for word in (f"--{name}", str(value))]
    return Child(
        sabotage.command(plan.mutant, "counterfoil.lab.images.share", *arguments),
        env={WITHIN: within},
        ready_seconds=None,
    )


def _done(top: Path, children: Sequence[Child], wanted: int, step: Callable[[str], None]) -> list[Entry]:
    """Tell of each task when it is done, until all are.

    Raises:
        RunFailed: a process ended before that, or the time was over.
    """
    tails = [Tail(journal_of(top, share)) for share in range(len(children))]
    entries: list[Entry] = []
    until = time.monotonic() + SECONDS_MAX
    while len(entries) < wanted:
        ended = [child for child in children if not child.running]  # before the look: nothing follows it then
        for entry in (entry for tail in tails for entry in tail.more()):
            entries.append(entry)
            step(f"{entry['mode']}: {entry['script']}")
        broken = [child for child in ended if child.wait() != 0]
        if len(entries) < wanted and (broken or len(ended) == len(children) or time.monotonic() > until):
            said = "".join(child.errors() for child in broken) or "no process goes on"
            raise RunFailed(f"only {len(entries)} of {wanted} tasks were done: {said}")
        time.sleep(10 * POLL_SECONDS)
    return entries


def _figures(entries: Iterable[Entry]) -> dict[str, Any]:
    by_mode: dict[str, list[Entry]] = {}
    for entry in entries:
        by_mode.setdefault(entry["mode"], []).append(entry)
    own = {entry["script"]: entry for entry in by_mode[PRODUCT]}
    judged = [*own.values(), *(entry for kind in faults.KINDS for entry in by_mode[kind])]
    kinds = sum((Counter(entry["found"]) for entry in judged), Counter[str]())
    violations = sum(entry["violating"] for entry in judged)
    modes: dict[str, Any] = {mode: _mode(by_mode[mode]) for mode in (PRODUCT, *WEAK)}
    modes[ROLLBACK] = {"refused": by_mode[ROLLBACK][0]["refused"]}
    noticed = modes[ROLLBACK]["refused"] and all(modes[mode]["violations"] for mode in WEAK)
    return {
        "images": modes[PRODUCT]["images"],
        "boundaries": sum(entry["boundaries"] for entry in own.values()),
        "scenarios": {script: own[script]["images"] for script in sorted(own)},
        "modes": modes,
        "faults": {kind: sum(entry["runs"] for entry in by_mode[kind]) for kind in faults.KINDS},
        "violations": violations,
        "found": dict(sorted(kinds.items())),
        "first": _first(judged),
        "ok": not violations and noticed,
    }


def _mode(entries: Sequence[Entry]) -> dict[str, Any]:
    found = sum((Counter(entry["found"]) for entry in entries), Counter[str]())
    return {
        "images": sum(entry["images"] for entry in entries),
        "violations": sum(entry["violating"] for entry in entries),
        "found": dict(sorted(found.items())),
    }


def _first(entries: Sequence[Entry]) -> list[dict[str, str]]:
    """The first things found, in words."""
    found = [
        {"mode": entry["mode"], "script": entry["script"], "kind": kind, "detail": detail}
        for entry in entries
        for kind, detail in entry["first"][:1]
    ]
    return sorted(found, key=lambda each: (each["mode"], each["script"]))[:FIRST_MAX]
