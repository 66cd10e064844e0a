"""Children that do a share of a run and tell it in lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from counterfoil.lab import tether
from counterfoil.lab.processes import STOP_SECONDS
from counterfoil.lab.sabotage import command


def cores() -> int:
    """How many shares may run at once."""
    return os.cpu_count() or 1


def told_by(sabotage: str | None, module: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """Run one module and give each of its lines as it comes; it is ended with whoever reads."""
    yield from told_by_all(sabotage, module, [arguments])


def told_by_all(
    sabotage: str | None, module: str, shares: Sequence[Sequence[str]], *, most: int | None = None
) -> Iterator[dict[str, Any]]:
    """Run one module several times at once and give each line as it comes.

    Args:
        sabotage: the rule that is turned off in each; None: none.
        module: run as by `python -m`.
        shares: the arguments of each.
        most: how many run at once; None: all of them.
    """
    waiting = deque(shares)
    with ExitStack() as house, selectors.DefaultSelector() as ready:
        while waiting or ready.get_map():
            while waiting and len(ready.get_map()) < (most or len(shares)):
                child = house.enter_context(_child(command(sabotage, module, *waiting.popleft())))
                ready.register(child.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
            for key, _ in ready.select():
                yield from _line(ready, key)


@contextlib.contextmanager
def pool() -> Iterator[ThreadPoolExecutor]:
    """Give threads that run as many shares at once; whoever stops half-way waits for those under way, and no others."""
    with ThreadPoolExecutor(max_workers=cores()) as threads:
        try:
            yield threads
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _child(argv: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a module on a tether, in a session of its own: it ends with this process, and tidies up when it does."""
    at = argv.index("-m") + 1
    child = subprocess.Popen(
        [*argv[:at], tether.__name__, *argv[at:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
        child.communicate()


def _line(ready: selectors.BaseSelector, key: selectors.SelectorKey) -> Iterator[dict[str, Any]]:
    line = key.fileobj.readline()  # type: ignore[union-attr]
    if line:
        yield json.loads(line)
    else:
        ready.unregister(key.fileobj)
