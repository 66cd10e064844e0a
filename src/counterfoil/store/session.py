"""One connection to PostgreSQL that runs the house's statements, and says what its errors mean."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import select
import time
from typing import TYPE_CHECKING, Any, NoReturn

import psycopg
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper
from psycopg.types.string import BytesBinaryDumper

from counterfoil.domain.errors import CounterfoilError, StoreAway, StoreBusy, StoreFull, StoreUnsafe
from counterfoil.ports.store import Found
from counterfoil.store import arrays

if TYPE_CHECKING:
    from psycopg.abc import RV, PQGen

LOCK_SECONDS = 10
"""How long a command waits for another's transaction before it answers `StoreBusy`."""
ANSWER_SECONDS = 20.0
"""How long any answer is waited for: longer than a lock, and as long as a network that swallows everything."""
IDLE_SECONDS = 15
"""How long a transaction may stand still before the server ends it: its process is paused, and others wait for it."""

BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
    f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'; SET LOCAL idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'"
)
"""Named in full: what the database or the role has for a default changes nothing."""
LOOK = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""One snapshot."""


@functools.cache
def translated(statement: str) -> bytes:
    """A statement of the house's with PostgreSQL's own placeholders; none of ours has a question mark in a text."""
    count = itertools.count(1)
    return re.sub(r"\?", lambda _: f"${next(count)}", statement).encode()


class Silent(psycopg.OperationalError):
    """The server stood still: it neither answered in time nor hung up."""


class Line(psycopg.Connection[Any]):
    """A connection that waits for an answer as long as it has patience; psycopg itself waits for ever."""

    patience: float | None = None
    """In seconds; None: as long as it takes."""

    def wait(self, gen: PQGen[RV], *how: Any, **named: Any) -> RV:  # noqa: ANN401 - whatever psycopg hands on
        """Wait for whatever was asked.

        Raises:
            Silent: no answer came in time; what was asked may stand, and may not.
        """
        waiting = gen if self.patience is None else self._patient(gen, self.patience)
        return super().wait(waiting, *how, **named)

    def _patient(self, gen: PQGen[RV], seconds: float) -> PQGen[RV]:
        """The same waiting, ended where nothing has come for so long."""
        until = 0.0
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:  # ordinarily: no clock is read
                    until = 0.0
                elif not until:
                    until = time.monotonic() + seconds
                elif time.monotonic() >= until:
                    self._give_up(gen)
                wanted = gen.send(ready)
        except StopIteration as done:
            result: RV = done.value
            return result

    def _give_up(self, gen: PQGen[RV]) -> NoReturn:
        """Hang up first: whatever still has to be fetched at the end of a pipeline would be waited for as well."""
        self.pgconn.finish()
        silent = Silent("no answer came in time")
        with contextlib.suppress(psycopg.Error):
            gen.throw(silent)
        raise silent


class Session:
    """A connection, in autocommit but for what stands between `begin` and `commit`.

    Args:
        db: the connection.
        prepared: statements are prepared once; not behind a pooler, where the next one may run elsewhere.
    """

    def __init__(self, db: Line, *, prepared: bool) -> None:
        self.db = db
        db.patience = ANSWER_SECONDS
        self.prepared = prepared
        # Exact types: what is prepared for one call then serves the next.
        for python, dumper in ((int, Int8BinaryDumper), (float, FloatBinaryDumper), (bytes, BytesBinaryDumper)):
            db.adapters.register_dumper(python, dumper)
        arrays.register(db.adapters)
        db.cursor_factory = psycopg.RawCursor
        db.prepare_threshold = 5 if prepared else None
        self._idle = select.poll()
        self._idle.register(db.fileno(), select.POLLIN)

    def execute(self, statement: str, parameters: Any = (), /) -> Found:  # noqa: ANN401 - whatever can be bound
        """Run one statement of the house's."""
        return self.run(translated(statement), parameters)

    def run(self, statement: bytes, parameters: Any) -> psycopg.Cursor[Any]:  # noqa: ANN401
        """Run one statement that has PostgreSQL's own placeholders."""
        return self.db.execute(statement, parameters, prepare=self.prepared, binary=True)

    def begin(self, how: str = BEGIN) -> None:
        """Begin a transaction."""
        self.db.execute(how.encode())

    def commit(self) -> None:
        """End it; what the server calls anything but a commit was none.

        Raises:
            StoreFull: the server had given the transaction up and rolled it back.
        """
        said = self.db.execute(b"COMMIT").statusmessage
        if said != "COMMIT":
            raise StoreFull(f"the database answered {said} where a commit was asked for; nothing was decided")

    def gone(self) -> bool:
        """Whether the server has hung up while nothing was asked of it: nothing is lost by asking anew."""
        # Whatever arrives unasked is its farewell, or as good a reason to ask somebody else.
        return self.db.closed or bool(self._idle.poll(0))

    def close(self) -> None:
        """Hang up; what was open is rolled back by the server."""
        self.db.close()


AGAIN = (
    psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation,
)  # fmt: skip
"""Another transaction came first: judge again, from what it left."""
_BUSY = (
    psycopg.errors.LockNotAvailable, psycopg.errors.TooManyConnections, psycopg.errors.QueryCanceled, *AGAIN,
)  # fmt: skip
_FULL = (
    psycopg.errors.InsufficientResources, psycopg.errors.SystemError, psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.ObjectNotInPrerequisiteState,
)  # fmt: skip
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)


def lost(error: BaseException) -> bool:
    """Whether a connection broke: what was asked last may stand, and may not."""
    return isinstance(error, _LOST) and (
        error.sqlstate is None or error.sqlstate[:2] == "08" or error.sqlstate[:3] == "57P"
    )


def meaning(name: str, error: psycopg.Error) -> CounterfoilError:
    """Say what a database error means for the caller; of the server's text only what names no value.

    Args:
        name: of the store, without its secrets.
        error: what was raised.
    """
    said = error.diag.message_primary or type(error).__name__
    if isinstance(error, _BUSY):
        return StoreBusy(f"{name}: another transaction holds the store; nothing was decided, ask again")
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return StoreUnsafe(name, f"lets this role not do that ({said})")
    if lost(error):
        return StoreAway(f"{name}: the database cannot be reached, or its answer was lost; ask again")
    if isinstance(error, _FULL):
        return StoreFull(f"{name}: the store cannot be written ({said}); nothing was decided")
    if isinstance(error, psycopg.errors.UndefinedTable):
        return StoreUnsafe(name, "holds no receipts; `counterfoil store migrate` prepares it")
    return StoreUnsafe(name, f"is no usable receipts database ({said})")
