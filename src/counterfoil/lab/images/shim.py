"""A file system under the SQLite of this process: it passes everything on, sees each operation, and can say no.

The product's own `sqlite3` runs on it, the very library that it ships with: it is made this process's default file
system through SQLite's C interface, so that the product needs no hook. Locks and shared memory stay the system's own.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.images.disk import SECTOR, Create, Delete, Operation, Sync, Truncate, Write

NAME = b"counterfoil-images"
KEEPS_NAMES = 0x00000800 | 0x00080000
"""SQLITE_OPEN_MAIN_JOURNAL and SQLITE_OPEN_WAL: with the first sync of these SQLite syncs their folder too."""
SHM_LOCK, SHM_SHARED = 2, 4
"""Among the flags of a lock in shared memory: it is taken, not given back; others may have it too."""

_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_SLEEP = CFUNCTYPE(c_int, c_void_p, c_int)
_CLOSE = CFUNCTYPE(c_int, c_void_p)
_MOVE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_SIZE = CFUNCTYPE(c_int, c_void_p, c_int64)
_WORD = CFUNCTYPE(c_int, c_void_p, c_int)
_SHARED = CFUNCTYPE(c_int, c_void_p, c_int, c_int, c_int)


class _Vfs(Structure):
    """SQLite's `sqlite3_vfs`; what stays as it is has no type here."""

    _fields_ = (
        ("version", c_int), ("file_bytes", c_int), ("path_max", c_int), ("next", c_void_p), ("name", c_char_p),
        ("data", c_void_p), ("open", _OPEN), ("delete", _DELETE), ("access", c_void_p), ("full_path", c_void_p),
        ("dl_open", c_void_p), ("dl_error", c_void_p), ("dl_sym", c_void_p), ("dl_close", c_void_p),
        ("randomness", c_void_p), ("sleep", _SLEEP), ("time", c_void_p), ("last_error", c_void_p),
        ("time_ms", c_void_p), ("set_call", c_void_p), ("get_call", c_void_p), ("next_call", c_void_p),
    )  # fmt: skip


class _Methods(Structure):
    """SQLite's `sqlite3_io_methods`, likewise."""

    _fields_ = (
        ("version", c_int), ("close", _CLOSE), ("read", _MOVE), ("write", _MOVE), ("truncate", _SIZE), ("sync", _WORD),
        ("size", c_void_p), ("lock", _WORD), ("unlock", c_void_p), ("reserved", c_void_p), ("control", c_void_p),
        ("sector", c_void_p), ("traits", c_void_p), ("shm_map", c_void_p), ("shm_lock", _SHARED),
        ("shm_barrier", c_void_p), ("shm_unmap", c_void_p), ("fetch", c_void_p), ("unfetch", c_void_p),
    )  # fmt: skip


class _Opened(Structure):
    """What every open file of SQLite begins with."""

    _fields_ = (("methods", POINTER(_Methods)),)


class Watch(Protocol):
    """Is told of everything that happens in one folder, and may forbid it."""

    def refused(self, act: str, file: str) -> int:
        """The SQLite error that an operation is answered with instead of being carried out; 0: it is carried out.

        Args:
            act: `open`, `read`, `write`, `truncate`, `sync`, `delete` or `lock`; in the log's shared memory `share`
                for a lock that others may have too, `own` for one that nobody else may have.
            file: its name in the folder.
        """
        ...

    def done(self, operation: Operation) -> None:
        """Hear of an operation that was carried out, or of a sync that failed."""
        ...


class Shim:
    """While it is entered, every file that SQLite opens in a folder is watched.

    Everything that is opened meanwhile is closed before it is left.

    Args:
        folder: whose files.
        watch: hears of them.
        shared: it has shared memory; without it SQLite can keep no write-ahead log.

    Raises:
        RunFailed: this Python hides its SQLite.
    """

    def __init__(self, folder: Path, watch: Watch, *, shared: bool = True) -> None:
        self._shared = shared
        self._folder = str(folder.resolve()) + "/"
        self._watch = watch
        self._library = _library()
        self._base_at = int(self._library.sqlite3_vfs_find(None))
        self._base = _Vfs.from_address(self._base_at)
        self._own = _Vfs.from_buffer_copy(self._base)
        self._own.next, self._own.name = None, NAME
        self._own.open, self._own.delete, self._own.sleep = _OPEN(self._open), _DELETE(self._delete), _SLEEP(_slept)
        self._files: dict[int, str] = {}
        self._keeps_names: set[int] = set()
        """Open files whose next sync is their first."""
        self._methods: dict[int, tuple[_Methods, _Methods]] = {}
        """By where SQLite's own stand: those, and the watched ones. It has several, for kinds of files."""

    def __enter__(self) -> Self:
        self._library.sqlite3_vfs_register(ctypes.byref(self._own), 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._library.sqlite3_vfs_register(self._base_at, 1)
        self._library.sqlite3_vfs_unregister(ctypes.byref(self._own))

    # -- the file system -----------------------------------------------------------------------------------------------

    def _inside(self, path: bytes) -> str:
        """Its name in the folder; empty where it is none of ours."""
        text = path.decode()
        return text.removeprefix(self._folder) if text.startswith(self._folder) else ""

    def _open(self, _vfs: int, path: int | None, file: int, flags: int, out: int) -> int:
        name = self._inside(ctypes.string_at(path)) if path else ""
        refused = self._watch.refused("open", name) if name else 0
        code = refused or int(self._base.open(self._base_at, path, file, flags, out))
        opened = _Opened.from_address(file)
        if refused:
            opened.methods = None  # SQLite closes no file that has none
        if not code and name:
            self._files[file] = name
            if flags & KEEPS_NAMES:
                self._keeps_names.add(file)
            opened.methods = ctypes.pointer(self._watched(opened))
            self._watch.done(Create(name))
        return code

    def _delete(self, _vfs: int, path: bytes, folder: int) -> int:
        name = self._inside(path)
        code = (self._watch.refused("delete", name) if name else 0) or int(
            self._base.delete(self._base_at, path, folder)
        )
        if not code and name:
            self._watch.done(Delete(name, bool(folder)))
        return code

    # -- its files -----------------------------------------------------------------------------------------------------

    def _watched(self, opened: Any) -> _Methods:
        at = ctypes.addressof(opened.methods.contents)
        if at not in self._methods:
            base = _Methods.from_address(at)
            own = _Methods.from_buffer_copy(base)
            own.close, own.truncate = _CLOSE(self._closing(base)), _SIZE(self._truncating(base))
            own.read, own.write = _MOVE(self._reading(base)), _MOVE(self._writing(base))
            own.sync, own.lock = _WORD(self._syncing(base)), _WORD(self._locking(base))
            if not self._shared:
                own.version = 1
            elif base.shm_lock:
                own.shm_lock = _SHARED(self._sharing(base))
            self._methods[at] = (base, own)
        return self._methods[at][1]

    def _closing(self, base: Any) -> Any:
        def close(file: int) -> int:
            self._files.pop(file, None)
            self._keeps_names.discard(file)
            return int(base.close(file))

        return close

    def _reading(self, base: Any) -> Any:
        def read(file: int, into: int, size: int, offset: int) -> int:
            return self._watch.refused("read", self._files[file]) or int(base.read(file, into, size, offset))

        return read

    def _writing(self, base: Any) -> Any:
        def write(file: int, data: int, size: int, offset: int) -> int:
            refused = self._watch.refused("write", self._files[file])
            if refused:
                size = size // 2 // SECTOR * SECTOR  # a full disk takes what fits
            code = int(base.write(file, data, size, offset)) if size else 0
            if size and not code:
                self._watch.done(Write(self._files[file], offset, ctypes.string_at(data, size)))
            return refused or code

        return write

    def _truncating(self, base: Any) -> Any:
        def truncate(file: int, size: int) -> int:
            code = self._watch.refused("truncate", self._files[file]) or int(base.truncate(file, size))
            if not code:
                self._watch.done(Truncate(self._files[file], size))
            return code

        return truncate

    def _syncing(self, base: Any) -> Any:
        def sync(file: int, flags: int) -> int:
            code = self._watch.refused("sync", self._files[file]) or int(base.sync(file, flags))
            self._watch.done(Sync(self._files[file], folder=file in self._keeps_names, failed=code != 0))
            if not code:
                self._keeps_names.discard(file)
            return code

        return sync

    def _locking(self, base: Any) -> Any:
        def lock(file: int, level: int) -> int:
            return self._watch.refused("lock", self._files[file]) or int(base.lock(file, level))

        return lock

    def _sharing(self, base: Any) -> Any:
        def lock(file: int, first: int, count: int, flags: int) -> int:
            act = "share" if flags & SHM_SHARED else "own"
            refused = self._watch.refused(act, self._files[file]) if flags & SHM_LOCK else 0
            return refused or int(base.shm_lock(file, first, count, flags))

        return lock


def _slept(_vfs: int, microseconds: int) -> int:
    """Time passes at once: a wait for a lock ends as it would, and nobody waits for it."""
    return microseconds


def _library() -> ctypes.CDLL:
    import _sqlite3

    try:
        # The extension's own library, or what it was linked with; where it is built in, the program itself.
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        library.sqlite3_vfs_find.restype = c_void_p
        library.sqlite3_vfs_find.argtypes = (c_char_p,)
        library.sqlite3_vfs_register.argtypes = (c_void_p, c_int)
        library.sqlite3_vfs_unregister.argtypes = (c_void_p,)
    except (AttributeError, OSError) as error:
        raise RunFailed(f"this Python hides its SQLite, so that nothing can be put under it ({error})") from None
    return library
