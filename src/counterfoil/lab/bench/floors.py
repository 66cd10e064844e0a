"""Floors: the cheapest honest way to make one call durable before and after it, and nothing else.

*thin*: one row of about 400 bytes with three indexes, inserted by one autocommit statement and updated by another.
*same-rows*: the rows, indexes and bytes that the ledger itself writes for a call, in two transactions, by bare
`sqlite3`. Row values are made before the clock starts. Both run WAL with synchronous=FULL.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.domain.identifier import number
from counterfoil.domain.operation import COLUMNS
from counterfoil.store import opening, rows, transaction

WAL_GROWN_BYTES = 16 << 20
"""Written once before timing: while a log still grows, every fdatasync also commits the file system's journal."""
BUSY_SECONDS = 60

_THIN = """
CREATE TABLE thin (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, key TEXT NOT NULL,
    fingerprint BLOB NOT NULL, state INTEGER NOT NULL, request TEXT NOT NULL, outcome TEXT,
    created_at REAL NOT NULL, settled_at REAL
);
CREATE UNIQUE INDEX thin_identity ON thin (tenant, actor, action, key);
CREATE INDEX thin_unresolved ON thin (created_at) WHERE state < 2;
CREATE INDEX thin_fingerprint ON thin (fingerprint);
"""
_THIN_CLAIM = (
    "INSERT INTO thin (id, tenant, actor, action, key, fingerprint, state, request, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)"
)
_THIN_SETTLE = "UPDATE thin SET state = 2, outcome = ?, settled_at = ? WHERE id = ?"
REQUEST = json.dumps({"account": "acct_0001", "amount": 1000, "currency": "usd", "memo": "m" * 185})
OUTCOME = json.dumps({"id": "ch_123", "status": "ok", "echo": "e" * 100})

_ids = itertools.count(1)


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection as durable as the ledger's."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def grow_wal(db: sqlite3.Connection) -> None:
    """Extend the write-ahead log once, so that later commits overwrite it in place."""
    (limit,) = db.execute("PRAGMA wal_autocheckpoint").fetchone()
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("CREATE TABLE filler (bytes BLOB)")
    db.execute("INSERT INTO filler VALUES (zeroblob(?))", (WAL_GROWN_BYTES,))
    db.execute("DROP TABLE filler")
    db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
    db.execute(f"PRAGMA wal_autocheckpoint = {limit}")


class Thin:
    """Two autocommit statements on one narrow table."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "thin.db"
        self._db = connect(self.path)
        self._db.executescript(_THIN)
        grow_wal(self._db)

    def block(self, n: int) -> list[float]:
        """Perform n operations from one caller; return their durations in seconds."""
        return timed([thin_row() for _ in range(n)], lambda row: self._operation(self._db, row))

    @contextmanager
    def callers(self, count: int) -> Iterator[list[Callable[[], None]]]:
        """Callers that each have a connection of their own."""
        made = [connect(self.path) for _ in range(count)]
        try:
            yield [lambda db=db: self._operation(db, thin_row()) for db in made]  # type: ignore[misc]
        finally:
            for db in made:
                db.close()

    @staticmethod
    def _operation(db: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        db.execute(_THIN_CLAIM, row)
        db.execute(_THIN_SETTLE, (OUTCOME, row[7], row[0]))

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def thin_row() -> tuple[Any, ...]:
    """The values of one more row, as random as in real traffic."""
    n, noise = next(_ids), os.urandom(48)
    return (
        n, f"tenant-{n % 7}", f"agent-{n % 31}", "payment.refund", noise[:16].hex(), noise[16:], REQUEST, time.time(),
    )  # fmt: skip


class SameRows:
    """The ledger's own rows and bytes, copied from calls it made, under new keys.

    Args:
        folder: where the file is made.
        samples: per call, its `operation` row after the claim and after the outcome, and its two `event` rows.
    """

    def __init__(self, folder: Path, samples: Sequence[Sample]) -> None:
        self._samples = itertools.cycle(samples)
        self._last = 0
        self._db = connect(folder / "same-rows.db")
        for name in opening.MIGRATIONS:
            for statement in opening.migration(name):
                self._db.execute(statement)
        self._db.execute(f"PRAGMA wal_autocheckpoint = {opening.WAL_AUTOCHECKPOINT_PAGES}")
        grow_wal(self._db)

    def block(self, n: int) -> list[float]:
        """Perform n operations from one caller; return their durations in seconds."""
        return timed([self._rows() for _ in range(n)], self._operation)

    def _operation(self, made: tuple[Any, ...]) -> None:
        claim, claimed, settle, settled = made
        execute = self._db.execute
        execute("BEGIN IMMEDIATE")
        execute(transaction.CLAIM, claim)
        execute(rows.INSERT_EVENT, claimed)
        execute("COMMIT")
        execute("BEGIN IMMEDIATE")
        execute(transaction.SETTLE, settle)
        execute(rows.INSERT_EVENT, settled)
        execute("COMMIT")

    def _rows(self) -> tuple[Any, ...]:
        """One call's rows with a number, a key, an effect and hashes of their own: random as in real traffic."""
        sample = next(self._samples)
        noise = os.urandom(32)
        self._last = n = max(self._last + 1, number(time.time(), noise[0]))
        claim, claimed = list(sample.claim), list(sample.claimed)
        settle, settled = list(sample.settle), list(sample.settled)
        claim[0], claim[5] = n, f"order-{noise[:8].hex()}"
        claim[7], claim[8] = "cf1:" + noise.hex(), "ef1:" + noise[:20].hex()
        claimed[0], claimed[5] = rows.event_id(n, 1), hashlib.sha256(noise).digest()
        settle[-2] = n
        settled[0], settled[5] = rows.event_id(n, 2), hashlib.sha256(noise[1:]).digest()
        return claim, claimed, settle, settled

    def counts(self) -> tuple[int, int]:
        """Rows in `operation` and in `event` and `body` together."""
        (operations,) = self._db.execute("SELECT count(*) FROM operation").fetchone()
        (others,) = self._db.execute("SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM body)").fetchone()
        return operations, others

    def close(self) -> None:
        """Close the file."""
        self._db.close()


class Sample:
    """What one call of the ledger wrote, as parameters of its own statements."""

    def __init__(self, db: sqlite3.Connection, n: int) -> None:
        (operation,) = db.execute(f"{rows.SELECT} WHERE n = ?", (n,)).fetchall()
        first, second = db.execute(
            "SELECT id, kind, at, record, body, hash FROM event WHERE id BETWEEN ? AND ? ORDER BY id",
            (rows.event_id(n, 0), rows.event_id(n, 9)),
        ).fetchall()
        named = dict(zip(COLUMNS, operation, strict=True))
        self.claim = (*operation[:12], named["deadline"], named["worker"], named["deadline"], named["created_at"])
        self.claimed = first
        self.settle = (
            *(named[c] for c in ("dispatch", "outcome", "discrepancy", "exposure", "unresolved", "settled_by")),
            named["step"], named["due_at"], named["updated_at"], 2, n, 1,
        )  # fmt: skip
        self.settled = second


def timed(made: Sequence[Any], operation: Callable[[Any], None]) -> list[float]:
    """Run an operation on each of the prepared rows; return the durations in seconds."""
    durations = []
    for row in made:
        start = time.perf_counter()
        operation(row)
        durations.append(time.perf_counter() - start)
    return durations


def load(callers: Sequence[Callable[[], None]], seconds: float) -> float:
    """Drive callers flat out, one thread each; return operations per second. The first error is raised."""
    done = [0] * len(callers)
    errors: list[BaseException] = []
    stop, ready = threading.Event(), threading.Barrier(len(callers) + 1)

    def run(number: int, call: Callable[[], None]) -> None:
        ready.wait()
        try:
            while not stop.is_set():
                call()
                done[number] += 1
        except BaseException as error:  # noqa: BLE001 - raised below, in the measuring thread
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(callers)]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - start
    if errors:
        raise errors[0]
    return sum(done) / elapsed
