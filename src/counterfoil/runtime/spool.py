"""Answers the store could not take: one private file each beside it, until it takes them."""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

FILES_MAX = 10_000
"""More than this means nobody drains it: a person is needed, not a bigger folder."""


class Spool:
    """A folder of evidence on its way into the store.

    Args:
        folder: private (0700); made when it is first needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, operation: str, record: bytes, body: bytes | None) -> bool:
        """Keep one observation durably; False where even that is impossible."""
        kept = {
            "operation": operation,
            "record": base64.b64encode(record).decode(),
            "body": None if body is None else base64.b64encode(body).decode(),
        }
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(mode=0o700, exist_ok=True)
                _keep_names(self._folder.parent)
            write_private(self._folder / f"{operation}.{os.urandom(4).hex()}.json", json.dumps(kept).encode())
        except OSError:
            return False
        return True

    def waiting(self) -> Iterator[tuple[Path, str, bytes, bytes | None]]:
        """Every observation that waits: its file, operation, record and body. An unreadable file is left alone."""
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.glob("op_*.json"))[:FILES_MAX]:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                kept = json.loads(path.read_bytes())
                body = None if kept["body"] is None else base64.b64decode(kept["body"], validate=True)
                yield path, kept["operation"], base64.b64decode(kept["record"], validate=True), body

    def taken(self, path: Path) -> None:
        """The store has it now."""
        path.unlink(missing_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, atomically: whole and durable, or not there."""
    import tempfile

    fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")  # 0600 by itself
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _keep_names(path.parent)


def _keep_names(folder: Path) -> None:
    """Make the names in a folder as durable as what they name."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
