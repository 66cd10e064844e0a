"""The two writes of an ordinary call on PostgreSQL, each one statement: a first claim, and the settling of it.

Each locks without waiting, writes the operation by its unique indexes, appends its event, and says what it wrote; the
hash of the chain is computed by the server. Whatever stands in the way, a lock that is held, an index that refuses, a
policy that moved, an older or newer schema, makes it write nothing: then the command is judged the slow way, in a
transaction that waits and reads. The same text serves one command and many: `given` is a row, or arrays of them.
"""

from __future__ import annotations

from counterfoil.domain.command import Claim, Settle
from counterfoil.store import rows
from counterfoil.store.locks import KEY, POLICY
from counterfoil.store.migrating import SCHEMA

AT_MIN, AT_MAX = 1.0, 1e15
"""Between these PostgreSQL spells a number as Python does, but for the `.0` of whole ones."""

LINK = (
    "sha256({previous} || convert_to('cf-event-1' || chr(10) || {operation} || chr(10) || {seq} || chr(10) || {kind} "
    "|| chr(10) || {at}::text || CASE WHEN strpos({at}::text, '.') = 0 THEN '.0' ELSE '' END || chr(10), 'UTF8') "
    "|| {record})"
)
"""`domain.event.chain`, in SQL; it rests on extra_float_digits > 0."""

# As `SqliteStore.now`: time goes on from where it was, where the clock was set back behind it. `seen` and `reckoned`
# are what this process last judged by and what that makes it now; the time kept in the book is everybody's.
_AT = """
    CASE WHEN clock >= greatest(seen, kept) THEN clock ELSE greatest(reckoned, kept) END AS at
    FROM (SELECT given.*, coalesce(said, extract(epoch FROM clock_timestamp())::double precision) AS clock,
        (SELECT at FROM clock) AS kept FROM {locked} AS given OFFSET 0) AS {timed}"""
_TRUSTED = f"""(SELECT schema FROM book) = {SCHEMA} AND current_setting('synchronous_commit') <> 'off'
        AND current_setting('extra_float_digits')::int > 0"""  # noqa: S608 - a number of our own

_CLAIM_COLUMNS = (
    ("n", "bigint"), ("id", "text"), ("tenant", "text"), ("actor", "text"), ("action", "text"), ("key", "text"),
    ("account", "text"), ("fingerprint", "text"), ("effect", "text"), ("owner", "text"), ("value", "double precision"),
    ("worker", "text"), ("send_seconds", "double precision"), ("record", "bytea"), ("body", "bytea"),
    ("policy", "bigint"),
)  # fmt: skip
_SETTLE_COLUMNS = (
    ("n", "bigint"), ("id", "text"), ("seq", "bigint"), ("head", "bytea"), ("dispatch", "text"), ("outcome", "text"),
    ("discrepancy", "text"), ("exposure", "bigint"), ("unresolved", "bigint"), ("settled_by", "text"), ("step", "text"),
    ("due_after", "double precision"), ("record", "bytea"), ("body", "bytea"),
)  # fmt: skip
_TIME_COLUMNS = (("seen", "double precision"), ("reckoned", "double precision"), ("said", "double precision"))


def _given(columns: tuple[tuple[str, str], ...], *, many: bool) -> str:
    """The rows to be written: parameters, or as many arrays; the time's parameters are of all rows alike."""
    count = len(columns)
    times = ", ".join(f"${count + i}::{kind} AS {name}" for i, (name, kind) in enumerate(_TIME_COLUMNS, 1))
    if not many:
        return (
            "SELECT " + ", ".join(f"${i}::{kind} AS {name}" for i, (name, kind) in enumerate(columns, 1)) + f", {times}"
        )
    arrays = ", ".join(f"${i}::{kind}[]" for i, (_, kind) in enumerate(columns, 1))
    names = ", ".join(name for name, _ in columns)
    return f"SELECT many.*, {times} FROM unnest({arrays}) AS many ({names})"  # noqa: S608 - names of our own


def _claims(*, many: bool) -> bytes:
    return f"""
WITH given AS MATERIALIZED ({_given(_CLAIM_COLUMNS, many=many)}),
free AS MATERIALIZED (
    SELECT * FROM given WHERE pg_try_advisory_xact_lock_shared({KEY.format(f"'{POLICY}'")})
        AND pg_try_advisory_xact_lock({KEY.format("effect")})
        AND (SELECT coalesce(max(p.n), 0) FROM policy AS p) = policy AND {_TRUSTED}
),
timed AS MATERIALIZED (SELECT timed.*, {_AT.format(locked="free", timed="timed")}
    WHERE clock BETWEEN {AT_MIN} AND {AT_MAX}),
made AS (
    INSERT INTO operation (n, id, tenant, actor, action, key, account, fingerprint, effect, owner, value, created_at,
        permission, dispatch, outcome, disposition, discrepancy, attempts, exposure, unresolved, settled_by, held_by,
        looks, step, due_at, worker, deadline, updated_at, seq)
    SELECT n, id, tenant, actor, action, key, account, fingerprint, effect, owner, value, at,
        'authorized', 'started', 'unobserved', 'open', 'none', 1, 1, 1, '', '',
        0, 'recover', at + send_seconds, worker, at + send_seconds, at, 1
    FROM timed ON CONFLICT DO NOTHING RETURNING n
)
INSERT INTO event (id, kind, at, record, body, hash)
SELECT n * {rows.EVENTS} + 1, 'begun', at, record, body,
    {LINK.format(previous="''::bytea", operation="id", seq="'1'", kind="'begun'", at="at", record="record")}
FROM timed WHERE n IN (SELECT n FROM made)
RETURNING id / {rows.EVENTS}, at, hash
""".encode()  # noqa: S608 - names of our own


def _settlements(*, many: bool) -> bytes:
    return f"""
WITH given AS MATERIALIZED ({_given(_SETTLE_COLUMNS, many=many)}),
free AS MATERIALIZED (
    SELECT given.*, stands.updated_at FROM given, LATERAL (
        SELECT effect, updated_at FROM operation WHERE operation.n = given.n AND operation.seq = given.seq OFFSET 0
    ) AS stands WHERE pg_try_advisory_xact_lock({KEY.format("stands.effect")}) AND {_TRUSTED}
),
judged AS MATERIALIZED (SELECT timed.*, {_AT.format(locked="free", timed="timed")}
    WHERE clock BETWEEN {AT_MIN} AND {AT_MAX}),
timed AS MATERIALIZED (SELECT judged.*, greatest(at, updated_at) AS moment FROM judged),
made AS (
    UPDATE operation SET dispatch = timed.dispatch, outcome = timed.outcome, discrepancy = timed.discrepancy,
        exposure = timed.exposure, unresolved = timed.unresolved, settled_by = timed.settled_by, step = timed.step,
        due_at = CASE WHEN timed.step = '' THEN 0 ELSE timed.moment + timed.due_after END,
        updated_at = timed.moment, seq = timed.seq + 1
    FROM timed WHERE operation.n = timed.n AND operation.seq = timed.seq RETURNING operation.n
)
INSERT INTO event (id, kind, at, record, body, hash)
SELECT n * {rows.EVENTS} + seq + 1, 'observed', moment, record, body,
    {LINK.format(previous="head", operation="id", seq="(seq + 1)", kind="'observed'", at="moment", record="record")}
FROM timed WHERE n IN (SELECT n FROM made)
RETURNING id / {rows.EVENTS}, at, hash
""".encode()  # noqa: S608 - names of our own


CLAIM, CLAIMS = _claims(many=False), _claims(many=True)
SETTLE, SETTLES = _settlements(many=False), _settlements(many=True)


def claim_row(c: Claim) -> tuple[object, ...]:
    """The parameters of a claim."""
    i = c.intent
    return (
        c.n, c.id, i.tenant, i.actor, i.action, i.key, i.account, i.fingerprint, i.effect, c.owner, float(c.value),
        c.worker, float(c.send_seconds), c.record, c.body, c.policy,
    )  # fmt: skip


def settle_row(s: Settle) -> tuple[object, ...]:
    """The parameters of a settlement."""
    return (s.n, s.id, s.seq, s.head, *s.columns, float(s.due_after), s.record, s.body)


def is_plain(command: object) -> bool:
    """Whether a command may be written by one of these statements."""
    if type(command) is Claim:
        return command.breaker is None and len(command.body) <= rows.BODY_INLINE_MAX
    return type(command) is Settle and (command.body is None or len(command.body) <= rows.BODY_INLINE_MAX)
