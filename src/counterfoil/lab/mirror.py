"""The tables of a receipts database as they stand at one moment, in SQLite: whoever reads a file can read them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

TABLES = ("operation", "event", "body", "policy", "refusal", "worker", "clock")
"""A body follows its event."""

# Whoever is writing comes to an end, and nobody reads a clock to judge by before this is done: what is written later
# has a later time.
_ALONE = "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE operation IN EXCLUSIVE MODE"


def mirror(url: str) -> sqlite3.Connection:
    """Read every table into memory; a database without tables gives none.

    Args:
        url: as psycopg reads it.
    """
    made = sqlite3.connect(":memory:")
    with psycopg.connect(url, autocommit=True) as database:
        if not stands(database):
            return made
        database.execute(_ALONE)
        for table in TABLES:
            columns = _columns(database, table)
            made.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            _fill(made, database, table, columns)
    made.commit()
    return made


def keep(url: str, path: Path) -> None:
    """Leave a receipts file that holds what the database holds.

    Args:
        url: as psycopg reads it.
        path: nothing stands there.
    """
    from counterfoil.store.sqlite import SqliteStore

    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as file, file, psycopg.connect(url, autocommit=True) as database:
        file.execute("DELETE FROM clock")
        database.execute(_ALONE)
        for table in TABLES:
            _fill(file, database, table, _columns(database, table))


def stands(database: psycopg.Connection) -> bool:
    """Whether the tables have been made."""
    found = database.execute("SELECT to_regclass('book') IS NOT NULL").fetchone()
    return bool(found and found[0])


def _columns(database: psycopg.Connection, table: str) -> list[str]:
    described = database.execute(f"SELECT * FROM {table} LIMIT 0").description  # noqa: S608 - a table of ours
    return [column.name for column in described or ()]


def _fill(made: sqlite3.Connection, database: psycopg.Connection, table: str, columns: list[str]) -> None:
    named = ", ".join(columns)
    rows = database.execute(f"SELECT {named} FROM {table}").fetchall()  # noqa: S608 - names of ours
    made.executemany(f"INSERT INTO {table} ({named}) VALUES ({', '.join('?' for _ in columns)})", rows)  # noqa: S608
