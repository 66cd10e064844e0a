"""The three accidents after which retry layers send again: what befalls a worker's first request, and its first life.

The effect has happened in each of them; what differs is how the worker learns that it does not know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab.ground_truth import EFFECTS
from counterfoil.lab.journal import read
from counterfoil.lab.processes import Child
from counterfoil.lab.watch import reached, wait_for

COMMIT_SECONDS_MAX = 20.0
"""How long the provider's commit is waited for before the kill; it takes well under a second."""


class Accident(NamedTuple):
    """What befalls the first request of a case."""

    behaviour: str
    """The provider's, towards that request; the effect has happened in each."""
    killed: bool
    waits: bool
    """The worker is started again only after every mark, deadline and time-out has passed."""
    told: str

    @property
    def rule(self) -> Mapping[str, Any]:
        """The fault the provider is started with, whichever of its routes is used."""
        return {"behaviour": self.behaviour, "nth": [1]}


ACCIDENTS: Mapping[str, Accident] = {
    "T": Accident("lose_reply", killed=False, waits=False, told="reply lost, the tool reports an error"),
    "K": Accident("hang", killed=True, waits=False, told="killed after the commit, started again at once"),
    "L": Accident("hang", killed=True, waits=True, told="the same, started again after every deadline"),
}


def committed(worker: Child, folder: Path, seconds_max: float = COMMIT_SECONDS_MAX) -> bool:
    """Wait until the provider has committed a first effect or the worker has ended, and say whether it committed.

    Args:
        worker: in its first life; it cannot have heard an answer, for there is none.
        folder: where the provider writes what it did.
        seconds_max: the most that is waited.
    """
    effects = folder / EFFECTS
    reached(lambda: bool(read(effects)) or not worker.running, seconds_max)
    return bool(read(effects))


def let_pass(accident: Accident, over: Callable[[], float], seconds_max: float) -> float:
    """Leave a killed worker dead for as long as the accident says; return how long that was, in seconds.

    Args:
        accident: says whether anything is waited for.
        over: when, in seconds since the epoch, the last of all that was promised of the worker has passed.
        seconds_max: the most that is waited.
    """
    killed_at = time.monotonic()
    if accident.waits:
        until = over()
        wait_for("the passing of every deadline", lambda: time.time() > until, seconds_max)
    return time.monotonic() - killed_at
