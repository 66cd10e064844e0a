"""How long the event loop is held up while another process holds the store's write lock for a second."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from counterfoil.lab.bench.subject import Subject

HOLD_SECONDS = 1.0
TICK_SECONDS = 0.001
_HOLDER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
db.execute("ROLLBACK")
"""


def lag_p99_ms(subject: Subject) -> float:
    """Measure the 99th percentile of the loop's lateness, in milliseconds, with calls waiting for the lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(subject.store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None and holder.stdin is not None  # noqa: S101, PT018 - both are pipes
        holder.stdout.readline()
        return asyncio.run(_measure(subject, holder.stdin.close))
    finally:
        if holder.stdin is not None and not holder.stdin.closed:
            holder.stdin.close()
        holder.wait(timeout=30)


async def _measure(subject: Subject, release: Callable[[], object]) -> float:
    callers = [asyncio.create_task(subject.acall()) for _ in range(8)]
    late: list[float] = []
    end = time.perf_counter() + HOLD_SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        late.append((time.perf_counter() - start - TICK_SECONDS) * 1e3)
    release()
    await asyncio.gather(*callers)
    return statistics.quantiles(late, n=100)[98]
