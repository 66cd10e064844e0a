"""Opening a receipts file: everything that must hold before one receipt is entrusted to it.

The file is looked at only by `stat` and SQL. Opening it any other way and closing that descriptor would drop
SQLite's POSIX locks, and another process's last close could then delete the write-ahead log under this one
(test_second_descriptor_drops_locks).
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from pathlib import Path

from counterfoil.domain.errors import StoreBusy, StoreFull, StoreTooNew, StoreUnsafe

APPLICATION_ID = 0x43464F49
"""`CFOI` in the file's header: no other program's database is ever written to."""
MIGRATIONS = ("0001_receipts.sql", "0002_decisions.sql", "0003_clock.sql", "0004_looks.sql")
"""Numbered, in order; the file's `user_version` says how many it has had."""
MOVED = 1_000_000
"""`user_version` of a file whose receipts went on in a database: every version refuses it, ours by its name."""
BUSY_TIMEOUT_SECONDS = 10.0
"""How long a command waits for another process's transaction before it answers `StoreBusy`."""
SWITCH_PAUSE_SECONDS = 0.005
"""Between two tries to switch a new file to its log: about what the switch takes."""
WAL_AUTOCHECKPOINT_PAGES = 2_000
"""8 MiB: checkpoints stay rare beside commits; a longer log makes every read of a hot page probe more frames."""
PAGE_BYTES_MIN = 512
"""SQLite's smallest page. It takes a file of one byte for an empty one, and would begin a new book in it."""
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "ncpfs", "fuse.sshfs", "fuse.glusterfs"}
)


def located(path: str | os.PathLike[str]) -> Path:
    """The file itself, whatever links lead to it: its log, spool and locks stand beside it under one name."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise StoreUnsafe(str(path), f"cannot be found: {error}") from error


def prepare(path: Path) -> None:
    """Create the file private where it is missing; refuse what can never hold receipts."""
    parent = path.parent
    try:
        if not parent.is_dir():
            raise StoreUnsafe(str(path), f"the folder {parent} does not exist")
        kind = filesystem(parent)
        if kind in _NETWORK:
            raise StoreUnsafe(str(path), f"is on a network file system ({kind}), where locks cannot be trusted")
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            _inspect(path)
    except OSError as error:
        raise StoreUnsafe(str(path), f"cannot be made or used: {error.strerror}") from error


def _inspect(path: Path) -> None:
    logged = _size(_wal(path))  # before the file: whoever makes one now writes its first page before its log
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise StoreUnsafe(str(path), "is not a regular file")
    if found.st_nlink > 1:
        raise StoreUnsafe(str(path), "has a second name (hard link), and SQLite's log stands beside one name only")
    if logged and not found.st_size:
        raise StoreUnsafe(str(path), "is truncated: it is empty beside its own write-ahead log")
    if 0 < found.st_size < PAGE_BYTES_MIN:
        raise StoreUnsafe(str(path), f"is no usable receipts file ({found.st_size} bytes are no database)")
    for each in (path, _wal(path), Path(f"{path}-shm")):
        _make_private(each)
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreUnsafe(str(path), "is not readable and writable by this user")
    if not os.access(path.parent, os.W_OK):
        raise StoreUnsafe(str(path), "stands in a folder this user cannot write its write-ahead log to")


def _make_private(path: Path) -> None:
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
    except FileNotFoundError:
        return  # no log stands there now
    except OSError as error:
        raise StoreUnsafe(str(path), "is readable by others and cannot be made private (0600)") from error


def _wal(path: Path) -> Path:
    return Path(f"{path}-wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def filesystem(folder: Path) -> str:
    """The type of the file system that holds a folder, or empty where the platform does not say."""
    best, kind = "", ""
    target = str(folder.resolve())
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].replace("\\040", " ")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open one connection and assert every setting that durability rests on.

    Raises:
        StoreUnsafe: the file is foreign, truncated, malformed or refuses a setting.
        StoreBusy: another process kept it locked.
    """
    try:
        # mode=rw: a file that has vanished is an error, never an empty file in its place.
        db = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False,
            timeout=BUSY_TIMEOUT_SECONDS, cached_statements=64,
        )  # fmt: skip
    except sqlite3.Error as error:
        raise translate(path, error) from error
    try:
        _settings(db, path, writes=writes)
    except sqlite3.Error as error:
        db.close()
        raise translate(path, error) from error
    except BaseException:
        db.close()
        raise
    return db


def _settings(db: sqlite3.Connection, path: Path, *, writes: bool) -> None:
    if _one(db, "PRAGMA application_id") not in (0, APPLICATION_ID) or _foreign(db):
        raise StoreUnsafe(str(path), "is another program's database")
    # synchronous=NORMAL loses acknowledged commits on power loss (SQLite, "PRAGMA synchronous"): asserted, not hoped.
    # Without fullfsync macOS leaves what was synced in the drive's cache; elsewhere it says nothing.
    mode = _logged_ahead(db)
    if mode != "wal":
        raise StoreUnsafe(str(path), f"refuses a write-ahead log (answers {mode!r})")
    for pragma in ("synchronous = FULL", "fullfsync = ON", "foreign_keys = ON"):
        db.execute(f"PRAGMA {pragma}")
    if _one(db, "PRAGMA synchronous") != 2:  # noqa: PLR2004 - SQLite's number for FULL
        raise StoreUnsafe(str(path), "does not keep synchronous=FULL")
    db.execute(f"PRAGMA wal_autocheckpoint = {WAL_AUTOCHECKPOINT_PAGES}")
    db.execute("PRAGMA trusted_schema = OFF")
    _refuse_truncated(db, path)
    if not writes:
        db.execute("PRAGMA query_only = ON")


def _logged_ahead(db: sqlite3.Connection) -> str:
    """Switch to a write-ahead log; return the mode the file is in.

    While another process switches the same new file SQLite answers BUSY at once, whatever the time-out: it would
    be a deadlock for it to wait with its lock held. So the wait is made here.
    """
    until = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            return str(db.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() > until:
                raise
            time.sleep(SWITCH_PAUSE_SECONDS)


def _foreign(db: sqlite3.Connection) -> bool:
    # Tables first: another process may be making the file, and marks it in the transaction that makes them.
    tables = _one(db, "SELECT count(*) FROM sqlite_master")
    return _one(db, "PRAGMA application_id") != APPLICATION_ID and tables > 0


def _refuse_truncated(db: sqlite3.Connection, path: Path) -> None:
    """A file shorter than its own header says has lost receipts: SQLite would notice only on the missing page."""
    expected = _one(db, "PRAGMA page_count") * _one(db, "PRAGMA page_size")
    if _size(_wal(path)):  # looked at after the count: a log that is empty now held none of its pages
        return  # pages may still stand in the log only
    found = _size(path)
    if found < expected:
        raise StoreUnsafe(str(path), f"is truncated: {found} of {expected} bytes")


def migrate(db: sqlite3.Connection, path: Path, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the schema up to this version's, in one transaction; refuse a newer one."""
    try:
        db.execute("BEGIN IMMEDIATE")
        found = int(_one(db, "PRAGMA user_version"))
        if found == MOVED:
            raise StoreUnsafe(str(path), "was moved by `counterfoil store copy`: its receipts go on in the database")
        if found > len(migrations):
            raise StoreTooNew(str(path), found=found, known=len(migrations))
        if not found and _one(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'operation'"):
            raise StoreUnsafe(str(path), "has receipts and no version: its `user_version` was taken away")
        for name in migrations[found:]:
            for statement in migration(name):
                db.execute(statement)
        if found < len(migrations):
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {len(migrations)}")
        db.execute("COMMIT")
    except sqlite3.Error as error:
        _rollback(db)
        raise translate(path, error) from error
    except BaseException:
        _rollback(db)
        raise


def migration(name: str) -> list[str]:
    """The statements of one migration, in order."""
    from importlib import resources

    return statements(resources.files("counterfoil.store.migrations").joinpath(name).read_text(encoding="utf-8"))


def statements(script: str) -> list[str]:
    """Split a script into statements; `executescript` would commit between them."""
    found: list[str] = []
    rest = ""
    for line in script.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    return [s for s in (*found, rest) if s.strip()]


def _rollback(db: sqlite3.Connection) -> None:
    if db.in_transaction:
        db.execute("ROLLBACK")


def _one(db: sqlite3.Connection, statement: str) -> int:
    row = db.execute(statement).fetchone()
    return int(row[0]) if row else 0


# SQLITE_PROTOCOL: the locks of the log could not be had, however often it was tried; the file itself is sound.
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})


def translate(path: Path, error: sqlite3.Error) -> StoreUnsafe | StoreBusy | StoreFull:
    """Say what a database error means for the caller; SQLite's own text names no payload."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary in _BUSY:
        return StoreBusy(f"{path}: another process holds the store; nothing was decided, ask again")
    if primary in _FULL:
        return StoreFull(f"{path}: the store cannot be written ({error}); nothing was decided")
    return StoreUnsafe(str(path), f"is no usable receipts file ({error})")
