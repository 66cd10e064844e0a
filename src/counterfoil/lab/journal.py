"""A JSON Lines file of what really happened: one write and one fsync per line, before anybody is told."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE_MODE = 0o600
"""The truth holds whole payloads: nobody but its owner needs to read it."""


class JournalTaken(RuntimeError):
    """Another process is writing this journal; nothing was read or written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is being written by another process; stop that one or choose another folder")
        self.path = path


class Journal:
    """An append-only file whose every line is on disk before `append` returns.

    A line that a crash tore is dropped when the file is opened again: it was never acknowledged to anybody.

    Raises:
        JournalTaken: another process holds this file; two writers of one truth would both be wrong.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            os.close(self._file)
            raise JournalTaken(path) from taken
        self._size = self._drop_torn_line()

    def _drop_torn_line(self) -> int:
        kept = self._path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._file, kept)
        return kept

    def entries(self) -> list[dict[str, Any]]:
        """Read every whole line, oldest first."""
        return read(self._path)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Make one line durable, or raise `OSError` with the file as it was.

        Args:
            entry: what happened; any JSON object.
        """
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            # One write: a crash leaves the whole line or a torn last one, never two halves apart.
            if os.write(self._file, line) != len(line):
                os.ftruncate(self._file, self._size)
                raise OSError(f"{self._path} took only part of a line; is the disk full?")
            self._size += len(line)
            os.fsync(self._file)

    def close(self) -> None:
        """Let another process take the file."""
        os.close(self._file)


def read(path: Path) -> list[dict[str, Any]]:
    """Read the whole lines of a journal that anybody may be writing, oldest first; no file means no lines."""
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]
