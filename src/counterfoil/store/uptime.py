"""The clock that nobody can set: how long this machine has been running, and which run of it that is."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from counterfoil.domain.steady import Steady

BOOT_HEX = 16
"""64 bits: no two boots that are written down in one file have the same."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"
NAMESPACE, OFFSETS = "/proc/self/ns/time", "/proc/self/timens_offsets"
"""A time namespace shifts this clock for those in it."""


class Clock(NamedTuple):
    """Which boot it is of, and how it is read."""

    boot: str
    read: Callable[[], float]


_clock: Clock | None = None
"""Of this process: looked for when it is first read, anew in a forked child."""


def uptime() -> Steady:
    """Read the clock; two readings are comparable where they name the same boot.

    On Linux that is every process of a machine, until it is booted again. Elsewhere it is this process alone: as
    sound, only less often of use.
    """
    global _clock  # noqa: PLW0603 - one per process, like what it reads
    if _clock is None:
        _clock = of_this_machine() or of_this_process()
    return Steady(_clock.boot, _clock.read())


def of_this_machine() -> Clock | None:
    """The kernel's own name and clock of this boot, which goes on while the machine is suspended; None without them."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    try:
        named = Path(BOOT_ID).read_text(encoding="ascii")
    except OSError:
        return None
    with contextlib.suppress(OSError):  # a kernel without such namespaces has one clock for all
        named += f"{Path(NAMESPACE).readlink()}\n{Path(OFFSETS).read_text(encoding='ascii')}"
    return Clock(_opaque(named.encode()), _boottime)


def of_this_process() -> Clock:
    """A clock that nobody else's readings are compared with."""
    return Clock(_opaque(os.urandom(BOOT_HEX)), time.monotonic)


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _opaque(named: bytes) -> str:
    return hashlib.sha256(named).hexdigest()[:BOOT_HEX]


def _forget() -> None:
    """A forked child may stand in another time namespace."""
    global _clock  # noqa: PLW0603 - likewise
    _clock = None


os.register_at_fork(after_in_child=_forget)
