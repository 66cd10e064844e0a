"""Which store a name means: a file of SQLite's, or a database by its URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.domain.errors import StoreUnsafe

if TYPE_CHECKING:
    from counterfoil.ports.store import Store

SCHEMES = ("postgresql://", "postgres://")


def is_url(named: str | os.PathLike[str]) -> bool:
    """Whether a store is named by the URL of a database."""
    return isinstance(named, str) and named.startswith(SCHEMES)


def named(store: str | os.PathLike[str], beside: Path = Path()) -> str | Path:
    """A store as it is opened: a URL as it stands, a file from where it was named.

    Args:
        store: what was said.
        beside: the folder that a relative path starts from.
    """
    return str(store) if is_url(store) else beside / store


def shown(url: str) -> str:
    """A URL as it may be seen: user, host and database. A password, or an option that may be one, is left out."""
    from urllib.parse import parse_qsl, unquote, urlsplit  # nobody who names a file pays for it

    try:
        parts = urlsplit(url)
    except ValueError:
        return "postgresql:…"
    who, at, hosts = parts.netloc.rpartition("@")
    hosts = unquote(hosts) or dict(parse_qsl(parts.query)).get("host", "")
    return f"postgresql://{who.partition(':')[0]}{at}{hosts}{parts.path}"


def open_store(store: str | os.PathLike[str], *, new: bool = True) -> Store:
    """Open a store.

    Args:
        store: the path of a file, or a URL.
        new: it may be made where nothing stands.

    Raises:
        StoreUnsafe: it cannot be trusted with receipts, is missing, or needs a package that is not installed.
        StoreTooNew: newer code made it.
        StoreAway: nobody answers there.
    """
    if not is_url(store):
        from counterfoil.store.sqlite import SqliteStore

        return SqliteStore(store)
    try:
        from counterfoil.store.postgresql import PostgresStore
    except ImportError as error:
        raise missing(str(store)) from error
    return PostgresStore(str(store), new=new)


def missing(url: str) -> StoreUnsafe:
    """What is said where no driver is installed."""
    return StoreUnsafe(shown(url), "needs psycopg: pip install 'counterfoil[postgresql]'")
