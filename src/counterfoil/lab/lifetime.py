"""One life of `counterfoil run` or `counterfoil worker`: the real command, in a process that knows of no laboratory."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from counterfoil.cli import exits
from counterfoil.lab import sabotage, tether
from counterfoil.lab.credential import ENVIRONMENT
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.processes import Child

CLI = "counterfoil.cli"
SECONDS_MAX = 240.0
"""One life to its end, of as many operations as may be asked for."""
ENDED = (0, 1)
"""How a run ends by itself: everything settled, or something not."""


def start_run(
    intents: Path, *, calls: int, wait_seconds: float, mutant: str | None, more: Sequence[str] = (),
    under: Sequence[str] = (),
) -> Child:  # fmt: skip
    """Start `counterfoil run` of a file.

    Args:
        intents: the file.
        calls: at once.
        wait_seconds: how long it may wait for what is unknown after its last line.
        mutant: a rule that is off in it, or None.
        more: further arguments of it.
        under: a module that runs it, with that one's arguments; default: one that lets it outlive nobody.
    """
    arguments = ("run", str(intents), "--concurrency", str(calls), "--wait", str(wait_seconds), "--json", *more)
    return start(arguments, mutant=mutant, under=under)


def start(arguments: Sequence[str], *, mutant: str | None, under: Sequence[str] = ()) -> Child:
    """Start the command line with these arguments; see `start_run`."""
    argv = sabotage.command(mutant, CLI, *arguments)
    at = argv.index("-m") + 1
    return Child([*argv[:at], *(under or (tether.__name__,)), *argv[at:]], env=ENVIRONMENT, ready_seconds=None)


def check_ended(child: Child, what: str, codes: Collection[int] = ENDED) -> int:
    """Wait until a life ends by itself and return its exit code.

    Raises:
        RunFailed: it does not, or ends in another way than it may.
    """
    try:
        code = child.wait(SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        raise RunFailed(f"{what} did not end by itself") from error
    if code not in codes:
        said = child.errors() or dict(exits.EXITS).get(code, "it said nothing")
        raise RunFailed(f"{what} ended with {code}: {said}")
    return code
