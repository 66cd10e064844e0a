"""How a peer is driven: one JSON object a line on standard input, one answer a line on standard output.

====================================================  ====================================================
``{"do": "block", "calls": 16}``                      ``{"durations": [seconds, ...]}``, one caller
``{"do": "load", "callers": 64, "seconds": 2.0}``     ``{"per_second": rate}``, that many callers at once
====================================================  ====================================================

The first line is the peer's own: ``{"version": ..., "way": "tasks" | "threads"}``. It ends when its input does. These
programs run in the peer's environment, and import nothing of the project.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TextIO

AMOUNT, CURRENCY, MEMO = 1000, "usd", "m" * 185
"""What every subject of the benchmark is called with, beside a key of its own."""
RESULT = {"id": "ch_123", "status": "ok", "echo": "e" * 100}
"""And what it returns: the provider costs nothing."""

Call = Callable[[str], Any]
AsyncCall = Callable[[str], Awaitable[Any]]


def key() -> str:
    """The key of one more call."""
    return f"order-{uuid.uuid4().hex[:20]}"


def own_output() -> TextIO:
    """Where the answers go; whatever a library prints goes to the error stream instead."""
    mine = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return mine


def serve(package: str, answers: TextIO, *, call: Call | None = None, acall: AsyncCall | None = None) -> None:
    """Answer until the input ends.

    Args:
        package: whose version is told.
        answers: from `own_output`.
        call: one blocking call; where it is given, it is what one caller alone uses.
        acall: one awaited call; where it is given, it is what many callers use, as tasks of one loop.
    """
    with asyncio.Runner() as runner:
        tell(answers, version=importlib.metadata.version(package), way="tasks" if acall else "threads")
        for line in sys.stdin:
            asked = json.loads(line)
            if asked["do"] == "block":
                found = block(call, asked["calls"]) if call else runner.run(ablock(acall, asked["calls"]))
                tell(answers, durations=found)
            elif acall:
                tell(answers, per_second=runner.run(tasks(acall, asked["callers"], asked["seconds"])))
            else:
                tell(answers, per_second=threads(call, asked["callers"], asked["seconds"]))


def tell(answers: TextIO, **said: Any) -> None:  # noqa: ANN401
    """Write one answer."""
    answers.write(json.dumps(said) + "\n")
    answers.flush()


def block(call: Call, calls: int) -> list[float]:
    """Make that many calls, one after another."""
    durations = []
    for _ in range(calls):
        start = time.perf_counter()
        call(key())
        durations.append(time.perf_counter() - start)
    return durations


async def ablock(acall: AsyncCall, calls: int) -> list[float]:
    """The same, awaited."""
    durations = []
    for _ in range(calls):
        start = time.perf_counter()
        await acall(key())
        durations.append(time.perf_counter() - start)
    return durations


async def tasks(acall: AsyncCall, callers: int, seconds: float) -> float:
    """Calls per second of that many tasks that do nothing else."""
    done = 0
    start = time.perf_counter()

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < start + seconds:
            await acall(key())
            done += 1

    await asyncio.gather(*(caller() for _ in range(callers)))
    return done / (time.perf_counter() - start)


def threads(call: Call, callers: int, seconds: float) -> float:
    """Calls per second of that many threads that do nothing else; the first error of any is raised."""
    done, errors = [0] * callers, []
    start = time.perf_counter()

    def caller(number: int) -> None:
        try:
            while time.perf_counter() < start + seconds and not errors:
                call(key())
                done[number] += 1
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that answers
            errors.append(error)

    started = [threading.Thread(target=caller, args=(number,), daemon=True) for number in range(callers)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]
    return sum(done) / (time.perf_counter() - start)
