"""A process that has it hard: its clock steps, or its files may not grow; what runs in it knows nothing of that.

``python -m counterfoil.lab.hardship [--ahead SECONDS] [--step SECONDS] [--file-bytes N] MODULE ARGUMENT ...`` runs a
module as if by ``python -m``, and ends it by SIGTERM when its standard input ends: it outlives nobody. The clock steps
when the process gets the signal `STEP`.
"""

from __future__ import annotations

import argparse
import os
import resource
import runpy
import signal
import sys
import time
from collections.abc import Callable, Sequence

from counterfoil.lab.tether import on_parent_gone

STEP = signal.SIGUSR1
"""Tells a process whose clock may step that it does so now."""


class WrongClock:
    """A clock like another one, wrong from the beginning and once more when it steps.

    Args:
        clock: the right one.
        ahead: seconds by which it is ahead from the beginning; negative: behind.
        step: seconds by which it jumps; negative: back.
    """

    def __init__(self, clock: Callable[[], float], *, ahead: float, step: float) -> None:
        self._clock, self._wrong, self._step = clock, ahead, step

    def __call__(self) -> float:
        """What time it says it is."""
        return self._clock() + self._wrong

    def jump(self) -> None:
        """Step, once."""
        self._wrong, self._step = self._wrong + self._step, 0.0


def arguments(*, ahead: float = 0.0, step: float = 0.0, file_bytes: int | None = None) -> list[str]:
    """The words that run a module under these hardships; the module's name and arguments follow."""
    words = [__name__]
    if ahead or step:
        words += [f"--ahead={ahead}", f"--step={step}"]
    if file_bytes is not None:
        words += [f"--file-bytes={file_bytes}"]
    return words


def main(given: Sequence[str] | None = None) -> None:
    """Set the hardships up, then run the module in this process."""
    parser = argparse.ArgumentParser(prog="counterfoil.lab.hardship", description=__doc__, allow_abbrev=False)
    parser.add_argument("--ahead", type=float, default=0.0, help="seconds by which the clock is wrong")
    parser.add_argument("--step", type=float, default=0.0, help="seconds by which it steps")
    parser.add_argument("--file-bytes", type=int, help="no file may grow beyond this")
    parser.add_argument("module")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    asked = parser.parse_args(given)
    on_parent_gone(lambda: os.kill(os.getpid(), signal.SIGTERM))
    if asked.ahead or asked.step:
        # Before anything of the product is imported: whoever asks this process what time it is hears the same.
        clock = WrongClock(time.time, ahead=asked.ahead, step=asked.step)
        signal.signal(STEP, lambda _number, _frame: clock.jump())
        time.time = clock
    if asked.file_bytes is not None:
        # Python ignores SIGXFSZ, so that a write beyond the limit fails as it does on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked.file_bytes, resource.RLIM_INFINITY))
    sys.argv = [asked.module, *asked.rest]
    runpy.run_module(asked.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
