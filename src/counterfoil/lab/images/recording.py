"""Playing a script on a folder that is watched: what comes of it is a tape."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from counterfoil.domain.errors import CounterfoilError
from counterfoil.lab.images import scripts
from counterfoil.lab.images.disk import Sync, replay
from counterfoil.lab.images.scripts import SCRIPTS
from counterfoil.lab.images.shim import Shim
from counterfoil.lab.images.stage import NOON, Stage
from counterfoil.lab.images.tape import Fault, Tape
from counterfoil.lab.run_folder import STORE
from counterfoil.store import opening
from counterfoil.store.sqlite import SqliteStore

MEMORY = Path("/dev/shm")  # noqa: S108 - folders of our own are made in it
"""Where Linux keeps files in memory: what a test's power cut takes was never on a disk, and need not be."""


WITHIN = "COUNTERFOIL_IMAGES_WITHIN"
"""The variable that names a folder for temporary ones, made and removed by whoever starts a process: one that is ended
cannot always clean up after itself."""


def workshop() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder, in memory where the system has such a place."""
    within = os.environ.get(WITHIN) or (MEMORY if MEMORY.is_dir() else None)
    return tempfile.TemporaryDirectory(prefix="counterfoil-images-", dir=within)


def lay(folder: Path, files: Mapping[str, bytes]) -> None:
    """Let a folder hold these files and no other."""
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def held(folder: Path) -> dict[str, bytes]:
    """Read what a folder holds for SQLite: the file and its log; shared memory is never durable."""
    names = (STORE, f"{STORE}-wal", f"{STORE}-journal")
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


@functools.cache
def start(kind: str) -> Mapping[str, bytes]:
    """What surely stands there at first."""
    if kind == scripts.NOTHING:
        return {}
    with workshop() as top:
        folder = Path(top)
        if kind in {scripts.LEFT, scripts.CUT}:
            return _left(folder, cut=kind == scripts.CUT)
        if kind == scripts.FIRST_SCHEMA:
            opening.prepare(folder / STORE)
            with contextlib.closing(opening.connect(folder / STORE, writes=True)) as db:
                opening.migrate(db, folder / STORE, opening.MIGRATIONS[:1])
        else:
            SqliteStore(folder / STORE, clock=lambda: NOON).close()
        return held(folder)


def _left(folder: Path, *, cut: bool) -> dict[str, bytes]:
    """What a process leaves that never closes; and with a cut, of its last commit only a part."""
    tape = Tape({})
    stage = Stage(folder, tape)
    with Shim(folder, tape):
        scripts.left_behind(stage)
        left = held(folder)
        written = tuple(tape.operations)
        stage.close()
    if not cut:
        return left
    before_its_sync = max(at for at, each in enumerate(written) if isinstance(each, Sync))
    *_, moment = replay({}, written[:before_its_sync])
    return dict(moment.draw(random.Random(0)).files)


@contextlib.contextmanager
def staged(folder: Path, name: str, fault: Fault | None = None) -> Iterator[Stage]:
    """Give the stage of one script, on a folder that is watched; whatever is open afterwards is closed.

    Args:
        folder: empty, or what it holds is removed.
        name: which script.
        fault: what fails.
    """
    files = start(SCRIPTS[name].start)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    lay(folder, files)
    tape = Tape(files, fault)
    stage = Stage(folder, tape)
    with Shim(folder, tape):
        try:
            yield stage
        finally:
            stage.close()


def record(folder: Path, name: str) -> Tape:
    """Play a script and return what happened; an error that it was told ends it, and stands on the tape."""
    with staged(folder, name) as stage:
        try:
            SCRIPTS[name].play(stage)
        except CounterfoilError as error:
            stage.tape.ended = f"{type(error).__name__}: {error}"
    return stage.tape
