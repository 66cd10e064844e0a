"""Processes that lost their parent and became this one's: what a command of somebody else's left running.

Linux hands an orphan to the nearest ancestor that asks for it, in whatever session or group it is. Elsewhere nobody can
ask, and none is ever seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from counterfoil.lab.watch import reached

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_PROCESSES = Path("/proc")


class Orphan(NamedTuple):
    """One process that was left behind."""

    pid: int
    name: str

    def __str__(self) -> str:
        """As a person looks for it."""
        return f"{self.name} ({self.pid})"


def adopt() -> frozenset[int]:
    """Be the parent of every orphan that comes of this process's children from now on; return those it has already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return frozenset(pid for pid, _, _ in _children())


def left_behind(known: Collection[int]) -> list[Orphan]:
    """Every process that is this one's child, still runs, and was neither started here nor here before.

    Args:
        known: pids of those that were, and were not waited for.
    """
    return [Orphan(pid, name) for pid, name, ended in _children() if pid not in known and not _buried(pid, ended=ended)]


def kill_all(known: Collection[int], seconds: float) -> bool:
    """End every orphan, and those that become one by that; say whether none is left.

    Args:
        known: see `left_behind`.
        seconds: how long that may take.
    """

    def none_left() -> bool:
        left = left_behind(known)
        for orphan in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan.pid, signal.SIGKILL)
        return not left

    return reached(none_left, seconds)


def _children() -> Iterator[tuple[int, str, bool]]:
    """Pid, name and whether it has ended, of every child."""
    for stat in _PROCESSES.glob("[0-9]*/stat"):
        try:
            before, _, after = stat.read_text("utf-8", "replace").rpartition(")")
        except OSError:
            continue  # it is gone meanwhile
        pid, _, name = before.partition(" (")
        state, parent, *_ = after.split()
        if int(parent) == os.getpid():
            yield int(pid), name, state == "Z"


def _buried(pid: int, *, ended: bool) -> bool:
    """Ask how an orphan ended, so that it goes; its number is nobody's before that."""
    if ended:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return ended
