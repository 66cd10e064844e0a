"""Receipts in one SQLite file: WAL, synchronous=FULL, one writing connection per process, group commit."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from counterfoil.domain.command import Amend, Claim, Command, Reply, Settle
from counterfoil.domain.errors import NoSuchOperation, StoreBusy, StoreUnsafe
from counterfoil.domain.event import History
from counterfoil.domain.identifier import row_number
from counterfoil.domain.operation import Operation
from counterfoil.store import opening, rows, transaction
from counterfoil.store.commit import GroupCommit, Job

_live: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


class SqliteStore:
    """A receipts file of this process.

    Args:
        path: the file; created private (0600) where it is missing.
        clock: seconds since the epoch; the store never lets it run backwards.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path).absolute()
        self._clock = clock
        self._seen = 0.0
        self._pid = os.getpid()
        self._reading = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._inode = 0
        self._commit: GroupCommit[Command, Reply] = GroupCommit(self._write_batch)
        opening.prepare(self.path)
        with self._commit.lead:
            db = self._connection()
            opening.migrate(db, self.path)
            last = db.execute("SELECT at FROM event ORDER BY id DESC LIMIT 1").fetchone()
            self._seen = last[0] if last else 0.0
        _live.add(self)

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(self, command: Command) -> Reply:
        """Make one command durable and answer it; see `ports.store.Store`."""
        return self._commit.submit(command)

    def awrite(self, command: Command) -> Awaitable[Reply]:
        """The same from an event loop, shielded from cancellation."""
        return self._commit.submit_async(command)

    def now(self) -> float:
        """The store's clock: a step backwards shortens no deadline and revives no approval."""
        self._seen = now = max(self._seen, self._clock())
        return now

    def _write_batch(self, jobs: list[Job[Command, Reply]]) -> None:
        try:
            db = self._connection(claims=any(type(job.command) is Claim for job in jobs))
            transaction.begin(db)
        except (sqlite3.Error, StoreBusy, StoreUnsafe) as error:
            self._fail(jobs, error)
            return
        try:
            now = self.now()
            replies = [self._run(db, job.command, now) for job in jobs]
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._abort(db)
            self._one_by_one(jobs, error)
            return
        except Exception as error:  # noqa: BLE001 - a rule's own defect: its batch mates are not to pay for it
            self._abort(db)
            self._one_by_one(jobs, error)
            return
        except BaseException:
            # Crash here: nothing is decided, the batch is written again (test_interrupted_leader...).
            self._abort(db)
            raise
        # Crash here: durable and unanswered; written again, each command recognises itself.
        for job, reply in zip(jobs, replies, strict=True):
            job.succeed(reply)

    def _one_by_one(self, jobs: list[Job[Command, Reply]], error: Exception) -> None:
        if len(jobs) == 1:
            self._fail(jobs, error)
            return
        for job in jobs:
            self._write_batch([job])

    def _fail(self, jobs: list[Job[Command, Reply]], error: Exception) -> None:
        told = opening.translate(self.path, error) if isinstance(error, sqlite3.Error) else error
        for job in jobs:
            job.fail(told)

    @staticmethod
    def _run(db: sqlite3.Connection, command: Command, now: float) -> Reply:
        if type(command) is Claim:
            return transaction.claim(db, command, now)
        if type(command) is Settle:
            return transaction.settle(db, command, now)
        assert isinstance(command, Amend)  # noqa: S101 - the union is closed; for the type checker
        return transaction.amend(db, command, now)

    @staticmethod
    def _abort(db: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            if db.in_transaction:
                db.execute("ROLLBACK")

    # -- reading ---------------------------------------------------------------------------------------------------

    def find(self, tenant: str, actor: str, action: str, key: str) -> History | None:
        """Read the operation of one key, or None."""
        with self._read() as db:
            operation = rows.by_key(db, tenant, actor, action, key)
            return None if operation is None else rows.history(db, operation)

    def load(self, operation: str) -> History:
        """Read one operation whole; raises `NoSuchOperation`."""
        n = row_number(operation)
        with self._read() as db:
            found = None if n is None else rows.by_number(db, n)
            if found is None or found.id != operation:
                raise NoSuchOperation(operation)
            return rows.history(db, found)

    def unresolved(self) -> list[Operation]:
        """Read every unresolved operation, oldest first."""
        with self._read() as db:
            return rows.select(db, "WHERE unresolved > 0 ORDER BY n")

    def operations(self, *, limit: int, before: int | None = None) -> list[Operation]:
        """Read operations, newest first, from below row number `before`."""
        with self._read() as db:
            if before is None:
                return rows.select(db, "ORDER BY n DESC LIMIT ?", (limit,))
            return rows.select(db, "WHERE n < ? ORDER BY n DESC LIMIT ?", (before, limit))

    def histories(self) -> Iterator[History]:
        """Read every operation whole, oldest first."""
        after = -1
        while True:
            with self._read() as db:
                page = rows.select(db, "WHERE n > ? ORDER BY n LIMIT 256", (after,))
                found = [rows.history(db, operation) for operation in page]
            if not found:
                return
            yield from found
            after = page[-1].n

    def query(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Run one reading statement."""
        with self._read() as db:
            return db.execute(statement, parameters).fetchall()

    def execute(self, statement: str, parameters: tuple[object, ...] = ()) -> None:
        """Run one small writing statement of its own (the worker registry); never on receipts."""
        with self._commit.lead:
            try:
                self._connection().execute(statement, parameters)
            except sqlite3.Error as error:
                raise opening.translate(self.path, error) from error

    @contextlib.contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with self._reading:
            self._same_process()
            try:
                if self._reader is None:
                    self._reader = opening.connect(self.path, writes=False)
                yield self._reader
            except sqlite3.Error as error:
                raise opening.translate(self.path, error) from error

    # -- the connection ----------------------------------------------------------------------------------------------

    def _connection(self, *, claims: bool = True) -> sqlite3.Connection:
        """The writing connection; the lead lock is held. Nothing is claimed in a file replaced underneath."""
        self._same_process()
        if self._db is None:
            self._db = opening.connect(self.path, writes=True)
            self._inode = os.stat(self.path).st_ino
        elif claims and not self._stands():
            raise StoreUnsafe(str(self.path), "was removed or replaced while it was open; restart to use what stands there")
        return self._db

    def _stands(self) -> bool:
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def _same_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreUnsafe(str(self.path), "was opened before a fork that Python did not see; open it in the child")

    def close(self) -> None:
        """Write what is queued and close the file."""
        self._commit.close()
        with self._commit.lead, self._reading:
            self._close_connections()
        _live.discard(self)

    def _close_connections(self) -> None:
        for db in (self._db, self._reader):
            if db is not None:
                db.close()
        self._db = self._reader = None

    # -- fork ----------------------------------------------------------------------------------------------------------
    # A child inherits SQLite's table of locks this process holds, but not the locks: a connection it opened on the
    # same file would believe itself protected (test_fork_with_open_connection_loses_commits). So nothing is open
    # while a fork happens.

    def _before_fork(self) -> None:
        self._commit.lead.acquire()
        self._reading.acquire()
        self._close_connections()

    def _after_in_parent(self) -> None:
        self._reading.release()
        self._commit.lead.release()

    def _after_in_child(self) -> None:
        self._pid = os.getpid()
        self._reading = threading.Lock()
        self._commit.forget()


def _each(method: Callable[[SqliteStore], None]) -> Callable[[], None]:
    def run() -> None:
        for store in sorted(_live, key=id):  # one order everywhere: two stores, two forks, no deadlock
            method(store)

    return run


os.register_at_fork(
    before=_each(SqliteStore._before_fork),  # noqa: SLF001
    after_in_parent=_each(SqliteStore._after_in_parent),  # noqa: SLF001
    after_in_child=_each(SqliteStore._after_in_child),  # noqa: SLF001
)
