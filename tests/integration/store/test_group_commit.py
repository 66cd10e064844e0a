"""Group commit on a real file: one sync for everybody who queued meanwhile, and every command answered once."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading

import pytest
from tests.integration.store.commands import claim, settle

from counterfoil.domain.command import Claim, Claimed, Settle, Settled

CALLERS = 64
CALLS = 10
SECONDS = 30
"""How long a test waits for anything; a run needs milliseconds."""


def call(store):
    """One guarded call as the store sees it: a claim and its answer."""
    first = claim()
    reply = store.write(first)
    assert isinstance(reply, Claimed)
    assert isinstance(store.write(settle(first, reply)), Settled)
    return first.id


async def acall(store):
    """The same from an event loop."""
    first = claim()
    reply = await store.awrite(first)
    assert isinstance(reply, Claimed)
    assert isinstance(await store.awrite(settle(first, reply)), Settled)
    return first.id


@pytest.fixture
def counted(open_sqlite):
    """A store, and the list of its commits: with synchronous=FULL each is one sync of the log."""
    store = open_sqlite()
    commits = []
    store._db.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)
    return store, commits


def threads(store, ids, *, callers=CALLERS):
    """Start so many blocking callers; the caller joins them."""
    made = [threading.Thread(target=lambda: ids.extend(call(store) for _ in range(CALLS))) for _ in range(callers)]
    for thread in made:
        thread.start()
    return made


async def tasks(store, *, callers=CALLERS):
    """Run so many tasks to their end; return the ids of their calls."""

    async def one():
        return [await acall(store) for _ in range(CALLS)]

    return [i for ids in await asyncio.gather(*[one() for _ in range(callers)]) for i in ids]


def whole(store, ids):
    """Every acknowledged call stands there once, with both its events."""
    assert len(ids) == len(set(ids))
    histories = list(store.histories())
    assert sorted(h.operation.id for h in histories) == sorted(ids)
    assert {len(h.events) for h in histories} == {2}
    assert store.unresolved() == []


def test_one_caller_costs_two_commits_a_call(counted):
    """Receipt and answer are one durable commit each; nothing else is written."""
    store, commits = counted
    whole(store, [call(store) for _ in range(CALLS)])
    assert len(commits) == 2 * CALLS


def test_one_task_costs_two_commits_a_call(counted):
    """The same on an event loop."""
    store, commits = counted
    whole(store, asyncio.run(tasks(store, callers=1)))
    assert len(commits) == 2 * CALLS


@pytest.mark.slow
def test_sixty_four_threads_share_their_commits(counted):
    """Every command is answered once, and a call costs a small part of a commit."""
    store, commits = counted
    ids = []
    for thread in threads(store, ids):
        thread.join()
    whole(store, ids)
    assert len(ids) == CALLERS * CALLS
    assert len(commits) <= len(ids) / 4


@pytest.mark.slow
def test_sixty_four_tasks_share_their_commits(counted):
    """The same on an event loop."""
    store, commits = counted
    ids = asyncio.run(tasks(store))
    whole(store, ids)
    assert len(ids) == CALLERS * CALLS
    assert len(commits) <= len(ids) / 4


@pytest.mark.slow
def test_threads_and_event_loops_share_their_commits(counted):
    """Sixty-four threads and two loops of thirty-two tasks at once."""
    store, commits = counted
    ids = []
    loops = [threading.Thread(target=lambda: ids.extend(asyncio.run(tasks(store, callers=32)))) for _ in range(2)]
    for loop in loops:
        loop.start()
    for thread in [*threads(store, ids), *loops]:
        thread.join()
    whole(store, ids)
    assert len(ids) == 2 * CALLERS * CALLS
    assert len(commits) <= len(ids) / 4


@pytest.mark.slow
def test_two_openers_of_one_file_share_it(open_sqlite):
    """Two stores in one process, and so two connections, with threads on both: nobody is busy, nothing is lost."""
    stores = [open_sqlite(), open_sqlite()]
    ids = []
    running = [thread for store in stores for thread in threads(store, ids, callers=8)]
    for thread in running:
        thread.join()
    whole(stores[0], ids)


@pytest.mark.slow
def test_r55_cancelled_callers_leave_whole_receipts(open_sqlite, monkeypatch):
    """A thousand calls are cancelled somewhere: what is on record is whole, and nothing waits any more."""
    store = open_sqlite()
    awrite, asked = store.awrite, []

    def asking(command):
        asked.append(type(command))
        return awrite(command)

    monkeypatch.setattr(store, "awrite", asking)

    async def run():
        for settling in range(20):
            asked.clear()
            running = [asyncio.create_task(acall(store)) for _ in range(50)]
            # Every claim is on its way, and in each round one more of the answers at least.
            async with asyncio.timeout(SECONDS):
                while asked.count(Claim) < 50 or asked.count(Settle) < settling:  # noqa: ASYNC110 - a count
                    await asyncio.sleep(0)
            for task in running:
                task.cancel()
            results = await asyncio.gather(*running, return_exceptions=True)
            assert {type(r) for r in results} <= {str, asyncio.CancelledError}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
    histories = list(store.histories())
    assert len(histories) == 1000
    assert {len(h.events) for h in histories} <= {1, 2}


def test_the_event_loop_turns_while_another_process_holds_the_file(open_sqlite, path):
    """A task waits for the lock in another thread: the loop goes on and answers everybody else."""
    store = open_sqlite()
    store.write(claim())
    begun = threading.Event()
    store._db.set_trace_callback(lambda statement: begun.set() if statement == "BEGIN IMMEDIATE" else None)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")

        async def run():
            waiting = asyncio.create_task(acall(store))
            assert await asyncio.to_thread(begun.wait, SECONDS)  # the store asks for the lock
            for _ in range(1000):
                await asyncio.sleep(0)
            assert not waiting.done()
            other.rollback()
            return await waiting

        assert asyncio.run(run()) in {o.id for o in store.operations(limit=9)}
