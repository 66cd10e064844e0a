"""One process's share of the work: it takes one task after another until none is left, and writes down what came of it.

Which process takes which task is chance; what comes of a task depends on the seed alone.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.domain.errors import StoreUnsafe
from counterfoil.lab.images import faults
from counterfoil.lab.images.evidence import BOUNDARIES
from counterfoil.lab.images.recording import workshop
from counterfoil.lab.images.scripts import SCRIPTS
from counterfoil.lab.images.shim import Shim
from counterfoil.lab.images.survey import Kept, Survey, survey
from counterfoil.lab.images.tape import Tape
from counterfoil.lab.images.weakened import weaken
from counterfoil.lab.journal import Journal
from counterfoil.lab.run_folder import STORE
from counterfoil.lab.tether import on_parent_gone
from counterfoil.runtime import executor
from counterfoil.store import opening
from counterfoil.store.sqlite import SqliteStore

PRODUCT = "wal_full"
"""The one way the product keeps its file; the others are there to be noticed."""
WEAK: Mapping[str, str] = {"wal_normal": "NORMAL", "wal_off": "OFF"}
"""By mode, what its connections are set to behind the product's back."""
ROLLBACK = "rollback_journal"
"""A file system without shared memory, where SQLite would keep no log: the product refuses it."""
CONTROLS = ("unknown", "approved", "recovered")
"""Scripts that the weakened modes are shown with."""
CONTROL_SHARE, CONTROL_MIN = 100, 120
"""Each of them gets a so-and-so-manieth of the images asked for, and enough of them to be noticed."""
IN_FULL = 20_000
"""From so many images on every operation fails once; with half as many every fourth, and so on."""

ALL = "all"

BUSY_SECONDS = 0.02
"""How long the product waits for a lock here: what is busy stays busy until it is told otherwise."""
FOUND = "found.json"


class Task(NamedTuple):
    """A piece of the work."""

    mode: str
    """How the file is kept, or the kind of fault."""
    script: str
    images: int = 0
    stride: int = 1


def tasks(images: int, only: str = ALL) -> list[Task]:
    """All of the work, in an order that lets its parts end at about the same time.

    Args:
        images: how many crash images of the product as it is.
        only: one script, or all of them.
    """
    scripts = tuple(SCRIPTS) if only == ALL else (only,)
    each, stride = -(-images // len(scripts)), 1 if images >= IN_FULL else 2 * IN_FULL // images
    return [
        *(Task(PRODUCT, script, each) for script in scripts),
        *(Task(kind, script, stride=stride) for kind in faults.KINDS for script in scripts),
        *(Task(mode, script, max(CONTROL_MIN, images // CONTROL_SHARE)) for mode in WEAK for script in CONTROLS),
        Task(ROLLBACK, "opened"),
    ]


def journal_of(top: Path, share: int) -> Path:
    """Where one process writes down what came of its tasks."""
    return top / f"share-{share}.jsonl"


def carry_out(task: Task, seed: int, kept: Path, left: Path) -> dict[str, Any]:
    """Do one task and say what came of it.

    Args:
        task: which.
        seed: draws the images.
        kept: gets a folder for each violating image that is left to look at.
        left: gets the evidence of each mode, for whoever counts it again.
    """
    draws = f"{seed}.{task.mode}.{task.script}"
    if task.mode == ROLLBACK:
        return {"refused": _is_refused()}
    if task.mode in faults.KINDS:
        came = faults.loop(task.script, task.mode, draws, task.stride)
        first = [list(each) for each in came.first]
        return {"runs": came.runs, "violating": came.violating, "found": dict(came.found), "first": first}
    if task.mode in WEAK:
        mend = weaken(WEAK[task.mode])
        try:
            return _said(survey(task.script, task.images, draws, left / task.mode))
        finally:
            mend()
    came_of = survey(task.script, task.images, draws, left / task.mode)
    for each in came_of.kept:
        _keep(each, kept / f"{task.script.replace(' ', '-')}-{each.boundary}")
    return _said(came_of)


def _said(came: Survey) -> dict[str, Any]:
    first = [list(each) for each in came.kept[0].found] if came.kept else []
    return {
        "boundaries": came.boundaries, "images": came.images, "violating": came.violating, "found": dict(came.found),
        "first": first,
    }  # fmt: skip


def _keep(image: Kept, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in image.files.items():
        (folder / name).write_bytes(content)
    (folder / FOUND).write_text(json.dumps([each._asdict() for each in image.found], indent=1) + "\n", encoding="utf-8")


def _is_refused() -> bool:
    with workshop() as top, Shim(Path(top), Tape({}), shared=False):
        try:
            SqliteStore(Path(top) / STORE).close()
        except StoreUnsafe:
            return True
        return False


def _is_mine(top: Path, number: int) -> bool:
    """Take a task, unless another process has it."""
    try:
        os.close(os.open(top / f"task-{number}", os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Take tasks until none is left."""
    parser = argparse.ArgumentParser(prog="counterfoil.lab.images.share", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where tasks are taken and results go")
    parser.add_argument("--kept", type=Path, required=True, help="gets what violates")
    parser.add_argument("--share", type=int, required=True, help="this process's own number")
    parser.add_argument("--images", type=int, required=True, help="crash images in all")
    parser.add_argument("--script", default=ALL, help="only this one")
    parser.add_argument("--seed", type=int, required=True, help="draws them")
    asked = parser.parse_args(arguments)
    on_parent_gone(lambda: os.kill(os.getpid(), signal.SIGTERM))
    changed: Any = opening
    changed.BUSY_TIMEOUT_SECONDS = BUSY_SECONDS
    changed = executor
    changed.INSIST_FIRST_SECONDS = 0.0  # nothing is mended by waiting here
    journal = Journal(journal_of(asked.folder, asked.share))
    for number, task in enumerate(tasks(asked.images, asked.script)):
        if _is_mine(asked.folder, number):
            came = carry_out(task, asked.seed, asked.kept, asked.folder / BOUNDARIES)
            journal.append({**task._asdict(), **came})
    journal.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
