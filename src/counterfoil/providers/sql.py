"""The SQL provider: one statement in one transaction on PostgreSQL, named on the receipt before it is committed.

connect, statement, note the transaction's id | COMMIT             | its answer
nothing can be committed                      | Silent, look by id | Replied
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any
from urllib.parse import unquote

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Jsonb

from counterfoil.domain.answer import Answer, Replied, Silent
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMisplaced, SecretMissing
from counterfoil.domain.reading import Sought, named, requests_of
from counterfoil.domain.template import document_of, render
from counterfoil.ports import provider
from counterfoil.providers.deadline import Deadline

ROWS_MAX = 100
"""Of what RETURNING gives back; a receipt needs an id and a state, not a table."""
KEY_NAME = "provider_key"
"""The operation's own key, for statements that store it."""
FUTURE = 1_000_000
"""How far beyond the last transaction id the negative control asks."""

_BEGINS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "SELECT", "CALL"})
"""What a statement may begin with: none of these ends a transaction."""
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_NAME = re.compile(r"([0-9]+)\.([0-9A-F]{8})\.([0-9]+)")
_SELF = """
SELECT system_identifier::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), pg_current_xact_id()::text
FROM pg_control_system()
"""
_WHERE = "SELECT system_identifier::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM pg_control_system()"
_DEFAULTS = {"client_encoding": "UTF8", "application_name": "counterfoil"}


class Database(msgspec.Struct, frozen=True, kw_only=True):
    """The database, and who is let in there."""

    url: str
    """For libpq, without a password."""
    password: Callable[[], str] | None = None
    password_from: str = ""
    """Where it comes from, which an approval is bound to."""


class SqlProvider:
    """Carries one statement out, for one account in one database; it judges and repeats nothing.

    Args:
        contract: the action's contract.
        database: where.
        statement: the statement; `%(NAME)s` stands for the payload's field of that name.
        account: the account that its credentials open.

    Raises:
        BadValue: it is no URL of a database, holds a password, or the statement might end its own transaction.
    """

    def __init__(self, contract: Contract, *, database: Database, statement: str, account: str) -> None:
        self._contract, self._database, self._account = contract, database, account
        self._statement = statement
        word = (statement.split(maxsplit=1) or [""])[0].upper()
        if word not in _BEGINS:
            raise BadValue("statement", word, wanted=f"one statement that begins with {', '.join(sorted(_BEGINS))}")
        self._fields = frozenset(_PLACEHOLDER.findall(statement))
        try:
            known = conninfo_to_dict(database.url)
        except psycopg.Error:
            known = {"password": ""}
        if "password" in known or not database.url.startswith(("postgresql://", "postgres://")):
            # Raised without the URL: it may hold one.
            raise BadValue("url", "not shown", wanted="postgresql://USER@HOST/DATABASE, and the password beside it")

    def __repr__(self) -> str:
        return f"SqlProvider({self._contract.id!r}, account={self._account!r})"

    def check(self, order: provider.SendOrder) -> None:
        """Refuse, before anything is claimed, what could never be carried out as it stands.

        Raises:
            PayloadRefused: the payload lacks a field that the statement names.
            SecretMissing: the password has no value.
            SecretMisplaced: the order is for another account.
        """
        if order.account != self._account:
            raise SecretMisplaced(self._contract.id, pointer="/password", why="opens another account than the intent's")
        self._values(order)
        if self._reached() is None:
            raise SecretMissing(self._contract.id, name="password", problem="has no value")

    def form(self, order: provider.SendOrder) -> bytes:
        """Say what would be carried out, with the password as the place it comes from.

        Raises:
            PayloadRefused: the payload lacks a field that the statement names.
        """
        self._values(order)
        where = [self._database.url, self._database.password_from]
        return msgspec.json.encode([where, self._statement, order.payload])

    def send(self, order: provider.SendOrder, flight: provider.Flight) -> Answer:
        """Carry it out once; the transaction's id is durable on the receipt before COMMIT leaves."""
        if order.account != self._account:
            return Silent(may_have_left=False, reason="not_ours")
        try:
            values = self._values(order)
        except PayloadRefused:
            return Silent(may_have_left=False, reason="not_rendered")
        reached = self._reached()
        if reached is None:
            return Silent(may_have_left=False, reason="secret_missing")
        deadline = Deadline(order.deadline_seconds)
        with _open(reached, deadline) as db:
            if db is None:
                return Silent(may_have_left=False, reason="connect_failed")
            answer, done = _prepared(db, self._statement, values)
            if done is None:
                return answer
            if not flight.note(done["xid"]):
                return Silent(may_have_left=False, reason="not_noted")
            if deadline.left() <= 0:
                return Silent(may_have_left=False, reason="deadline")
            flight.may_have_left = True
            # Crash here: not committed, but nobody can prove it without asking for the id.
            return _committed(db, done)

    def look(self, order: provider.LookOrder) -> tuple[Answer, ...]:
        """Ask what became of the transaction, and of one that never was; each read over a connection of its own."""
        sought = Sought(account=order.account, payload=order.payload, names=order.names)
        look = self._contract.looks[order.look]
        deadline, names = Deadline(order.deadline_seconds), named(look, sought)
        paths = [render(template, order.payload, names).target for template in requests_of(look, sought)]
        return tuple(self._asked(order.account, unquote(path.rpartition("/")[2]), deadline) for path in paths)

    def _asked(self, account: str, name: str, deadline: Deadline) -> Answer:
        reached = self._reached()
        if account != self._account or reached is None:
            return Silent(may_have_left=False, reason="not_ours" if reached else "secret_missing")
        with _open(reached, deadline) as db:
            if db is None:
                return Silent(may_have_left=False, reason="connect_failed")
            try:
                return _status(db, name)
            except psycopg.Error:
                return Silent(may_have_left=False, reason="look_failed")

    def _values(self, order: provider.SendOrder) -> dict[str, Any]:
        document = document_of(order.payload)
        if not isinstance(document, dict):
            raise PayloadRefused("", "is no object whose fields a statement could name")
        given = {**document, KEY_NAME: order.provider_key}
        for field in sorted(self._fields - given.keys()):
            raise PayloadRefused(f"/{field}", "is missing, and the statement names it")
        return {name: Jsonb(given[name]) if isinstance(given[name], dict | list) else given[name] for name in given}

    def _reached(self) -> str | None:
        """How the database is reached, password and all; None where that cannot be had."""
        if self._database.password is None:
            return make_conninfo(self._database.url, **_DEFAULTS)
        try:
            return make_conninfo(self._database.url, password=self._database.password(), **_DEFAULTS)
        except Exception:  # noqa: BLE001 - a vault's error may hold the password; without it nothing is reached
            return None


class _Timed(psycopg.Connection[Any]):
    """A connection whose every wait ends at one deadline; what it waited for is then nobody's to know."""

    deadline: Deadline

    def wait(self, gen: Generator[Any, Any, Any], interval: float = 0.05, timeout: float | None = None) -> Any:  # noqa: ARG002
        """Wait as usual, and not beyond the deadline."""
        return super().wait(_bounded(gen, self.deadline), interval)


def _bounded(gen: Generator[Any, Any, Any], deadline: Deadline) -> Generator[Any, Any, Any]:
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if deadline.left() <= 0:
                raise psycopg.OperationalError("the deadline has passed")
            wanted = gen.send(ready)
    except StopIteration as ended:
        return ended.value


@contextlib.contextmanager
def _open(reached: str, deadline: Deadline) -> Iterator[_Timed | None]:
    """A fresh connection, or None; whatever becomes of it, it is closed and nothing of it is committed behind us."""
    db: _Timed | None = None
    try:
        db = _Timed.connect(reached, connect_timeout=max(1, int(deadline.left())))
        db.deadline = deadline
    except psycopg.Error:
        db = None  # its text may quote what the URL holds
    try:
        yield db
    finally:
        if db is not None:
            db.close()


def _prepared(db: _Timed, statement: str, values: dict[str, Any]) -> tuple[Answer, dict[str, Any] | None]:
    """Everything but COMMIT: what was done, or the answer that says why nothing can be."""
    nothing = Silent(may_have_left=False, reason="closed")
    try:
        system, timeline, xid = db.execute(_SELF).fetchone() or ("", "", "")
    except psycopg.Error:
        return Silent(may_have_left=False, reason="not_writable"), None  # a standby, for one
    try:
        cursor = db.execute(statement, values)
        rows = [list(row) for row in cursor.fetchmany(ROWS_MAX)] if cursor.description else []
        done = {"xid": f"{system}.{timeline}.{xid}", "rows": rows, "rowcount": cursor.rowcount}
    except psycopg.Error as error:
        return _refused(error, "statement") or nothing, None
    intact = db.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS
    return nothing, done if intact else None


def _committed(db: _Timed, done: dict[str, Any]) -> Answer:
    try:
        with db.cursor() as cursor:
            tag = cursor.execute("COMMIT").statusmessage
    except psycopg.Error as error:
        return _refused(error, "commit") or Silent(may_have_left=True, reason="closed")
    return _said(200, {**done, "committed": tag == "COMMIT"})


def _refused(error: psycopg.Error, stage: str) -> Replied | None:
    """The server's own ERROR; a FATAL one ends the connection, and says nothing of what was under way."""
    if error.sqlstate is None or error.diag.severity_nonlocalized != "ERROR":
        return None
    return _said(409, {"stage": stage, "sqlstate": error.sqlstate, "class": error.sqlstate[:2]})


def _status(db: _Timed, name: str) -> Replied:
    """What the server says of a transaction by the name it was noted by."""
    db.autocommit = True
    if (row := db.execute("SELECT pg_is_in_recovery()").fetchone()) and row[0]:
        return _said(200, {"xid": name, "status": "asked of a standby"})
    parts = _NAME.fullmatch(name)
    if parts is None:
        return _never(db, name)
    here = db.execute(_WHERE).fetchone()
    if here != (parts[1], parts[2]):
        # Another system, or one that was promoted or restored since: the same number is another transaction there.
        return _said(200, {"xid": name, "status": "of another timeline"})
    found = db.execute("SELECT pg_xact_status(%s::xid8)", (parts[3],)).fetchone()
    return _said(200, {"xid": name, "status": found[0] if found else None})


def _never(db: _Timed, name: str) -> Replied:
    """What the server says of a transaction id that it has not given out."""
    row = db.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    try:
        beyond = str(int(row[0]) + FUTURE) if row else "0"
        found = db.execute("SELECT pg_xact_status(%s::xid8)", (beyond,)).fetchone()
    except psycopg.errors.InvalidParameterValue:
        return _said(404, {"xid": name})
    return _said(200, {"xid": name, "status": found[0] if found else None})


def _said(status: int, document: dict[str, Any]) -> Replied:
    return Replied(status=status, body=json.dumps(document, default=str).encode())
