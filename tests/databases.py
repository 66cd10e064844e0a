"""Books of the laboratory's PostgreSQL for the tests: one server of the session's own, and a schema for each test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
import pytest

from counterfoil.lab import database, pooler

MEMORY = Path("/dev/shm")
"""Where a disk costs nothing, if the platform has it: the server syncs as it must, and its tests need not wait."""

RUNS = "COUNTERFOIL_TEST_POSTGRES"
"""Names the folder of a running server's socket: the same tests on another version of it."""


class Server(database.Server):
    """A server with one database; every book stands in a schema of its own."""

    def connect(self, **options: str) -> psycopg.Connection:
        """A connection of a stranger's, in autocommit."""
        return psycopg.connect(self.url(**options), autocommit=True)

    def book(self, **settings: str) -> str:
        """A URL of an empty schema; settings are given to each of its connections."""
        schema = f"book_{os.urandom(4).hex()}"
        with self.connect() as db:
            db.execute(f"CREATE SCHEMA {schema}")
        said = {"search_path": schema, **settings}
        spelled = {name: value.replace(" ", "\\ ") for name, value in said.items()}
        return self.url(options=" ".join(f"-c {name}={value}" for name, value in spelled.items()))


class Pooled:
    """The same server by way of a pooler, which passes no options on: every book is a role's, with settings of its own.

    Args:
        server: itself.
        by: the pooler.
    """

    def __init__(self, server: Server, by: pooler.Pooler) -> None:
        self.server, self.by = server, by

    def book(self, **settings: str) -> str:
        """A URL of an empty schema, by way of the pooler."""
        role = f"book_{os.urandom(4).hex()}"
        with self.server.connect() as db:
            db.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
            db.execute(f"CREATE SCHEMA {role} AUTHORIZATION {role}")
            for name, value in {"search_path": role, **settings}.items():
                db.execute(f"ALTER ROLE {role} SET {name} = '{value}'")
        # Named apart: the pooler keeps sessions that its clients have left, and other tests count their own.
        return self.by.url(user=role, application_name="pooled", pooled="1")

    def beside(self, book: str) -> str:
        """The URL of the same book without the pooler."""
        return self.server.url(user=schema_of(book))


def schema_of(book: str) -> str:
    """The schema that a book stands in, by whichever URL."""
    said = urlsplit(book)
    _, named, schema = unquote(said.query).partition("search_path=")
    return schema.partition(" ")[0].partition("&")[0] if named else str(said.username)


def with_pooler() -> None:
    """Skip a test where this machine has no pooler; in CI nothing is skipped, and `.ci/run` installs one."""
    if pooler.found() is None:
        pytest.skip("no pgbouncer on this machine: apt-get install pgbouncer")


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Start a server, and remove it with all it holds; or use one that runs, where the environment says so."""
    if RUNS in os.environ:
        yield Server(Path(os.environ[RUNS]))
        return
    with database.server(MEMORY if MEMORY.is_dir() else None) as made:
        yield Server(made.folder)
