"""Nothing piles up: no memory over many calls, no thread, connection or file over many cancelled ones."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.databases import MEMORY

import counterfoil
from counterfoil.domain.audit import audit

CALLS = 100_000 if os.environ.get("COUNTERFOIL_NIGHTLY") else 2_000
WARM_UP_CALLS = 1_500
"""Until the pages that SQLite keeps at hand are all there."""
GROWTH_MAX = 0.05
CANCELLED = 1_000
ASYNCIO_THREADS = 40
"""An event loop's own pool may grow to this, whatever is cancelled; a leak would be one for each call."""
SECONDS_MAX = 1_800
LEAKED_BYTES = 1_500
"""What the planted leak keeps of each call."""

_MANY = """
import asyncio, gc, os, sys
from counterfoil.lab.bench.subject import Subject

store, way, warm_up, calls, kept = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
subject, leaked = Subject(store), []

async def awaited(count):
    for _ in range(count):
        await subject.acall()

def called(count):
    for _ in range(count):
        subject.call()
        if kept:
            leaked.append(os.urandom(kept))

def resident():
    gc.collect()
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1])

def lost(count):
    for _ in range(count):
        subject.lose()

run = {"blocking": called, "asyncio": lambda count: asyncio.run(awaited(count)), "lost": lost}[way]
run(warm_up)
before = resident()
run(calls)
print(resident() / before - 1)
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells a process its size")


@pytest.fixture
def path(tmp_path) -> Iterator[str]:
    """Where a file of this test stands: in memory, where nobody waits for a disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else tmp_path) as folder:
        yield str(Path(folder, "receipts.db"))


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request) -> str:
    """Where receipts of this test stand: a file, or a database."""
    if request.param == "sqlite":
        return request.getfixturevalue("path")
    return request.getfixturevalue("postgres").book()


def growth(store: str, way: str, *, kept: int = 0) -> float:
    """By which part a process grows over many guarded calls, after its first ones."""
    arguments = [store, way, *map(str, (WARM_UP_CALLS, CALLS, kept))]
    run = subprocess.run(
        [sys.executable, "-c", _MANY, *arguments], capture_output=True, text=True, check=True, timeout=SECONDS_MAX
    )
    return float(run.stdout)


@pytest.mark.slow
@needs_proc
@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("way", ["blocking", "asyncio", "lost"])
def test_many_calls_take_no_more_memory_than_few(store, way):
    """What a call needed is given back: a process that runs for months does not grow."""
    assert growth(store, way) < GROWTH_MAX


@pytest.mark.slow
@needs_proc
@pytest.mark.timeout(SECONDS_MAX)
def test_a_leak_is_seen(path):
    """The measure is fine enough for a kilobyte or so per call."""
    assert growth(path, "blocking", kept=LEAKED_BYTES) > GROWTH_MAX


def open_things() -> tuple[int, int, int]:
    """How many threads and files this process has, and tasks its event loop."""
    return threading.active_count(), sum(1 for _ in Path("/proc/self/fd").iterdir()), len(asyncio.all_tasks())


@pytest.mark.slow
@needs_proc
def test_cancelled_callers_leave_nothing_open(store, monkeypatch):
    """A thousand callers give up, each at another moment: no thread, connection, file or task is left of any."""
    connected = []
    for driver in (sqlite3, psycopg):
        monkeypatch.setattr(driver, "connect", _noted(driver.connect, connected))
    with contextlib.closing(counterfoil.open(store, actor="agent:a")) as ledger:

        @ledger.action(key=lambda order: order, owner="o", authoriser="a")
        async def pay(order):
            await asyncio.sleep(0)

        async def cancelled():
            await pay("first")
            before, made = open_things(), len(connected)
            for number in range(CANCELLED):
                call = asyncio.create_task(pay(f"o{number}"))
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            await pay("last")
            left = [now - then for now, then in zip(open_things(), before, strict=True)]
            return *left, len(connected) - made

        threads, files, tasks, connections = asyncio.run(cancelled())
        assert threads <= ASYNCIO_THREADS
        assert (tasks, connections) == (0, 0)
        assert files <= 1  # the reading connection's, at the most
        for history in ledger.store.histories():
            assert audit(history) == ()


def _noted(connect, connected):
    def noted(*args, **kwargs):
        connected.append(None)
        return connect(*args, **kwargs)

    return noted
