"""The two writes of an ordinary call on PostgreSQL, each one statement: a first claim, and the settling of it.

Each locks without waiting, writes the operation by its unique indexes, appends its event, and says what it wrote; the
hash of the chain is computed by the server. Whatever stands in the way, a lock that is held, an index that refuses, a
policy that moved, another book or schema than the one that was opened, makes it write nothing: then the command is
judged the slow way, in a transaction that waits and reads. The same text serves one command and many: `given` is a row,
or arrays of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from counterfoil.domain.command import Claim, Command, Settle
from counterfoil.store import rows
from counterfoil.store.arrays import PACKS
from counterfoil.store.locks import KEY, POLICY
from counterfoil.store.migrating import SCHEMA

AT_MIN, AT_MAX = 1.0, 1e15
"""Between these PostgreSQL spells a number as Python does, but for the `.0` of whole ones."""

LINK = (
    "sha256({head} || convert_to('cf-event-1' || chr(10) || {id} || chr(10) || {seq} || chr(10) || {kind} || chr(10) "
    "|| {at}::text || CASE WHEN strpos({at}::text, '.') = 0 THEN '.0' ELSE '' END || chr(10), 'UTF8') || {record})"
)
"""`domain.event.chain`, in SQL; it rests on extra_float_digits > 0."""

_CLAIM_COLUMNS = {
    "n": "bigint", "id": "text", "tenant": "text", "actor": "text", "action": "text", "key": "text", "account": "text",
    "fingerprint": "text", "effect": "text", "owner": "text", "value": "double precision", "worker": "text",
    "send_seconds": "double precision", "record": "bytea", "body": "bytea", "policy": "bigint",
}  # fmt: skip
_SETTLE_COLUMNS = {
    "n": "bigint", "id": "text", "seq": "bigint", "head": "bytea", "dispatch": "text", "outcome": "text",
    "discrepancy": "text", "exposure": "bigint", "unresolved": "bigint", "settled_by": "text", "step": "text",
    "due_after": "double precision", "record": "bytea", "body": "bytea",
}  # fmt: skip
_TIMES = ("seen", "reckoned", "said")
"""What this process last judged by; what that makes it now; and a clock of a test's, or NULL for the server's own."""

# As `SqliteStore.now`: time goes on from where it was, where the clock was set back behind it. The time that is kept in
# the book is everybody's.
_CLOCK = "coalesce({said}, extract(epoch FROM clock_timestamp())::double precision)"
_FLOOR = "greatest({seen}, clock.at)"
_AT = f"greatest({_CLOCK}, CASE WHEN {_CLOCK} < {_FLOOR} THEN greatest({{reckoned}}, clock.at) ELSE {_FLOOR} END)"
_TRUSTED = f"""book.n = 1 AND book.id = {{book}} AND clock.n = 1 AND book.schema = {SCHEMA}
    AND current_setting('synchronous_commit') <> 'off' AND current_setting('extra_float_digits')::int > 0"""


def _claims(*, many: bool) -> bytes:
    v = _values(_CLAIM_COLUMNS, many=many)
    return f"""
WITH {_given(_CLAIM_COLUMNS, many=many)} free AS MATERIALIZED (
    SELECT {"given.*, " if many else ""}{_AT.format(**v)} AS at FROM {"given, " if many else ""}book, clock
    WHERE {_TRUSTED.format(**v)} AND (SELECT coalesce(max(policy.n), 0) FROM policy) = {v["policy"]}
        AND pg_try_advisory_xact_lock_shared({KEY.format(f"'{POLICY}'")})
        AND pg_try_advisory_xact_lock({KEY.format(v["effect"])})
), made AS (
    INSERT INTO operation (n, id, tenant, actor, action, key, account, fingerprint, effect, owner, value, created_at,
        permission, dispatch, outcome, disposition, discrepancy, attempts, exposure, unresolved, settled_by, held_by,
        looks, step, due_at, worker, deadline, updated_at, seq)
    SELECT {v["n"]}, {v["id"]}, {v["tenant"]}, {v["actor"]}, {v["action"]}, {v["key"]}, {v["account"]},
        {v["fingerprint"]}, {v["effect"]}, {v["owner"]}, {v["value"]}, at,
        'authorized', 'started', 'unobserved', 'open', 'none', 1, 1, 1, '', '',
        0, 'recover', at + {v["send_seconds"]}, {v["worker"]}, at + {v["send_seconds"]}, at, 1
    FROM free AS given ON CONFLICT DO NOTHING RETURNING n AS made, created_at AS moment
)
INSERT INTO event (id, kind, at, record, body, hash)
SELECT made * {rows.EVENTS} + 1, 'begun', moment, {v["record"]}, {v["body"]},
    {LINK.format(head="''::bytea", id=v["id"], seq="'1'", kind="'begun'", at="moment", record=v["record"])}
FROM made{_JOINED if many else ""} RETURNING id / {rows.EVENTS}, at, hash
""".encode()  # noqa: S608 - names of our own


def _settlements(*, many: bool) -> bytes:
    v = _values(_SETTLE_COLUMNS, many=many)
    v["next"] = f"({v['seq']} + 1)"
    return f"""
WITH {_given(_SETTLE_COLUMNS, many=many)} free AS MATERIALIZED (
    SELECT {"given.*, " if many else ""}greatest({_AT.format(**v)}, stands.updated_at) AS at
    FROM {"given, " if many else ""}book, clock, LATERAL (
        SELECT effect, updated_at FROM operation WHERE operation.n = {v["n"]} AND operation.seq = {v["seq"]} OFFSET 0
    ) AS stands WHERE {_TRUSTED.format(**v)} AND pg_try_advisory_xact_lock({KEY.format("stands.effect")})
), made AS (
    UPDATE operation SET dispatch = {v["dispatch"]}, outcome = {v["outcome"]}, discrepancy = {v["discrepancy"]},
        exposure = {v["exposure"]}, unresolved = {v["unresolved"]}, settled_by = {v["settled_by"]},
        step = {v["step"]}, due_at = CASE WHEN {v["step"]} = '' THEN 0 ELSE given.at + {v["due_after"]} END,
        updated_at = given.at, seq = {v["next"]}
    FROM free AS given WHERE operation.n = {v["n"]} AND operation.seq = {v["seq"]}
    RETURNING operation.n AS made, given.at AS moment
)
INSERT INTO event (id, kind, at, record, body, hash)
SELECT made * {rows.EVENTS} + {v["next"]}, 'observed', moment, {v["record"]}, {v["body"]},
    {LINK.format(head=v["head"], id=v["id"], seq=v["next"], kind="'observed'", at="moment", record=v["record"])}
FROM made{_JOINED if many else ""} RETURNING id / {rows.EVENTS}, at, hash
""".encode()  # noqa: S608 - names of our own


_JOINED = " JOIN free AS given ON given.n = made"


def _values(columns: dict[str, str], *, many: bool) -> dict[str, str]:
    """How the statement names what is to be written: a parameter each, or the columns of `given`."""
    found = {name: f"given.{name}" if many else f"${i}::{kind}" for i, (name, kind) in enumerate(columns.items(), 1)}
    times = {name: f"${i}::double precision" for i, name in enumerate(_TIMES, len(columns) + 1)}
    return found | times | {"book": f"${len(columns) + len(_TIMES) + 1}::text"}


def _given(columns: dict[str, str], *, many: bool) -> str:
    """Many rows come as an array of each column."""
    arrays = ", ".join(f"${i}::{kind}[]" for i, kind in enumerate(columns.values(), 1))
    return f"given AS (SELECT * FROM unnest({arrays}) AS given ({', '.join(columns)}))," if many else ""  # noqa: S608


def _claim_row(c: Claim) -> tuple[object, ...]:
    """The parameters of a claim."""
    i = c.intent
    return (
        c.n, c.id, i.tenant, i.actor, i.action, i.key, i.account, i.fingerprint, i.effect, c.owner, float(c.value),
        c.worker, float(c.send_seconds), c.record, c.body, c.policy,
    )  # fmt: skip


def _settle_row(s: Settle) -> tuple[object, ...]:
    """The parameters of a settlement."""
    return (s.n, s.id, s.seq, s.head, *s.columns, float(s.due_after), s.record, s.body)


class Write(NamedTuple):
    """One of the two, alone and with others of its kind."""

    one: bytes
    many: bytes
    row: Callable[[Any], tuple[object, ...]]
    """The parameters of one command; after them come the time's three, and the id of the book that was opened."""
    kinds: tuple[str, ...]

    def columns(self, commands: Sequence[Command]) -> list[bytes]:
        """The parameters of many: an array of each column."""
        rows_of_them = [self.row(command) for command in commands]
        return [PACKS[kind](column) for kind, column in zip(self.kinds, zip(*rows_of_them, strict=True), strict=True)]


CLAIMING = Write(_claims(many=False), _claims(many=True), _claim_row, tuple(_CLAIM_COLUMNS.values()))
SETTLING = Write(_settlements(many=False), _settlements(many=True), _settle_row, tuple(_SETTLE_COLUMNS.values()))


def is_plain(command: object) -> bool:
    """Whether a command may be written by one of these statements."""
    if type(command) is Claim:
        return command.breaker is None and len(command.body) <= rows.BODY_INLINE_MAX
    return type(command) is Settle and (command.body is None or len(command.body) <= rows.BODY_INLINE_MAX)
