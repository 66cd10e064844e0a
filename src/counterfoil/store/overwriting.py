"""What is removed or erased from a SQLite file is overwritten in it, and in its log.

Pages that become free are used again; the file does not shrink. `incremental_vacuum` would do nothing, because the
file was not made for it, and a whole `VACUUM` keeps every writer out for as long as it copies.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

from counterfoil.domain.command import Amended, Declined, Erase, Remove
from counterfoil.store import opening, retention

_SECURE_DELETE = ("OFF", "ON", "FAST")
"""SQLite's words for the numbers it answers with."""
SETTLE_DOWN_MS = 1_000
"""How long the emptying of the log waits for whoever reads in it: writers wait meanwhile."""


def remove(db: sqlite3.Cursor, r: Remove, now: float) -> Amended | Declined:
    """Remove what a rule lets go, and overwrite where it stood; see `retention.remove`."""
    with _overwritten(db):
        return retention.remove(db, r, now)


def erase(db: sqlite3.Cursor, e: Erase, now: float) -> Amended | Declined:
    """Null what a rule lets go, and overwrite where it stood; see `retention.erase`."""
    with _overwritten(db):
        return retention.erase(db, e, now)


@contextlib.contextmanager
def _overwritten(db: sqlite3.Connection | sqlite3.Cursor) -> Iterator[None]:
    """Have what is deleted here overwritten with zeros: a free page, or the gap in one, would keep it readable."""
    before = db.execute("PRAGMA secure_delete").fetchone()[0]
    db.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        db.execute(f"PRAGMA secure_delete = {_SECURE_DELETE[before]}")


def settle_down(db: sqlite3.Connection | sqlite3.Cursor) -> None:
    """Write the log into the file and empty it for good, where nobody reads in it: what was erased stands there too."""
    with contextlib.suppress(sqlite3.Error):  # the next checkpoint does it
        db.execute(f"PRAGMA busy_timeout = {SETTLE_DOWN_MS}")
        try:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            # SQLite cuts the log and does not sync that: after a power cut the old one could stand there again. A
            # commit, if only of what stands there already, begins it anew and syncs it.
            db.execute(f"PRAGMA application_id = {opening.APPLICATION_ID}")
        finally:
            db.execute(f"PRAGMA busy_timeout = {int(opening.BUSY_TIMEOUT_SECONDS * 1000)}")
