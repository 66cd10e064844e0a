"""Who is still able to write: a register of processes, and the kernel's own proof that one is dead.

Each process holds a POSIX record lock on a file of its own. The kernel drops it when the process dies, and a fork
does not inherit it, so a forked grandchild cannot keep a dead worker alive. A lock that can be taken, on the very
inode that was registered, on the same host and boot, is proof of death; so is another boot of the same host. A
missing file, another host and a lapsed mark prove nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import weakref
from pathlib import Path
from typing import Protocol

from counterfoil.domain.errors import StoreFull

ALIVE, DEAD, UNKNOWN = "alive", "dead", "unknown"

_WORKER_BYTES = 6
"""48 random bits: worker ids of one store do not meet."""


class Register(Protocol):
    """The part of the store that keeps the worker table."""

    def execute(self, statement: str, parameters: tuple[object, ...] = ()) -> None:
        """Run one small writing statement."""
        ...

    def query(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Run one reading statement."""
        ...

    def now(self) -> float:
        """The store's clock."""
        ...


_live: weakref.WeakSet[Roster] = weakref.WeakSet()
_here: weakref.WeakValueDictionary[str, Roster] = weakref.WeakValueDictionary()


class Roster:
    """This process's place among the workers of one store.

    Args:
        register: where workers are written down.
        folder: where lock files stand; private (0700).
    """

    def __init__(self, register: Register, folder: Path) -> None:
        self._register = register
        self._folder = folder
        self._guard = threading.Lock()
        self._enrolled: str | None = None
        self._lock_fd = -1
        self.in_hand: set[str] = set()
        """Tokens of attempts that this process is carrying right now."""
        _live.add(self)

    def forget(self) -> None:
        """In a forked child: the parent's place is not its own, and the parent's lock was not inherited."""
        self._guard = threading.Lock()
        self._enrolled = None
        self.in_hand = set()

    def worker(self) -> str:
        """This process's id; it is registered, and its lock held, before the first use."""
        if self._enrolled is not None:
            return self._enrolled
        with self._guard:
            if self._enrolled is None:
                self._enrol()
        return self._enrolled  # type: ignore[return-value]

    def _enrol(self) -> None:
        # A forked child's copy of the parent's descriptor is left open: closing it would drop nothing of the
        # parent's, but the number may be the child's only clue that it is not the parent.
        worker = "w_" + os.urandom(_WORKER_BYTES).hex()
        path = self._folder / f"{worker}.lock"
        try:
            self._folder.mkdir(mode=0o700, parents=False, exist_ok=True)
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreFull(f"{path}: no worker can be registered ({error.strerror}); nothing was sent") from error
        _here[worker] = self  # before anybody can read of it: its lock is not to be tried from within this process
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            now = self._register.now()
            self._register.execute(
                "INSERT INTO worker (id, host, boot, pid, lock_path, lock_inode, started_at, marked_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (worker, host(), boot(), os.getpid(), str(path), os.fstat(fd).st_ino, now, now),
            )
        except BaseException:
            _here.pop(worker, None)
            os.close(fd)  # nothing was begun under this name
            raise
        self._lock_fd, self._enrolled = fd, worker

    def hand(self, worker: str, token: str) -> str:
        """Say whether the holder of a token can still write: `alive`, `dead` or `unknown`."""
        ours = _here.get(worker)
        if ours is not None:
            # This process's own locks must not be tried, those of its other ledgers included: POSIX locks do not
            # stop their own process, and closing the second descriptor would drop the lock.
            return ALIVE if token in ours.in_hand else DEAD
        rows = self._register.query("SELECT host, boot, lock_path, lock_inode FROM worker WHERE id = ?", (worker,))
        if not rows or rows[0][0] != host():
            return UNKNOWN
        _, booted, path, inode = rows[0]
        if booted and boot() and booted != boot():
            return DEAD
        return _held(str(path), inode)

    def retire(self) -> None:
        """Give the lock back: whatever this process began has reported back or reads as unknown."""
        with self._guard:
            if self._enrolled is not None and not self.in_hand:
                _here.pop(self._enrolled, None)
                self._enrolled = None
                os.close(self._lock_fd)


def _held(path: str, inode: object) -> str:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return UNKNOWN
    try:
        if os.fstat(fd).st_ino != inode:
            return UNKNOWN  # another file under the same name: its lock says nothing of the worker's
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return ALIVE if error.errno in (errno.EACCES, errno.EAGAIN) else UNKNOWN
    else:
        return DEAD
    finally:
        os.close(fd)


def host() -> str:
    """This machine's own id."""
    for source in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            found = Path(source).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if found:
            return found
    return os.uname().nodename


def boot() -> str:
    """This boot's own id; empty where the platform has none, which never matches a proof."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _forget() -> None:
    _here.clear()
    for roster in _live:
        roster.forget()


os.register_at_fork(after_in_child=_forget)
