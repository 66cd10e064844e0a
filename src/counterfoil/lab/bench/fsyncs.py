"""Counting the syncs SQLite asks for, at its own file methods: no tracer, no privileges, nothing in the product."""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_FILE_POINTER, _JOURNAL_POINTER = 7, 28
"""SQLITE_FCNTL_FILE_POINTER and SQLITE_FCNTL_JOURNAL_POINTER (the write-ahead log, in that mode)."""
_METHODS_BYTES = 8 + 18 * 8
"""`sqlite3_io_methods`, version 3: a version number and eighteen functions."""
_SYNC_OFFSET = 8 + 4 * 8
"""After xClose, xRead, xWrite and xTruncate."""
_DB_OFFSET = 2 * ctypes.sizeof(ctypes.c_void_p)
"""The connection object's first member after CPython's object header is its `sqlite3 *`."""
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class Count:
    """How many syncs were asked for since it was made."""

    def __init__(self) -> None:
        self.syncs = 0


@contextmanager
def counted(db: sqlite3.Connection) -> Iterator[Count]:
    """Count the syncs of one connection's database and log while the block runs."""
    count = Count()
    library = ctypes.CDLL(_sqlite3.__file__)
    restore, kept = [], []
    for which in (_FILE_POINTER, _JOURNAL_POINTER):
        file = ctypes.c_void_p()
        handle = ctypes.c_void_p.from_address(id(db) + _DB_OFFSET)
        code = library.sqlite3_file_control(handle, b"main", which, ctypes.byref(file))
        if code != 0 or not file.value:
            raise RuntimeError(f"SQLite does not show its file (code {code})")
        slot = ctypes.c_void_p.from_address(file.value)
        original = slot.value
        if original is None:
            raise RuntimeError("the file is not open: commit something first")
        methods = ctypes.create_string_buffer(ctypes.string_at(original, _METHODS_BYTES), _METHODS_BYTES)
        counting = _counting(count, original)
        ctypes.c_void_p.from_buffer(methods, _SYNC_OFFSET).value = ctypes.cast(counting, ctypes.c_void_p).value
        slot.value = ctypes.addressof(methods)
        restore.append((slot, original))
        kept.append((methods, counting))
    try:
        yield count
    finally:
        for slot, original in restore:
            slot.value = original
        kept.clear()


def _counting(count: Count, methods: int) -> Any:
    sync = _Sync(ctypes.c_void_p.from_address(methods + _SYNC_OFFSET).value or 0)

    def call(file: int, flags: int) -> int:
        count.syncs += 1
        return int(sync(file, flags))

    return _Sync(call)
