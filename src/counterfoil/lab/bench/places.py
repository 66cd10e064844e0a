"""Where peers keep what they keep: a folder, a PostgreSQL database, a Redis that appends and syncs each write.

Each place can say how often something was synced while a program ran: the server by its own count, the others by
`strace`, where this machine has it.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from counterfoil.lab.bench.environment import Missing
from counterfoil.lab.bench.postgresql import Thin
from counterfoil.ports.store import Store

Program = Callable[[Sequence[str], str], None]
"""Runs until its end, behind the words of a tracer, at an address."""
START_SECONDS = 20.0
_POLL_SECONDS = 0.02
_REDIS = ("--port", "0", "--appendonly", "yes", "--appendfsync", "always", "--save", "")
"""Each write is on the disk before it is answered; no snapshots beside."""


class Place(Protocol):
    """What a peer is pointed at."""

    address: str

    def syncs(self, program: Program) -> int | None:
        """How often something was synced while a program ran; None where nobody can tell."""
        ...


class Folder:
    """A folder for files.

    Args:
        path: it exists.
    """

    def __init__(self, path: Path) -> None:
        self.address = str(path)

    def syncs(self, program: Program) -> int | None:
        """Trace the program itself, in a folder of its own."""
        with tempfile.TemporaryDirectory(dir=self.address) as folder, _traced(Path(folder)) as (words, count):
            program(words, folder)
            return count()


class Database:
    """A database on a server.

    Args:
        url: of it.
        thin: a floor on the same server.
        store: the subject's.
    """

    def __init__(self, url: str, thin: Thin, store: Store) -> None:
        self.address, self._thin, self._store = url, thin, store

    def syncs(self, program: Program) -> int | None:
        """Ask the server: the program's sessions have told what they did when they are gone."""
        before = self._thin.syncs(self._store)
        program((), self.address)
        return self._thin.syncs(self._store) - before


class Redis:
    """A Redis server of our own, reached by its socket.

    Args:
        folder: what it holds; it exists.

    Raises:
        Missing: there is none on this machine, or it does not start.
    """

    def __init__(self, folder: Path, words: Sequence[str] = ()) -> None:
        self.address, self._folder = str(folder / "redis.sock"), folder
        program = shutil.which("redis-server")
        if program is None:
            raise Missing("there is no redis-server on the PATH")
        self._process = subprocess.Popen(
            [*words, program, *_REDIS, "--unixsocket", self.address, "--dir", str(folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            self._await()
        except BaseException:
            self.close()
            raise

    def _await(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
                line.connect(self.address)
                line.sendall(b"PING\r\n")
                if line.recv(16).startswith(b"+PONG"):
                    return
            time.sleep(_POLL_SECONDS)
        raise Missing("redis-server did not start")

    def syncs(self, program: Program) -> int | None:
        """Trace another server, which only this program uses."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder, _traced(Path(folder)) as (words, count):
            other = Redis(Path(folder), words)
            try:
                program((), other.address)
            finally:
                other.close()
            return count()

    def close(self) -> None:
        """End it by its own command: behind a tracer it is another process's child."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.connect(self.address)
            line.sendall(b"SHUTDOWN NOSAVE\r\n")
            line.recv(16)
        try:
            self._process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def _traced(folder: Path) -> Iterator[tuple[Sequence[str], Callable[[], int | None]]]:
    """The words that trace a program's syncs, and what counts them afterwards."""
    found, log = shutil.which("strace"), folder / "syncs"
    if found is None:
        yield (), lambda: None
        return
    words = (found, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(log))
    # A call that another thread's interrupts stands in two lines, the second of which says so.
    yield words, lambda: sum("sync(" in line and "resumed" not in line for line in log.read_text().splitlines())
