"""Receipts in one SQLite file: WAL, synchronous=FULL, one writing connection per process, group commit."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from counterfoil.domain.command import (
    Adopt,
    Amend,
    Claim,
    Command,
    CountRefusals,
    Erase,
    PolicyMoved,
    Propose,
    Remove,
    Reply,
    Settle,
)
from counterfoil.domain.errors import StoreUnsafe
from counterfoil.domain.steady import Steady
from counterfoil.store import opening, rows, transaction
from counterfoil.store.commit import GroupCommit, Job
from counterfoil.store.forking import FORKS
from counterfoil.store.reader import Reader
from counterfoil.store.uptime import uptime

STANDS_SECONDS = 0.01
"""How long a look at the file's name, and at the policy in force, holds: a claim that needs nobody's approval may still
go to a file that was just removed, or under the policy before. Whatever needs one is judged in its own transaction."""
KEPT_SECONDS = 1.0
"""How far the time that is kept in the file may be behind the one that transactions judge by: a page more, once a
second. A clock that is set back over a restart revives what ended, by less than that."""


class SqliteStore(Reader):
    """A receipts file of this process.

    Args:
        path: the file; created private (0600) where it is missing.
        clock: seconds since the epoch; the store never lets it run backwards.
        uptime: the clock that nobody can set.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], Steady] = uptime,
    ) -> None:
        self.path = opening.located(path)
        self.name = str(self.path)
        self._clock, self.uptime = clock, uptime
        self._seen = 0.0
        self._seen_at = time.monotonic()
        self._kept = 0.0
        """The time that this process last kept in the file."""
        self._pid = os.getpid()
        self._reading = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None
        """Of that connection: one for all it writes, where `Connection.execute` would make one per statement."""
        self._reader: sqlite3.Connection | None = None
        self._inode = 0
        self._log, self._log_inode = self.path.with_name(f"{self.path.name}-wal"), 0
        self._stood_at = 0.0
        self._policy, self._policy_at = 0, 0.0
        """Number of the policy in force, and when it was read."""
        self._commit: GroupCommit[Command, Reply] = GroupCommit(self._write_batch)
        self.write: Callable[[Command], Reply] = self._commit.submit
        """Make one command durable and answer it; see `ports.store.Store`."""
        with FORKS.opening, self._commit.lead:
            opening.prepare(self.path)
            try:
                db = self._connection()
                opening.migrate(db, self.path)
                self._seen = rows.latest(db)
            except sqlite3.Error as error:
                self._close_connections()
                raise opening.translate(self.path, error) from error
            except BaseException:
                self._close_connections()
                raise
            FORKS.add(self)

    def beside(self, tail: str) -> Path:
        """Where what belongs to the file and cannot stand in it is kept: answers it could not take, and locks."""
        return self.path.with_name(self.path.name + tail)

    # -- writing ---------------------------------------------------------------------------------------------------

    def awrite(self, command: Command) -> Awaitable[Reply]:
        """The same from an event loop, shielded from cancellation."""
        return self._commit.submit_async(command)

    def adopt(self, command: Adopt) -> Reply:
        """Put a policy in force; whatever this process claims from now on is judged under it."""
        reply = self.write(command)
        self._policy_at = 0.0
        return reply

    def now(self) -> float:
        """The store's clock: a step backwards shortens no deadline and revives no approval."""
        now, elapsed = self._clock(), time.monotonic()
        if now < self._seen:  # stepped back: time goes on from where it was
            now = self._seen + elapsed - self._seen_at
        self._seen, self._seen_at = now, elapsed
        return now

    def keep_time(self, *, within: float) -> None:
        """Keep the time where nothing is written: a restart goes on from at most so many seconds before it."""
        now = self.now()
        if now >= self._kept + within:
            self.execute(rows.KEEP_TIME, (now, now))
            self._kept = now

    def _write_batch(self, jobs: list[Job[Command, Reply]]) -> None:
        try:
            db = self._cursor
            if db is None or os.getpid() != self._pid or time.monotonic() - self._stood_at > STANDS_SECONDS:
                # What is answered already is recorded where its claim stands, whatever became of the name.
                db = self._connection(claims=len(jobs) > 1 or type(jobs[0].command) is not Settle).cursor()
                self._cursor = db
            # The write lock first: a read-then-write transaction could never be promoted (SQLITE_BUSY_SNAPSHOT).
            db.execute("BEGIN IMMEDIATE")
        except Exception as error:  # noqa: BLE001 - whatever keeps the file from being used is every job's answer
            if self._was_left_open():
                self._write_batch(jobs)
            elif isinstance(error, StoreUnsafe):
                self._one_by_one(jobs, error)  # the claims among them are refused, the answers are not
            else:
                self._fail(jobs, error)
            return
        except BaseException:
            self._was_left_open()
            raise
        try:
            now = self.now()
            kept = self._kept if now < self._kept + KEPT_SECONDS else rows.keep_time(db, now)
            if len(jobs) == 1:  # written out: a lone caller's is the path that is measured
                job = jobs[0]
                reply = self._run(db, job.command, now)
                db.execute("COMMIT")
                self._kept = kept
                job.reply, job.decided = reply, True
                return
            replies = [self._run(db, job.command, now) for job in jobs]
            db.execute("COMMIT")
            self._kept = kept
        except Exception as error:  # noqa: BLE001 - the disk's word, or a rule's own defect: no mate is to pay for it
            self._abort(db.connection)
            self._one_by_one(jobs, error)
            return
        except BaseException:
            # Crash here: nothing is decided, the batch is written again (test_interrupted_leader...).
            self._abort(db.connection)
            raise
        # Crash here: durable and unanswered; written again, each command recognises itself.
        for job, reply in zip(jobs, replies, strict=True):
            job.succeed(reply)

    def _run(self, db: sqlite3.Cursor, command: Command, now: float) -> Reply:
        """Carry one command out under the write lock; a claim only under the policy in force."""
        kind = type(command)
        if type(command) is Claim:
            if time.monotonic() - self._policy_at > STANDS_SECONDS:
                self._policy, self._policy_at = rows.policy_number(db), time.monotonic()
            if command.policy != self._policy:
                return PolicyMoved(policy=self._policy)
        if kind in _STAMPED:
            return _STAMPED[kind](db, command, now, self.uptime())
        return _RUNS[kind](db, command, now)

    def _was_left_open(self) -> bool:
        """Close a transaction whose leader was interrupted between its beginning and its handler, or in the handler.

        Found when the next one cannot begin, so that the ordinary way never asks.
        """
        db = self._db
        if db is None or not db.in_transaction:
            return False
        self._abort(db)
        return not db.in_transaction

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
    def _abort(db: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            if db.in_transaction:
                db.execute("ROLLBACK")

    # -- maintenance -----------------------------------------------------------------------------------------------

    def settle_down(self) -> None:
        """Empty the log after an erasure; see `overwriting.settle_down`."""
        from counterfoil.store import overwriting

        with self.lead() as db:
            overwriting.settle_down(db)

    def execute(self, statement: str, parameters: tuple[object, ...] = ()) -> None:
        """Run one small writing statement of its own (the worker registry); never on receipts."""
        with self._commit.lead:
            db = self._connection()
            self._abort(db)  # what an interruption may have left open
            try:
                db.execute("BEGIN IMMEDIATE")
                db.execute(statement, parameters)
                db.execute("COMMIT")
            except sqlite3.Error as error:
                raise opening.translate(self.path, error) from error
            finally:
                self._abort(db)

    @contextlib.contextmanager
    def lead(self) -> Iterator[sqlite3.Connection]:
        """Own the writing connection for a while: maintenance and measurement, never receipts."""
        with self._commit.lead:
            yield self._connection()

    @contextlib.contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """One snapshot: an operation and its events are read as they stood at one moment."""
        with self._reading:
            self._same_process()
            if self._reader is None:
                self._same_file()
                self._reader = opening.connect(self.path, writes=False)
            db = self._reader
            try:
                self._abort(db)  # what an interruption may have left open
                db.execute("BEGIN")
                yield db
            except sqlite3.Error as error:
                raise opening.translate(self.path, error) from error
            finally:
                self._abort(db)

    # -- the connection ----------------------------------------------------------------------------------------------

    def _connection(self, *, claims: bool = True) -> sqlite3.Connection:
        """The writing connection; the lead lock is held. Nothing is written to a file replaced underneath."""
        if os.getpid() != self._pid:
            self._same_process()
        if self._db is None:
            self._same_file()
            self._db = opening.connect(self.path, writes=True)
            self._inode = self._inode or self.path.stat().st_ino
            self._log_inode = 0
            return self._db
        if claims:
            self._same_file()
            self._same_log()
            self._stood_at = time.monotonic()
        return self._db

    def _same_file(self) -> None:
        if self._inode == 0:
            return  # opened for the first time: whatever stands there is the file
        try:
            stands = self.path.stat().st_ino == self._inode
        except OSError:
            stands = False
        if not stands:
            raise StoreUnsafe(
                str(self.path), "was removed or replaced while it was open; restart to use what stands there"
            )

    def _same_log(self) -> None:
        """Refuse to go on in a log that others cannot read: this process has lost its locks, and the log with them."""
        try:
            inode = self._log.stat().st_ino
        except OSError:
            inode = 0
        if self._log_inode == 0:
            self._log_inode = inode
        elif inode != self._log_inode:
            raise StoreUnsafe(
                str(self.path),
                "lost its write-ahead log while it was open: something in this process opened and closed the file, "
                "which drops SQLite's locks; restart, and copy it with `VACUUM INTO` or from another process",
            )

    def _same_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreUnsafe(str(self.path), "was opened before a fork that Python did not see; open it in the child")

    def close(self) -> None:
        """Write what is queued and close the file."""
        self._commit.close()
        with self._commit.lead, self._reading:
            self._close_connections()

    def _close_connections(self) -> None:
        for db in (self._db, self._reader):
            if db is not None:
                db.close()
        self._db = self._reader = self._cursor = None

    # -- fork: see `forking` -------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait for whoever uses a connection, keep everybody out and close them all."""
        self._commit.lead.acquire()
        self._reading.acquire()
        self._close_connections()

    def after_in_parent(self) -> None:
        """Let the waiting go on; the next command opens the file again."""
        self._reading.release()
        self._commit.lead.release()

    def after_in_child(self) -> None:
        """Start anew, with neither the queue nor the locks of the parent."""
        self._pid = os.getpid()
        self._reading = threading.Lock()
        self._commit.forget()


def _later(module: str, name: str) -> Callable[[sqlite3.Cursor, object, float], Reply]:
    """What a seldom command runs, imported when the first of them comes."""

    def run(db: sqlite3.Cursor, command: object, now: float) -> Reply:
        import importlib

        found: Callable[[sqlite3.Cursor, object, float], Reply] = getattr(
            importlib.import_module(f"counterfoil.store.{module}"), name
        )
        return found(db, command, now)

    return run


_RUNS: dict[type, Callable[[sqlite3.Cursor, Any, float], Reply]] = {
    Settle: transaction.settle,
    Propose: transaction.propose,
    Adopt: _later("policies", "adopt"),
    Remove: _later("overwriting", "remove"),
    Erase: _later("overwriting", "erase"),
    CountRefusals: _later("retention", "count_refusals"),
}
"""What each command does inside its transaction."""
_STAMPED: dict[type, Callable[[sqlite3.Cursor, Any, float, Steady], Reply]] = {
    Claim: transaction.claim,
    Amend: transaction.amend,
}
"""Of these, what is recorded says when, by the clock that nobody can set."""
