"""What keeps a laboratory process from outliving the one that started it: a pipe that ends when its parent does.

``python -m counterfoil.lab.tether MODULE ARGUMENT ...`` runs any module on such a tether.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from counterfoil.cli import exits

_READ_BYTES = 1024  # nothing is ever said over the pipe; only its end matters


def stop_event(*, parent_pipe: bool) -> threading.Event:
    """Return an event that is set by SIGTERM, by Ctrl+C and, with `parent_pipe`, by the end of standard input."""
    stop = threading.Event()

    def told(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, told)
    signal.signal(signal.SIGINT, told)
    if parent_pipe:
        on_parent_gone(stop.set)
    return stop


def on_parent_gone(act: Callable[[], object]) -> None:
    """Watch standard input from a thread of its own and act once when it ends."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), _READ_BYTES):
            pass
        act()

    threading.Thread(target=watch, name="parent-pipe", daemon=True).start()


def main() -> None:
    """Run a module as if by ``python -m``, and end it by SIGTERM when the parent is gone.

    Whoever tells it to end lets it tidy up: its temporary folders go with it.
    """
    on_parent_gone(lambda: os.kill(os.getpid(), signal.SIGTERM))
    sys.argv = sys.argv[1:]
    try:
        with exits.terminable():
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except exits.Terminated:
        os.kill(os.getpid(), signal.SIGTERM)  # nobody hears it any more: it ends as it was told to


if __name__ == "__main__":
    main()
