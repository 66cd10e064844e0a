"""After a fork parent and child both have the book, and neither has the other's connections, queue or locks."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import selectors
import signal
import subprocess
import sys
import threading
import warnings

import pytest
from tests.integration.store.commands import claim, faults, settle

import counterfoil
from counterfoil.domain.command import Claimed, Collision
from counterfoil.domain.words import Outcome
from counterfoil.store.forking import FORKS
from counterfoil.store.sqlite import SqliteStore

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12: of threads and forks
PATIENT = 20.0


def claimed(store):
    """A new claim, drawn again where parent and child drew the same number."""
    while True:
        wanted = claim()
        reply = store.write(wanted)
        if not isinstance(reply, Collision):
            assert isinstance(reply, Claimed)
            return wanted, reply


def in_child(work):
    """Fork; what the child's work returns as JSON, or an error. A child that hangs is killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        except BaseException as error:  # noqa: BLE001 - a child of the test runner must end here
            os.write(writing, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said, selectors.DefaultSelector() as selector:
        selector.register(said, selectors.EVENT_READ)
        heard = said.read() if selector.select(PATIENT) else b'"it hangs"'
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return json.loads(heard)


def whole(path, ids):
    """Exactly these operations stand there, each whole."""
    with contextlib.closing(SqliteStore(path)) as store:
        histories = list(store.histories())
    assert [fault for history in histories for fault in faults(history)] == []
    assert sorted(history.operation.id for history in histories) == sorted(ids)


def test_nothing_is_open_while_a_fork_happens(open_sqlite):
    """The child inherits neither a connection nor a lock that somebody held: there is nothing to use or to close."""
    store = open_sqlite()
    first, _ = claimed(store)
    store.load(first.id)

    def work():
        return [store._db is None, store._reader is None, store._commit.lead.locked(), store._reading.locked()]

    assert in_child(work) == [True, True, False, False]
    assert not store._commit.lead.locked()
    assert not store._reading.locked()


def test_parent_and_child_both_write_and_read(open_sqlite, path):
    """The same store object goes on in both, and each reads what the other wrote."""
    store = open_sqlite()
    first, reply = claimed(store)

    def work():
        store.write(settle(first, reply))
        other, _ = claimed(store)
        store.close()
        return other.id

    theirs = in_child(work)
    assert store.load(first.id).operation.outcome is Outcome.SUCCEEDED
    assert store.load(theirs).operation.unresolved == 1
    mine, _ = claimed(store)
    store.close()
    whole(path, [first.id, theirs, mine.id])


def test_the_parents_commits_survive_its_children(open_sqlite, path):
    """Children that open, write and close beside a parent that goes on: every acknowledged commit is there."""
    store = open_sqlite()
    ids = []

    def work():
        mine = [claimed(store)[0].id for _ in range(3)]
        store.close()
        return mine

    for _ in range(10):
        ids += in_child(work)
        ids += [claimed(store)[0].id for _ in range(3)]
    store.close()
    whole(path, ids)


@pytest.mark.slow
def test_a_fork_while_threads_lead_hangs_neither_side(open_sqlite, path):
    """Sixteen threads commit while the process forks again and again: no deadlock, nothing lost, in parent or child."""
    store = open_sqlite()
    over, ids = threading.Event(), []

    def hurry():
        while not over.is_set():
            ids.append(claimed(store)[0].id)

    threads = [threading.Thread(target=hurry) for _ in range(16)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        theirs = in_child(lambda: [claimed(store)[0].id for _ in range(3)])
        assert theirs != "it hangs"
        ids.extend(theirs)
    over.set()
    for thread in threads:
        thread.join(PATIENT)
        assert not thread.is_alive()
    store.close()
    whole(path, ids)


@pytest.mark.slow
def test_a_fork_while_others_open_the_file_loses_nothing(path):
    """Threads open, write and close while the process forks: no connection is born unseen across a fork."""
    over, ids = threading.Event(), []

    def open_and_close():
        while not over.is_set():
            with contextlib.closing(SqliteStore(path)) as store:
                ids.append(claimed(store)[0].id)

    threads = [threading.Thread(target=open_and_close) for _ in range(4)]
    for thread in threads:
        thread.start()

    def work():
        with contextlib.closing(SqliteStore(path)) as store:
            return [claimed(store)[0].id for _ in range(3)]

    for _ in range(20):
        theirs = in_child(work)
        assert isinstance(theirs, list), theirs
        ids.extend(theirs)
    over.set()
    for thread in threads:
        thread.join(PATIENT)
        assert not thread.is_alive()
    whole(path, ids)


def test_only_what_was_stilled_is_woken(open_sqlite):
    """A store that appears between the two halves of a fork keeps the locks its own threads hold."""
    store = open_sqlite()
    FORKS.before()
    late = object.__new__(SqliteStore)
    FORKS.add(late)  # as another thread's store would be, if the guard did not keep it out
    try:
        FORKS.after_in_parent()
    finally:
        FORKS._live.discard(late)
    assert not store._commit.lead.locked()
    assert not FORKS.opening.locked()
    claimed(store)


def test_two_forks_of_two_stores_do_not_wait_for_each_other(open_sqlite, tmp_path):
    """Two threads fork at once over two stores: both go through."""
    stores = [open_sqlite(), SqliteStore(tmp_path / "second.db")]
    answers = []
    threads = [threading.Thread(target=lambda: answers.extend(in_child(lambda: 1) for _ in range(5))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
        assert not thread.is_alive()
    assert answers == [1] * 10
    for store in stores:
        claimed(store)
    stores[1].close()


def test_a_store_that_was_closed_and_wrote_again_is_protected_too(open_sqlite, path):
    """A late answer opened it anew: a fork closes it like any other."""
    store = open_sqlite()
    store.close()
    first, _ = claimed(store)
    assert in_child(lambda: store._db is None) is True
    whole(path, [first.id])


def test_a_grandchild_writes_too(open_sqlite, path):
    """A fork of a fork is a fork."""
    store = open_sqlite()

    def work():
        mine = claimed(store)[0].id
        return [mine, in_child(lambda: claimed(store)[0].id)]

    ids = in_child(work)
    store.close()
    whole(path, ids)


def _work(store, results):
    results.put(claimed(store)[0].id)


@pytest.mark.slow
def test_multiprocessing_by_fork_shares_the_book(open_sqlite, path):
    """A pool of forked workers writes through the store it inherited."""
    store = open_sqlite()
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    workers = [context.Process(target=_work, args=(store, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    ids = [results.get() for _ in workers]
    for worker in workers:
        worker.join(PATIENT)
    store.close()
    whole(path, ids)


def test_a_fork_that_python_did_not_see_is_refused(path):
    """C code forked: the child holds copies of connections it must not use, so every use is refused there."""
    script = f"""
import ctypes, os
from counterfoil.store.sqlite import SqliteStore
from counterfoil.domain.errors import StoreUnsafe
store = SqliteStore({str(path)!r})
pid = ctypes.CDLL(None).fork()
if pid == 0:
    for use in (store.unresolved, lambda: store.write(None), lambda: store.execute("DELETE FROM worker")):
        try:
            use()
        except StoreUnsafe as error:
            assert "did not see" in str(error)
        else:
            os._exit(3)
    os._exit(0)
_, code = os.waitpid(pid, 0)
store.unresolved()
os._exit(os.waitstatus_to_exitcode(code))
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=PATIENT, check=False).returncode == 0


@pytest.mark.slow
def test_a_ledger_works_in_parent_and_child_after_a_fork(path):
    """A guarded call in each: two effects, two receipts, two workers; and one key is one effect across both."""
    sent = []
    with warnings.catch_warnings(), counterfoil.open(path, actor="user:a") as ledger:

        @ledger.action(owner="ops", authoriser="ops", key=lambda n: f"k{n}")
        def pay(n: int) -> int:
            sent.append(n)
            return n

        assert pay(1).expect() == 1

        def work():
            mine, again = pay(2), pay(1)
            return [mine.expect(), again.expect(), len(sent), [o.worker for o in ledger.store.operations(limit=9)]]

        result, again, sent_by_child, workers = in_child(work)
        assert (result, again, sent_by_child) == (2, 1, 2)
        assert len(set(workers)) == 2
        assert pay(2).expect() == 2
        assert pay(3).expect() == 3
        assert sent == [1, 3]
