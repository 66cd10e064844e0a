"""Receipts in a PostgreSQL database: one writing connection per process, group commit, transactions as on SQLite."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from counterfoil.domain.command import (
    Adopt,
    Amend,
    Claim,
    Claimed,
    Command,
    CountRefusals,
    Erase,
    PolicyMoved,
    Propose,
    Remove,
    Reply,
    Settle,
    Settled,
)
from counterfoil.domain.errors import StoreAway, StoreUnsafe
from counterfoil.domain.steady import Steady
from counterfoil.store import locks, migrating, policies, retention, rows, statements, transaction
from counterfoil.store.commit import GroupCommit, Job
from counterfoil.store.connecting import address
from counterfoil.store.connections import Connections
from counterfoil.store.forking import FORKS
from counterfoil.store.reader import Reader
from counterfoil.store.reckoning import Reckoning
from counterfoil.store.session import AGAIN, LOOK, Session, Silent, lost, meaning
from counterfoil.store.uptime import uptime

KEPT_SECONDS = 1.0
"""How far the time that is kept in the book may be behind the one that transactions judge by."""
TRIES_MAX = 8
"""How often a transaction is judged anew because another came first."""

_MOMENT = b"""
SELECT extract(epoch FROM clock_timestamp())::double precision, (SELECT at FROM clock),
    (SELECT coalesce(max(n), 0) FROM policy), schema, id, current_setting('synchronous_commit') FROM book
"""


class PostgresStore(Reader):
    """A receipts database, as one of this process's.

    Args:
        url: `postgresql://USER@HOST:PORT/DATABASE`; with `pooled=1` where a pooler of transactions stands between.
        clock: seconds since the epoch, instead of the server's own clock: for tests.
        uptime: this host's clock that nobody can set. A lone first claim is one statement, whose lock this host cannot
            read a clock under: it bears no reading, and what surely elapsed is counted from the first look.
        new: the tables may be made where none stand.
    """

    path: Path | None = None
    """There is no file."""

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] | None = None,
        uptime: Callable[[], Steady] = uptime,
        new: bool = True,
    ) -> None:
        to = address(url)
        self.uptime = uptime
        self.name = to.name
        self._time = Reckoning(clock)
        self._kept = 0.0
        """The time that this process last kept in the book."""
        self._reading = threading.Lock()
        self._lines = Connections(to)
        self._commit: GroupCommit[Command, Reply] = GroupCommit(self._write_batch)
        self.write: Callable[[Command], Reply] = self._commit.submit
        """Make one command durable and answer it; see `ports.store.Store`."""
        with FORKS.opening, self._commit.lead:
            try:
                self._book = self._open(new=new)
            except BaseException:
                self._lines.hang_up()
                raise
            FORKS.add(self)

    def _open(self, *, new: bool) -> str:
        session = self._lines.writing()
        try:
            if new and not migrating.found(session):
                migrating.migrate(session, self.name)
            migrating.require(session, self.name)
            self._time.saw(rows.latest(session))
            if self._time.clock is None:
                self._time.saw(self._moment(session)[0])
            return migrating.identity(session)
        except psycopg.Error as error:
            raise meaning(self.name, error) from None

    def beside(self, tail: str) -> Path:
        """Where this host keeps what belongs to the book and cannot stand in it: answers it could not take, locks."""
        state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        folder = Path(state) / "counterfoil"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder / f"{self._book}{tail}"

    # -- writing ---------------------------------------------------------------------------------------------------

    def awrite(self, command: Command) -> Awaitable[Reply]:
        """The same from an event loop, shielded from cancellation."""
        return self._commit.submit_async(command)

    def adopt(self, command: Adopt) -> Reply:
        """Put a policy in force; every claim after it is judged under it."""
        return self.write(command)

    def now(self) -> float:
        """The store's clock: the server's, as it was last heard, and what has passed since."""
        return self._time.now()

    def keep_time(self, *, within: float) -> None:
        """Keep the time where nothing is written, and hear the server's again."""
        with self.lead() as session:
            now = self._moment(session)[0]
            self._time.saw(now)
            if now >= self._kept + within:
                rows.keep_time(session, now)
                self._kept = now

    def _write_batch(self, jobs: list[Job[Command, Reply]]) -> None:
        try:
            left = self._at_once(jobs)
            if left:
                self._slowly(left)
        except BaseException:
            # Crash here: whatever is undecided is written again, and each command recognises itself.
            self._lines.drop_writer()
            raise

    def _at_once(self, jobs: list[Job[Command, Reply]]) -> list[Job[Command, Reply]]:
        """Write what one statement can write; return what it could not, or what has to be looked at."""
        if self._time.reckoned() >= self._kept + KEPT_SECONDS:
            return jobs  # the time is kept with it
        if not statements.AT_MIN <= self._time.seen <= statements.AT_MAX:
            return jobs  # a clock of a test's
        kinds: dict[type, dict[int, Job[Command, Reply]]] = {Claim: {}, Settle: {}}
        for job in jobs:
            if statements.is_plain(job.command):
                kinds[type(job.command)].setdefault(job.command.n, job)  # type: ignore[union-attr]
        plain = [found for found in kinds.values() if found]
        if not plain:
            return jobs
        try:
            self._write_plain(plain)
        except psycopg.Error as error:
            if lost(error):
                self._lines.drop_writer()
                (self._fail if isinstance(error, Silent) else self._refuse)(jobs, error)
            # else: a mate's row, or another transaction's; each is judged by itself.
        except (StoreAway, StoreUnsafe) as error:
            self._fail(jobs, error)
        return [job for job in jobs if not job.decided]

    def _write_plain(self, plain: list[dict[int, Job[Command, Reply]]]) -> None:
        """Run the statements, several of them in one transaction, and answer whatever they wrote."""
        session = self._lines.writing()
        if len(plain) == 1:
            found = [self._ask(session, plain[0]).fetchall()]
        else:
            with session.db.pipeline():
                asked = [self._ask(session, jobs) for jobs in plain]
            found = [cursor.fetchall() for cursor in asked]
        # Crash here: durable and unanswered; written again, each command recognises itself.
        for jobs, written in zip(plain, found, strict=True):
            for n, at, head in written:
                self._time.saw(at)
                job = jobs[n]
                job.succeed(Claimed(at=at, head=head) if type(job.command) is Claim else Settled(at=at, head=head))

    def _ask(self, session: Session, jobs: dict[int, Job[Command, Reply]]) -> psycopg.Cursor[Any]:
        first = next(iter(jobs.values())).command
        write = statements.CLAIMING if type(first) is Claim else statements.SETTLING
        rest = (*self._time.asked(), self._book)
        if len(jobs) == 1:
            return session.run(write.one, (*write.row(first), *rest))
        return session.run(write.many, (*write.columns([job.command for job in jobs.values()]), *rest))

    # -- the slow way ------------------------------------------------------------------------------------------------

    def _slowly(self, jobs: list[Job[Command, Reply]]) -> None:
        """Judge commands in a transaction that waits for its locks and reads what stands."""
        try:
            replies = self._transaction([job.command for job in jobs])
        except _AnswerLost as error:
            self._refuse(jobs, error.cause)
            left = [job for job in jobs if not job.decided]
            if left:
                self._slowly(left)
            return
        except (StoreAway, StoreUnsafe) as error:  # of the store, and so of all of them
            self._fail(jobs, error)
            return
        except Exception as error:  # noqa: BLE001 - the server's word, or a rule's own defect: no mate is to pay for it
            if len(jobs) == 1:
                self._fail(jobs, error)
                return
            for job in jobs:
                self._slowly([job])
            return
        for job, reply in zip(jobs, replies, strict=True):
            job.succeed(reply)

    def _transaction(self, commands: list[Command]) -> list[Reply]:
        """Judge commands in one transaction, from the beginning where another came first or the server went away."""
        for left in reversed(range(TRIES_MAX)):
            session = self._lines.writing()
            try:
                return self._try(session, commands)
            except _AnswerLost as error:
                self._lines.drop_writer()
                if isinstance(error.cause, Silent):
                    raise meaning(self.name, error.cause) from None
                if not left or any(map(_may_send, commands)):
                    raise
            except Silent as error:  # the next one would be as long in coming, and others wait for this one's end
                self._lines.drop_writer()
                raise meaning(self.name, error) from None
            except psycopg.Error as error:
                self._roll_back(session)
                if not left or not (isinstance(error, AGAIN) or lost(error)):
                    raise
            except Exception:  # a rule's own
                self._roll_back(session)
                raise
        raise AssertionError

    def _try(self, session: Session, commands: list[Command]) -> list[Reply]:
        session.begin()
        self._lock(session, commands)
        now, policy = self._judged_at(session)
        replies = [self._run(session, command, now, policy) for command in commands]
        kept = self._keep(session, now)
        try:
            session.commit()
        except psycopg.Error as error:
            if lost(error):
                raise _AnswerLost(error) from error
            raise
        self._kept = kept
        self._time.saw(now)
        return replies

    @staticmethod
    def _lock(session: Session, commands: Sequence[Command]) -> None:
        names, shared, numbers = locks.wanted(commands)
        session.run(locks.TAKE, (names, shared, numbers))
        if numbers:
            session.run(locks.ROWS, (numbers,))

    def _judged_at(self, session: Session) -> tuple[float, int]:
        """The time and the policy, read after the locks; nothing is written under another schema, or to no purpose."""
        now, policy, schema, book, commits = self._moment(session)
        if book != self._book:
            raise StoreUnsafe(self.name, "leads to another book than the one that was opened; nothing was decided")
        if schema != migrating.SCHEMA:
            migrating.require(session, self.name)
        if commits == "off":
            raise StoreUnsafe(self.name, "runs with synchronous_commit=off: what it calls committed is lost in a crash")
        return now, policy

    def _moment(self, session: Session) -> tuple[float, int, int, str, str]:
        row = session.run(_MOMENT, ()).fetchone()
        said, kept, policy, schema, book, commits = row or (0.0, 0.0, 0, 0, "", "off")
        return self._time.judged(said, kept), policy, schema, book, commits

    def _keep(self, session: Session, now: float) -> float:
        """Keep the time, last of all: whoever else does it at the same moment waits for one commit, not for a rule."""
        return self._kept if now < self._kept + KEPT_SECONDS else rows.keep_time(session, now)

    def _run(self, session: Session, command: Command, now: float, policy: int) -> Reply:
        kind = type(command)
        if type(command) is Claim and command.policy != policy:
            return PolicyMoved(policy=policy)
        if kind in _STAMPED:
            return _STAMPED[kind](session, command, now, self.uptime())
        return _RUNS[kind](session, command, now)

    def _roll_back(self, session: Session) -> None:
        try:
            session.db.execute(b"ROLLBACK")
        except psycopg.Error:
            self._lines.drop_writer()

    def _refuse(self, jobs: list[Job[Command, Reply]], error: psycopg.Error) -> None:
        """The answer was lost: a claim may stand, and nobody sends on it. What cannot send is written again."""
        self._fail([job for job in jobs if _may_send(job.command)], error)

    def _fail(self, jobs: list[Job[Command, Reply]], error: Exception) -> None:
        told = meaning(self.name, error) if isinstance(error, psycopg.Error) else error
        for job in jobs:
            job.fail(told)

    # -- maintenance -------------------------------------------------------------------------------------------------

    def settle_down(self) -> None:
        """Nothing: what was erased goes with the server's own vacuum, and with its archive."""

    def execute(self, statement: str, parameters: tuple[object, ...] = ()) -> None:
        """Run one small writing statement of its own (the worker registry); never on receipts."""
        with self.lead() as session:
            session.execute(statement, parameters)

    @contextlib.contextmanager
    def lead(self) -> Iterator[Session]:
        """Own the writing connection for a while: maintenance and measurement, never receipts."""
        with self._commit.lead:
            try:
                yield self._lines.writing()
            except psycopg.Error as error:
                self._lines.drop_writer()
                raise meaning(self.name, error) from None
            except BaseException:
                self._lines.drop_writer()
                raise

    @contextlib.contextmanager
    def _read(self) -> Iterator[Session]:
        """One snapshot: an operation and its events are read as they stood at one moment."""
        with self._reading:
            session = self._lines.looking()
            try:
                session.begin(LOOK)
                yield session
                session.db.execute(b"ROLLBACK")
            except psycopg.Error as error:
                self._lines.drop_reader()
                raise meaning(self.name, error) from None
            except BaseException:
                self._lines.drop_reader()
                raise

    def close(self) -> None:
        """Write what is queued and hang up."""
        self._commit.close()
        with self._commit.lead, self._reading:
            self._lines.hang_up()

    # -- fork: see `forking` -----------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait for whoever uses a connection, keep everybody out and hang up."""
        self._commit.lead.acquire()
        self._reading.acquire()
        self._lines.hang_up()

    def after_in_parent(self) -> None:
        """Let the waiting go on; the next command connects again."""
        self._reading.release()
        self._commit.lead.release()

    def after_in_child(self) -> None:
        """Start anew, with neither the queue nor the locks of the parent."""
        self._lines.forked()
        self._reading = threading.Lock()
        self._commit.forget()


class _AnswerLost(Exception):
    """A commit was asked for, and nobody knows whether it stands."""

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _may_send(command: Command) -> bool:
    """Whether whoever gets the answer may send on it."""
    return type(command) is Claim or (type(command) is Amend and command.policy is not None)


_RUNS: dict[type, Callable[[Session, Any, float], Reply]] = {
    Settle: transaction.settle,
    Propose: transaction.propose,
    Adopt: policies.adopt,
    Remove: retention.remove,
    Erase: retention.erase,
    CountRefusals: retention.count_refusals,
}
"""What each command does inside its transaction."""
_STAMPED: dict[type, Callable[[Session, Any, float, Steady], Reply]] = {
    Claim: transaction.claim,
    Amend: transaction.amend,
}
"""Of these, what is recorded says when, by the clock that nobody can set."""
