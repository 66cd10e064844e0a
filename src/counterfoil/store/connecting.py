"""Reaching a receipts database: its URL, and everything that must hold before one receipt is entrusted to it."""

from __future__ import annotations

import time
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from counterfoil.domain.errors import StoreAway, StoreUnsafe
from counterfoil.store.choosing import shown
from counterfoil.store.session import Line, Session, meaning

SERVER_VERSION_MIN = 13_00_00
CONNECT_SECONDS = 5
RETRY_SECONDS = (0.0, 0.1, 0.4)
"""Before each try to reach the server: a restart takes about as long as these together; whoever meets more is told."""
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "tcp_user_timeout": 20_000,  # ms: a network that swallows everything is noticed
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "application_name": "counterfoil",
    "client_encoding": "UTF8",
}
"""What libpq is told where the URL says nothing of it."""
_STATE = b"""
SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('fsync'),
    current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('server_encoding'),
    current_setting('transaction_read_only'), pg_backend_pid()
"""
# A prepared statement keeps one plan. Made while a table was small it would read the whole of it for ever, and made
# anew each time it would cost more than the statement. It guesses how many rows a range holds by the size of the table:
# of a large one it would start other processes to read an operation's few events.
_PLANS = (
    b"SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET max_parallel_workers_per_gather = 0; "
    b"SET extra_float_digits = 1"
)


class Address(NamedTuple):
    """Where a database is, and how it is talked to."""

    url: str
    """For libpq; its secrets are never shown."""
    name: str
    """The same without secrets: what errors, logs and pages say."""
    pooled: bool | None
    """Whether a pooler stands between; None: to be found out."""


def address(url: str) -> Address:
    """Read a URL, `postgresql://USER@HOST:PORT/DATABASE`, with libpq's own options and `pooled=1`.

    Raises:
        StoreUnsafe: it is none.
    """
    try:
        parts = urlsplit(url)
        said = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        pooled = said.pop("pooled", None)
        plain = parts._replace(scheme="postgresql", query=urlencode(said, quote_via=quote)).geturl()
        known = conninfo_to_dict(plain)
        [int(port) for port in str(known.get("port", "")).split(",") if port]
    except (ValueError, psycopg.Error):
        raise StoreUnsafe(shown(url), "is no URL of a database: postgresql://USER@HOST:PORT/DATABASE") from None
    if pooled not in (None, "0", "1"):
        raise StoreUnsafe(shown(url), "says pooled=, and neither 1 nor 0")
    missing = {key: value for key, value in _DEFAULTS.items() if key not in known}
    joined = plain + ("&" if said else "?") + urlencode(missing, quote_via=quote)
    return Address(url=joined, name=shown(url), pooled=None if pooled is None else pooled == "1")


def reach(to: Address, *, writes: bool) -> Session:
    """Connect, in a few tries where nobody answers, and assert every setting that durability rests on.

    Args:
        to: where.
        writes: it will be written to.

    Raises:
        StoreAway: nobody answers there.
        StoreUnsafe: what answers cannot be trusted with receipts.
    """
    db = _connected(to)
    try:
        return _checked(db, to, writes=writes)
    except psycopg.Error as error:
        db.close()
        raise meaning(to.name, error) from None
    except BaseException:
        db.close()
        raise


def _connected(to: Address) -> Line:
    for wait in RETRY_SECONDS:
        time.sleep(wait)
        try:
            return Line.connect(to.url, autocommit=True)
        except psycopg.errors.ConnectionTimeout:
            break  # whoever restarts refuses at once; whoever stands still would do so again
        except psycopg.OperationalError:
            continue
    # libpq's own text may quote what the URL holds.
    raise StoreAway(f"{to.name}: the database cannot be reached, or lets this role not in; nothing was decided")


def _checked(db: Line, to: Address, *, writes: bool) -> Session:
    db.patience = CONNECT_SECONDS
    row = db.execute(_STATE).fetchone()
    version, standby, fsync, pages, commits, encoding, read_only, backend = row or (0,) * 8
    problems = (
        (version < SERVER_VERSION_MIN, f"runs a server older than {SERVER_VERSION_MIN // 10_000}"),
        (standby, "is a standby: receipts are written to the primary"),
        (fsync != "on", "runs with fsync=off: what it calls committed is lost with the power"),
        (pages != "on", "runs with full_page_writes=off: a power cut in the middle of a page tears it"),
        (commits == "off", "runs with synchronous_commit=off: what it calls committed is lost in a crash"),
        (encoding != "UTF8", f"keeps its texts in {encoding}, not in UTF8"),
        (writes and read_only == "on", "lets nothing be written (default_transaction_read_only)"),
    )
    for wrong, said in problems:
        if wrong:
            raise StoreUnsafe(to.name, said)
    # A pooler invents the number of the process that it hands to its client.
    pooled = to.pooled if to.pooled is not None else backend != db.pgconn.backend_pid
    if not pooled:
        db.execute(_PLANS)
    return Session(db, prepared=not pooled)
