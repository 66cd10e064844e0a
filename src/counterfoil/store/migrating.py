"""The schema of a receipts database: made where nothing stands, moved on by a command, refused where it is another's.

Workers of two versions never share a schema that either does not know: each ordinary write names the schema that it
was written for, and is judged the slow way, and then refused, where another stands.
"""

from __future__ import annotations

import os

from counterfoil.domain.errors import StoreTooNew, StoreUnsafe
from counterfoil.store.opening import MIGRATIONS
from counterfoil.store.session import Session

SCHEMA = len(MIGRATIONS)
"""The number of migrations that this version knows; the two stores have the same."""
_NUMBERED = b"SELECT CASE WHEN to_regclass('book') IS NULL THEN NULL ELSE to_regclass('operation') IS NOT NULL END"
_TAKEN = b"""
SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
    AND relname IN ('operation', 'event', 'body', 'worker', 'policy', 'refusal', 'clock', 'book')
"""
_ALONE = b"SELECT pg_advisory_xact_lock(hashtextextended('schema', 1129729097))"


def found(session: Session) -> int:
    """The schema that stands in a database; 0 where none does."""
    row = session.run(_NUMBERED, ()).fetchone()
    if row is None or row[0] is None:
        return 0
    number = session.run(b"SELECT schema FROM book", ()).fetchone()
    return int(number[0]) if number else 0


def identity(session: Session) -> str:
    """The book's own id: by it, and not by an address, this host's spool and locks of it are found."""
    return str(session.run(b"SELECT id FROM book", ()).fetchone()[0])  # type: ignore[index]


def require(session: Session, name: str) -> None:
    """Refuse every schema but this version's.

    Raises:
        StoreTooNew: newer code made it.
        StoreUnsafe: there is none, or an older one.
    """
    stands = found(session)
    if stands > SCHEMA:
        raise StoreTooNew(name, found=stands, known=SCHEMA)
    if stands < SCHEMA:
        what = f"has the older schema {stands}" if stands else "holds no receipts"
        raise StoreUnsafe(name, f"{what}; `counterfoil store migrate` brings it to {SCHEMA}")


def migrate(session: Session, name: str, *, upto: int = SCHEMA) -> int:
    """Bring the schema up to this version's, in one transaction; return the one that stood there.

    Args:
        session: of a role that may make tables.
        name: of the store, for errors.
        upto: for tests of what an older version made.

    Raises:
        StoreTooNew: newer code made it.
        StoreUnsafe: tables of other programs have the names of ours.
    """
    patience, session.db.patience = session.db.patience, None  # a large table takes its time
    session.begin()
    session.run(_ALONE, ())
    stands = found(session)
    if stands > SCHEMA:
        raise StoreTooNew(name, found=stands, known=SCHEMA)
    if not stands and session.run(_TAKEN, ()).fetchone()[0]:  # type: ignore[index]
        raise StoreUnsafe(
            name, "has tables of another program under the names of ours: give receipts a schema of their own"
        )
    for migration in MIGRATIONS[stands:upto]:
        session.db.execute(script(migration))
    if not stands:
        session.run(b"INSERT INTO book (n, id, schema) VALUES (1, $1, 0)", (os.urandom(8).hex(),))
    session.run(b"UPDATE book SET schema = $1", (upto,))
    session.commit()
    session.db.patience = patience
    return stands


def script(name: str) -> bytes:
    """The statements of one migration."""
    from importlib import resources

    return resources.files("counterfoil.store.migrations.postgresql").joinpath(name).read_bytes()
