"""A store that another process keeps: before the send nothing is sent, after it nothing is lost."""

from __future__ import annotations

import contextlib
import sqlite3
import threading

import pytest

import counterfoil
from counterfoil.domain.errors import NotRecorded, StoreBusy
from counterfoil.domain.words import Outcome, Standing
from counterfoil.lab.images.shim import Shim
from counterfoil.runtime.worker import KEPT_SECONDS, Worker
from counterfoil.store import opening
from counterfoil.store.sqlite import SqliteStore


class Desk:
    """A ledger with one guarded function, and a stranger who can take the file's write lock."""

    def __init__(self, ledger, stranger):
        self.ledger, self.stranger = ledger, stranger
        self.sent = []
        self.meanwhile = lambda: None
        self.pay = ledger.action(self._pay, name="pay", owner="ops", authoriser="ops", key=lambda n: f"k{n}")

    def _pay(self, n: int) -> int:
        self.sent.append(n)
        self.meanwhile()
        return n

    def lock(self):
        """The stranger begins to write."""
        self.stranger.execute("BEGIN IMMEDIATE")

    def unlock(self):
        """The stranger is done."""
        self.stranger.rollback()


@pytest.fixture
def desk(path, monkeypatch):
    """Patience is short here, so that it runs out."""
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_SECONDS", 0.02)
    with (
        counterfoil.open(path, actor="user:a") as ledger,
        contextlib.closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as stranger,
    ):
        yield Desk(ledger, stranger)


def test_r56_busy_before_the_send_is_not_sent(desk):
    """The receipt cannot be written: an error, no call, and nothing on record; the same call works afterwards."""
    desk.pay(0)
    desk.lock()
    with pytest.raises(StoreBusy):
        desk.pay(1)
    desk.unlock()
    assert desk.sent == [0]
    assert len(desk.ledger.store.operations(limit=9)) == 1
    assert desk.pay(1).expect() == 1
    assert desk.sent == [0, 1]


def test_r56_busy_for_a_while_after_the_send_loses_nothing(desk):
    """The answer is written when the lock is free again, and the caller never learns of it."""

    def meanwhile():
        desk.lock()
        threading.Timer(0.06, desk.unlock).start()

    desk.meanwhile = meanwhile
    receipt = desk.pay(1)
    assert receipt.expect() == 1
    assert desk.sent == [1]
    assert desk.ledger.get(receipt.id).outcome is Outcome.SUCCEEDED


def test_r56_busy_for_good_after_the_send_keeps_the_answer_beside_the_store(desk):
    """It reads as unresolved and is not sent again; once the spool is drained it is what the provider said."""
    desk.meanwhile = desk.lock
    with pytest.raises(NotRecorded) as caught:
        desk.pay(1)
    assert caught.value.spooled
    desk.unlock()
    desk.meanwhile = lambda: None
    again = desk.pay(1)
    assert again.standing is Standing.UNRESOLVED or again.outcome is Outcome.SUCCEEDED
    desk.ledger.drain()
    receipt = desk.ledger.get(caught.value.operation)
    assert (receipt.outcome, receipt.expect()) == (Outcome.SUCCEEDED, 1)
    assert desk.sent == [1]
    assert desk.ledger.drain() == 0


def test_a_time_that_cannot_be_kept_ends_no_sweep(desk):
    """Something is unknown, a minute has passed, and the file is locked: the worker says so and goes on."""
    met = []
    worker = Worker(desk.ledger, lambda _, what: met.append(type(what)))
    desk.meanwhile = lambda: (_ for _ in ()).throw(TimeoutError)
    desk.pay(0)
    now = desk.ledger.store.now()
    desk.ledger.store._clock = lambda: now + KEPT_SECONDS
    desk.lock()
    assert worker.sweep() == 0
    desk.unlock()
    assert met == [StoreBusy]
    worker.sweep()
    assert desk.ledger.store.query("SELECT at FROM clock") == [(now + KEPT_SECONDS,)]


class Kept:
    """Whoever has the locks in the log's shared memory does not give them back."""

    def refused(self, act, file):
        return sqlite3.SQLITE_BUSY if act == "own" else 0

    def done(self, operation):
        pass


def test_locks_of_the_log_that_cannot_be_had_are_a_busy_store(path):
    """SQLite says then that its locking protocol failed; the file is sound, and the same call may be made again."""
    with contextlib.closing(SqliteStore(path)):
        pass
    with Shim(path.parent, Kept()), pytest.raises(StoreBusy, match="ask again") as caught:
        SqliteStore(path)
    assert caught.value.__cause__.sqlite_errorcode == sqlite3.SQLITE_PROTOCOL
