"""Refused repetitions: counted for nothing, written in batches, and never the reason why an answer fails."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter

import pytest

from counterfoil.domain.command import Counted
from counterfoil.domain.errors import StoreBusy
from counterfoil.runtime.refusals import BATCH_MAX, BATCH_SECONDS, Refusals


class Book:
    """A store that adds batches up, and is busy when it is told to be."""

    def __init__(self):
        self.batches, self.busy, self.time, self.interrupts = [], False, 100.0, 0

    def now(self):
        return self.time

    def write(self, command):
        if self.busy:
            raise StoreBusy("busy")
        if command not in self.batches:  # a batch is known by its time
            self.batches.append(command)
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        return Counted()

    def counts(self):
        total = Counter()
        for batch in self.batches:
            total.update(dict(batch.counts))
        return dict(total)


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def book():
    return Book()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def refusals(book, clock):
    return Refusals(book, clock=clock)


def test_nothing_is_written_before_it_is_time(refusals, book):
    """One less than a batch is counted in memory alone; the one that fills it writes all of them, in one command."""
    for n in range(BATCH_MAX - 1):
        refusals.note(n % 3)
    assert book.batches == []
    refusals.note(0)
    assert len(book.batches) == 1
    assert sum(book.counts().values()) == BATCH_MAX


def test_a_batch_waits_no_longer_than_it_says(refusals, book, clock):
    """The first call after the time has passed writes what was counted before it, and itself."""
    refusals.note(1)
    clock.seconds = BATCH_SECONDS - 0.01
    refusals.note(1)
    assert book.batches == []
    clock.seconds = BATCH_SECONDS
    refusals.note(2)
    assert book.counts() == {1: 2, 2: 1}
    clock.seconds += 0.01
    refusals.note(2)
    assert len(book.batches) == 1  # the next batch has its own time


def test_closing_writes_what_is_left(refusals, book):
    """And nothing where nothing is counted."""
    refusals.flush()
    assert book.batches == []
    refusals.note(7)
    refusals.flush()
    refusals.flush()
    assert book.counts() == {7: 1}


def test_a_busy_store_loses_no_count(refusals, book):
    """The answer is given all the same; the counts wait for the next batch, and the store is not asked at each call."""
    book.busy = True
    for _ in range(BATCH_MAX):
        refusals.note(1)
    refusals.note(2)
    book.busy = False
    refusals.note(2)
    assert book.batches == []
    refusals.flush()
    assert book.counts() == {1: BATCH_MAX, 2: 2}


def test_an_interruption_counts_once(refusals, book):
    """Ctrl+C after the commit: the same batch is written again as it is, and is known again."""
    refusals.note(1)
    book.interrupts = 1
    with pytest.raises(KeyboardInterrupt):
        refusals.flush()
    refusals.note(1)
    refusals.flush()
    assert book.counts() == {1: 2}


def test_two_batches_never_share_their_time(refusals, book):
    """A clock that stands still gives each batch a time of its own: by it a batch is known."""
    for _ in range(3):
        refusals.note(1)
        refusals.flush()
    assert len({batch.at for batch in book.batches}) == 3
    assert book.counts() == {1: 3}


def test_threads_lose_nothing(refusals, book):
    """Eight threads that count and write at once come to the sum of their calls."""

    def count():
        for n in range(1_000):
            refusals.note(n % 5)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refusals.flush()
    assert book.counts() == dict.fromkeys(range(5), 1_600)


def test_an_event_loop_does_not_wait(refusals, book):
    """The batch that an awaited call fills is written in another thread."""
    written_in = []
    write = book.write
    book.write = lambda command: (written_in.append(threading.current_thread()), write(command))[1]

    async def count():
        for _ in range(BATCH_MAX):
            await refusals.anote(3)

    asyncio.run(count())
    assert book.counts() == {3: BATCH_MAX}
    assert written_in != [threading.main_thread()]


@pytest.mark.parametrize("ask", ["count", "flush"])
def test_a_child_counts_its_own(refusals, book, monkeypatch, ask):
    """What the parent counted before a fork is the parent's to write, whatever its locks were doing."""
    refusals.note(1)
    refusals._guard.acquire()
    refusals._writing.acquire()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    getattr(refusals, ask)(*([2] if ask == "count" else []))
    refusals.flush()
    assert book.counts() == ({2: 1} if ask == "count" else {})
