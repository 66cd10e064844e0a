"""A store that holds many operations already: rows cast from calls that were made, written by the store's own schema.

No call of the product is made for them, so that a million take a minute. Each is whole: it has an id, a key, a
payload, a fingerprint and an effect of its own, random as in real traffic, and its events are chained. `counterfoil
verify` finds nothing wrong with it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from counterfoil.domain.canonical import fingerprint
from counterfoil.domain.event import chain
from counterfoil.domain.identifier import operation_id
from counterfoil.domain.intent import print_of, print_prefix
from counterfoil.domain.operation import COLUMNS
from counterfoil.domain.payload import content, salted_digest
from counterfoil.lab.bench.subject import Subject
from counterfoil.store import rows
from counterfoil.store.sqlite import SqliteStore

STUCK_EVERY = 1_000
"""One operation in so many is unknown and waits for somebody: what `queue` lists."""
SAMPLES = 32
BATCH = 10_000
_CACHE_KIB = 256 << 10
"""While the store is filled only: random keys touch every page of an index."""
_ID, _KEY, _FINGERPRINT, _EFFECT, _ACCOUNT = (
    COLUMNS.index(name) for name in ("id", "key", "fingerprint", "effect", "account")
)
_OWN = (_ID, _KEY, _FINGERPRINT, _EFFECT)
"""What no two operations share; nor their payload, whose digest is on record."""
_EVENTS = "SELECT id, kind, at, record, body, hash FROM event WHERE id BETWEEN ? AND ? ORDER BY id"
_TABLES = {
    "operation": f"COPY operation ({', '.join(COLUMNS)}) FROM STDIN",
    "event": "COPY event (id, kind, at, record, body, hash) FROM STDIN",
}
Row = tuple[Any, ...]


class Mould:
    """One call that was made, from which others are cast.

    Args:
        store: where it stands.
        n: its row number.
    """

    def __init__(self, store: Any, n: int) -> None:
        (self.operation,) = store.query(f"{rows.SELECT} WHERE n = ?", (n,))
        self.events = store.query(_EVENTS, (rows.event_id(n, 0), rows.event_id(n + 1, 0) - 1))
        self._payload = bytes(self.events[0][4])
        self._old = [*(str(self.operation[column]) for column in _OWN), salted_digest(self._payload)]
        self._prefix = print_prefix(self.operation[_ACCOUNT], "")

    def cast(self, n: int) -> tuple[Row, list[Row]]:
        """Make the rows of another such operation.

        Args:
            n: its row number.
        """
        noise = os.urandom(32)
        key, effect = (_like(self.operation[column], noise.hex()) for column in (_KEY, _EFFECT))
        payload = self._payload.replace(self.operation[_KEY].encode(), key.encode())
        told = fingerprint(print_of(self._prefix, content(payload)))
        mine = [operation_id(n, noise[:10]), key, told, effect, salted_digest(payload)]
        row = [n, *self.operation[1:]]
        for column, value in zip(_OWN, mine, strict=False):
            row[column] = value
        spelled = [(old.encode(), new.encode()) for old, new in zip(self._old, mine, strict=True)]
        events, head = [], b""
        for seq, (_, kind, at, record, body, _hash) in enumerate(self.events, 1):
            said = bytes(record)
            for old, new in spelled:
                said = said.replace(old, new)
            head = chain(head, mine[0], seq, kind, at, said)
            events.append((rows.event_id(n, seq), kind, at, said, payload if seq == 1 else body, head))
        return tuple(row), events


def _like(old: str, noise: str) -> str:
    """Text of the same length and the same first letters, and random behind them."""
    start = old[: old.index(":") + 1] if ":" in old else "order-"
    return start + (noise * 2)[: len(old) - len(start)]


def fill(subject: Subject, count: int) -> int:
    """Add so many operations to a store; return how many of them are unresolved.

    Args:
        subject: has made no call yet, or few: the new rows stand before its own.
        count: of operations.
    """
    settled, stuck = _moulds(subject)
    store = subject.ledger.store
    (first,) = store.query("SELECT min(n) FROM operation")[0]
    start = int(str(first)) - count
    made = ((stuck if i % STUCK_EVERY == 0 else next(settled)).cast(start + i) for i in range(count))
    if isinstance(store, SqliteStore):
        _into_file(store, made)
    else:
        _into_database(store, made)
    return len(range(0, count, STUCK_EVERY))


def _moulds(subject: Subject) -> tuple[Iterator[Mould], Mould]:
    store = subject.ledger.store
    subject.call()  # the first goes a longer way than the others
    settled = [Mould(store, subject.call().operation.n) for _ in range(SAMPLES)]
    return itertools.cycle(settled), Mould(store, subject.lose().operation.n)


def _batches(made: Iterator[tuple[Row, list[Row]]]) -> Iterator[tuple[list[Row], list[Row]]]:
    while batch := list(itertools.islice(made, BATCH)):
        yield [row for row, _ in batch], [event for _, events in batch for event in events]


def _into_file(store: SqliteStore, made: Iterator[tuple[Row, list[Row]]]) -> None:
    with store.lead() as db:
        (cache,) = db.execute("PRAGMA cache_size").fetchone()
        db.execute(f"PRAGMA cache_size = {-_CACHE_KIB}")
        for operations, events in _batches(made):
            db.execute("BEGIN IMMEDIATE")
            db.executemany(rows.INSERT, operations)
            db.executemany(rows.INSERT_EVENT, events)
            db.execute("COMMIT")
        db.execute(f"PRAGMA cache_size = {cache}")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _into_database(store: Any, made: Iterator[tuple[Row, list[Row]]]) -> None:
    with store.lead() as session:
        for operations, events in _batches(made):
            session.begin()
            for table, batch in (("operation", operations), ("event", events)):
                _copied(session, table, batch)
            session.commit()
        # What a server does by itself within a minute or so.
        session.db.execute(b"VACUUM (ANALYZE)")
        session.db.execute(b"CHECKPOINT")


def _copied(session: Any, table: str, batch: Sequence[Row]) -> None:
    with session.db.cursor().copy(_TABLES[table].encode()) as copying:
        for row in batch:
            copying.write_row(row)
