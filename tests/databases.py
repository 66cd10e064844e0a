"""Books of the laboratory's PostgreSQL for the tests: one server of the session's own, and a schema for each test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg

from counterfoil.lab import database

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


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Start a server, and remove it with all it holds; or use one that runs, where the environment says so."""
    if RUNS in os.environ:
        yield Server(Path(os.environ[RUNS]))
        return
    with database.server(MEMORY if MEMORY.is_dir() else None) as made:
        yield Server(made.folder)
