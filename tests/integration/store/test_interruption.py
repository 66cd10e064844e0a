"""Ctrl+C anywhere in the thread that leads: nobody hangs, nothing is lost, nothing is written twice."""

from __future__ import annotations

import contextlib
import dis
import itertools
import sys
import threading
from pathlib import Path

import pytest
from tests.integration.store.commands import claim, evidence, faults, note, observe, settle

from counterfoil.domain.command import Claimed
from counterfoil.store import commit, sqlite
from counterfoil.store.commit import Job
from counterfoil.store.sqlite import SqliteStore

STORE = str(Path(commit.__file__).parent)


class Interruption:
    """Raises KeyboardInterrupt in this thread at the so-and-so-many-th place in the store's code where a signal can.

    CPython runs signal handlers after calls, at the start of functions and at backward jumps, and nowhere else: an
    exception between a body and its lock's release, say, cannot come.
    """

    def __init__(self, at):
        self.left, self.where = at, ""

    def __enter__(self):
        sys.settrace(self.enter)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def enter(self, frame, event, arg):
        """Watch each instruction of the store's own functions, and of nothing else."""
        if not frame.f_code.co_filename.startswith(STORE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code, before = frame.f_code.co_code, "RESUME"

        def step(frame, event, arg):
            nonlocal before
            if event == "opcode":
                now = dis.opname[code[frame.f_lasti]]
                called = "CALL" in before and not now.startswith("CALL")
                if called or before == "RESUME" or "BACKWARD" in before:
                    self.count(frame)
                before = now
            return step

        return step

    def count(self, frame):
        """Count down, once."""
        self.left -= 1
        if self.left == 0:
            self.where = f"{frame.f_code.co_name}:{frame.f_lineno}"
            sys.settrace(None)
            raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def always_the_same_way(monkeypatch):
    """No step depends on the clock, so that counting reaches each: nobody sleeps, the file is always looked at."""
    monkeypatch.setattr(commit, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(sqlite, "STANDS_SECONDS", -1.0)


def queue(store, command):
    """A follower that sleeps, as its caller would leave it."""
    job = Job(command)
    job.wait = threading.Lock()
    job.wait.acquire()
    store._commit._queue.append(job)
    return job


class Loop:
    """An event loop that only hears that somebody is to be told."""

    def __init__(self):
        self.heard = []

    def call_soon_threadsafe(self, call, jobs):
        """As a real one is called."""
        self.heard += jobs


def queue_task(store, command):
    """A task that waits in an event loop."""
    job = Job(command)
    job.loop = Loop()
    store._commit._queue.append(job)
    return job


def shortfalls(store, jobs, interrupted):
    """What an interruption broke, once the next caller has written."""
    mine, raised = interrupted
    found = [f"{job.command.id} unanswered" for job in jobs if not (job.done and isinstance(job.reply, Claimed))]
    found += [f"{job.command.id} untold" for job in jobs if job.loop and job not in job.loop.heard]
    for command in [job.command for job in jobs if job.done]:
        found += faults(store.load(command.id))
    intent = mine.intent
    stands = store.find(intent.tenant, intent.actor, intent.action, intent.key)
    if not raised and stands is None:
        found.append("acknowledged and not there")
    if stands is not None and len(stands.events) != 1:
        found.append("written twice")
    if store._db.in_transaction or store._commit.lead.locked() or store._commit._queue:
        found.append("left something open")
    return found


@pytest.mark.slow
def test_an_interruption_at_any_instruction_leaves_the_store_whole(open_sqlite):
    """One after another, each instruction of a leader's way: whoever writes next finds everything decided."""
    store = open_sqlite()
    broken, raised, points = [], 0, itertools.count(1)
    for at in points:
        followers = [queue(store, claim()), queue_task(store, claim()), queue(store, claim())]
        mine, was_raised = claim(), False
        with Interruption(at) as interruption:
            try:
                store._commit.submit(mine)
            except KeyboardInterrupt:
                was_raised = True
        raised += was_raised
        store.write(claim())
        broken += [(at, interruption.where, fault) for fault in shortfalls(store, followers, (mine, was_raised))]
        if not interruption.where:
            break
    assert broken == []
    assert raised == at - 1 > 50


@pytest.mark.slow
def test_a_lone_callers_interruption_leaves_its_receipt_whole(open_sqlite):
    """A claim, its answer and late evidence, each interrupted everywhere: run again, each recognises itself."""
    store = open_sqlite()
    broken = []
    for kind in ("claim", "settle", "observe"):
        for at in itertools.count(1):
            first = claim()
            command = first
            if kind != "claim":
                reply = store.write(first)
                command = settle(first, reply) if kind == "settle" else observe(first.id, evidence())
            with Interruption(at) as interruption:
                try:
                    store._commit.submit(command)
                except KeyboardInterrupt:
                    store.write(command)
            history = store.load(first.id)
            if len(history.events) != (1 if kind == "claim" else 2) or faults(history):
                broken.append((kind, at, interruption.where))
            if not interruption.where:
                break
    assert broken == []


@pytest.mark.slow
def test_a_reader_that_is_interrupted_anywhere_spoils_no_later_one(open_sqlite):
    """The reading connection is usable after each, and holds neither its lock nor a snapshot."""
    store = open_sqlite()
    first, other = claim(), claim()
    store.write(first)
    store.write(other)
    for at in itertools.count(1):
        with Interruption(at) as interruption, contextlib.suppress(KeyboardInterrupt):
            store.load(first.id)
        store.write(note(other.id, "seen"))
        assert len(store.load(other.id).events) == at + 1, interruption.where
        assert not store._reading.locked()
        if not interruption.where:
            break


def test_what_two_interruptions_left_open_is_closed_by_the_next(open_sqlite):
    """Ctrl+C again while the first was being handled: whoever writes next, of either kind, begins anew."""
    store = open_sqlite()
    first = claim()
    for use in (
        lambda: store.write(first),
        lambda: store.execute("DELETE FROM worker"),
        lambda: store.write(note(first.id, "seen")),
    ):
        store._db.execute("BEGIN IMMEDIATE")
        use()
        assert not store._db.in_transaction
    assert len(store.load(first.id).events) == 2


def test_an_interrupted_batch_holds_no_lock(open_sqlite):
    """Wherever in the writing it came, nothing stays open: another process may write before anybody here does again."""
    store, seen = open_sqlite(), set()
    store.write(claim())  # the first write also learns the log's inode, so the later ones take fewer steps
    store.write(claim())
    for at in itertools.count(1):
        with Interruption(at) as interruption, contextlib.suppress(KeyboardInterrupt):
            store._write_batch([Job(claim())])
        assert not store._db.in_transaction, interruption.where
        seen.add(interruption.where)
        if not interruption.where:
            break
    for statement in ("BEGIN IMMEDIATE", "COMMIT"):
        lines = {i.positions.lineno for i in dis.get_instructions(SqliteStore._write_batch) if i.argval == statement}
        assert {f"_write_batch:{line}" for line in lines} & seen
