"""Moving a book from a SQLite file into a database: every row, all or none; the file is refused afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from counterfoil.domain.errors import StoreUnsafe
from counterfoil.store import opening
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.session import Session
from counterfoil.store.sqlite import SqliteStore

TABLES = {
    "operation": "n", "event": "id", "body": "id", "policy": "n", "refusal": "n", "worker": "id", "clock": "n",
}  # fmt: skip
"""Every table of a book, with what orders it; a body follows its event."""
PAGE = 1_000


def copy(source: SqliteStore, target: PostgresStore, advance: Callable[[int], None] = lambda _: None) -> int:
    """Copy every row, compare each with what stands there then, and retire the file; return how many there were.

    A copy that ended before the file was retired is taken up by the next: what stands in the database is compared.

    Args:
        source: the file; it is locked meanwhile, and no version opens it afterwards.
        target: a database with no receipts of its own.
        advance: told how many rows were written and compared.

    Raises:
        StoreUnsafe: the database holds something else.
    """
    with source.lead() as file, target.lead() as session:
        file.execute("BEGIN IMMEDIATE")
        try:
            session.begin()
            if _is_empty(session):
                for table in TABLES:
                    _written(file, session, table, advance)
            rows = sum(_compared(file, session, table, target.name, advance) for table in TABLES)
            session.commit()
            # Crash here: the copy stands and the file may still be opened; run again, it is compared and retired.
            file.execute(f"PRAGMA user_version = {opening.MOVED}")
            file.execute("COMMIT")
        finally:
            if file.in_transaction:
                file.execute("ROLLBACK")
    return rows


def _is_empty(session: Session) -> bool:
    found = session.execute("SELECT (SELECT count(*) FROM operation) + (SELECT count(*) FROM policy)").fetchone()
    return not found[0]


def _columns(session: Session, table: str) -> list[str]:
    described = session.run(f"SELECT * FROM {table} LIMIT 0".encode(), ()).description  # noqa: S608 - a table of ours
    return [column.name for column in described or ()]


def _written(file: Any, session: Session, table: str, advance: Callable[[int], None]) -> None:  # noqa: ANN401
    columns = ", ".join(_columns(session, table))
    if table == "clock":  # its one row stands there already
        session.execute("DELETE FROM clock")
    with session.db.cursor().copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copying:
        for row in file.execute(f"SELECT {columns} FROM {table} ORDER BY {TABLES[table]}"):  # noqa: S608 - of ours
            copying.write_row(row)
            advance(1)


def _compared(file: Any, session: Session, table: str, name: str, advance: Callable[[int], None]) -> int:  # noqa: ANN401
    columns = ", ".join(_columns(session, table))
    statement = f"SELECT {columns} FROM {table} ORDER BY {TABLES[table]}"  # noqa: S608 - names of ours
    count = 0
    for ours, theirs in itertools.zip_longest(file.execute(statement), _streamed(session, statement)):
        if ours != theirs:
            raise StoreUnsafe(name, f"holds other receipts than the file: row {count + 1} of {table} differs")
        count += 1
        advance(1)
    return count


def _streamed(session: Session, statement: str) -> Iterator[tuple[object, ...]]:
    """The rows of a statement, a page at a time: a book need not fit into memory."""
    session.execute(f"DECLARE compared NO SCROLL CURSOR FOR {statement}")
    while page := session.run(f"FETCH {PAGE} FROM compared".encode(), ()).fetchall():
        yield from page
    session.execute("CLOSE compared")
