"""A disk of a run's own that can be full: a small file system in memory where this machine lets one be mounted."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from counterfoil.cli.terminal import note
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.run_folder import STORE

TMPFS_BYTES = 64 << 20
"""Many times what the receipts of a run take, and little enough to be filled in a moment."""
SOURCE = "counterfoil-lab-"
"""How the file system of a run is called; the run's process id follows."""
MOUNTS = Path("/proc/self/mounts")
MOUNT_SECONDS_MAX = 10.0
BUSY_SECONDS = 2.0
"""How long somebody else's transaction is waited for; a stopped process may have one open."""
BALLAST = "ballast"
FILL_BYTES = 1 << 20
"""What is written at once to fill the disk."""


class Full(StrEnum):
    """How a disk comes to be full."""

    TMPFS = "tmpfs"
    """It is: a file system of its own, of which the last byte is taken."""
    RLIMIT = "rlimit"
    """One process's files may not grow any more; what it writes fails as on a full disk."""
    NONE = "none"
    """It never is."""


class Disk:
    """Where the receipts of a run stand meanwhile.

    Args:
        folder: where they stand.
        full: how it can be filled.
    """

    def __init__(self, folder: Path, full: Full) -> None:
        self.folder, self.full = folder, full
        self.store = folder / STORE
        """The receipts of a run."""
        self.named = str(self.store)
        """As its workers know them."""

    def fill(self, left: int) -> None:
        """Take every byte but so many; anything written by anybody beyond them fails."""
        stands = os.statvfs(self.folder)
        amount = stands.f_bavail * stands.f_frsize - left
        with contextlib.suppress(OSError), (self.folder / BALLAST).open("wb") as ballast:
            while amount > 0:
                amount -= ballast.write(bytes(min(FILL_BYTES, amount)))

    def free(self) -> None:
        """Give everything back."""
        (self.folder / BALLAST).unlink(missing_ok=True)


def empty_log(store: Path) -> None:
    """Bring everything out of a store's write-ahead log, so that the next commit needs room of its own again."""
    with contextlib.closing(sqlite3.connect(f"{store.as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def disk(home: Path, wanted: Full | None) -> Iterator[Disk]:
    """Give a disk, and bring what stands on it home in the end.

    Args:
        home: the run's folder.
        wanted: how it is to be filled; None: as well as this machine allows.

    Raises:
        RunFailed: it was to be a file system of its own, and this machine does not let one be mounted.
    """
    if wanted not in (None, Full.TMPFS):
        yield Disk(home, wanted)
        return
    _clear_up()
    folder = home / "disk"
    folder.mkdir()
    if not _mounted(folder):
        if wanted is Full.TMPFS:
            raise RunFailed(f"no file system can be mounted on {folder}: that takes root; --disk rlimit takes nothing")
        folder.rmdir()
        yield Disk(home, Full.RLIMIT)
        return
    try:
        yield Disk(folder, Full.TMPFS)
    finally:
        (folder / BALLAST).unlink(missing_ok=True)
        shutil.copytree(folder, home, dirs_exist_ok=True)
        _run("umount", str(folder))
        folder.rmdir()


def _mounted(folder: Path) -> bool:
    size = f"size={TMPFS_BYTES},mode=0700"
    return os.geteuid() == 0 and _run("mount", "-t", "tmpfs", "-o", size, f"{SOURCE}{os.getpid()}", str(folder))


def _clear_up() -> None:
    """Unmount what runs that were killed have left, and say so."""
    for line in MOUNTS.read_text("utf-8").splitlines() if MOUNTS.exists() else ():
        source, where, *_ = line.split(" ")
        if not source.startswith(SOURCE) or Path("/proc", source.removeprefix(SOURCE)).exists():
            continue  # somebody else's, or that of a run that lives
        folder = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), where)
        if _run("umount", folder):
            note(f"counterfoil-lab: unmounted {folder}, left by a run that was killed")


def _run(*command: str) -> bool:
    """Run a command of the system and say whether it did what it was told."""
    program = shutil.which(command[0])
    if program is None:
        return False
    try:
        run = subprocess.run([program, *command[1:]], capture_output=True, timeout=MOUNT_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0
