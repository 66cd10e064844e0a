"""Waiting for what other processes write: a condition watched, never a sleep in its place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from counterfoil.lab.failure import RunFailed

POLL_SECONDS = 0.002
"""Between two looks at the condition: a kill that is aimed at a send of some 40 ms must not come late."""


def reached(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds and say whether it did within so many seconds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(POLL_SECONDS)
    return True


def wait_for(what: str, condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds.

    Args:
        what: the condition in words, for the error.
        condition: asked again and again.
        seconds: the most that is waited.

    Raises:
        RunFailed: it did not come to hold.
    """
    if not reached(condition, seconds):
        raise RunFailed(f"{what} did not happen within {seconds:g} seconds")


class Tail:
    """A journal that another process is writing, read on from where it was read last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def more(self) -> list[dict[str, Any]]:
        """The whole lines that were added since."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole = file.read().rpartition(b"\n")[0]
        if not whole:
            return []
        self._offset += len(whole) + 1
        return [json.loads(line) for line in whole.split(b"\n")]
