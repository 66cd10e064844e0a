"""The benchmark on PostgreSQL: a guarded call beside two bare statements on the same server, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.lab.bench.floors import OUTCOME, load, thin_row, timed
from counterfoil.lab.bench.measure import interleave, ratio, spread
from counterfoil.lab.bench.subject import Subject
from counterfoil.lab.database import server
from counterfoil.ports.store import Store

CONNECTIONS = 16
"""Of the floor under load; each is driven flat out by a thread of its own."""
CALLERS = 64
WARM_UP_CALLS = 200
LOAD_SECONDS = 2.0
LOAD_ROUNDS = 3
BARS: Mapping[str, tuple[str, float]] = {
    "thin_ratio": ("<=", 1.25),
    "async_ratio": ("<=", 1.5),
    "concurrent_ratio.threads": (">=", 1.2),
    "concurrent_ratio.tasks": (">=", 1.6),
    "fsyncs_per_call.one": ("<=", 2.05),
    "fsyncs_per_call.many": ("<=", 0.1),
}

_THIN = """
CREATE TABLE thin (
    id BIGINT PRIMARY KEY, tenant TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, key TEXT NOT NULL,
    fingerprint BYTEA NOT NULL, state INTEGER NOT NULL, request TEXT NOT NULL, outcome TEXT,
    created_at DOUBLE PRECISION NOT NULL, settled_at DOUBLE PRECISION
);
CREATE UNIQUE INDEX thin_identity ON thin (tenant, actor, action, key);
CREATE INDEX thin_unresolved ON thin (created_at) WHERE state < 2;
CREATE INDEX thin_fingerprint ON thin (fingerprint);
"""
_CLAIM = (
    b"INSERT INTO thin (id, tenant, actor, action, key, fingerprint, state, request, created_at) "
    b"VALUES (%s, %s, %s, %s, %s, %s, 1, %s, %s)"
)
_SETTLE = b"UPDATE thin SET state = 2, outcome = %s, settled_at = %s WHERE id = %s"
_SYNCS = b"SELECT coalesce(sum(fsyncs), 0) FROM pg_stat_io WHERE object = 'wal'"


class Thin:
    """Two prepared autocommit statements on one narrow table, through psycopg.

    Args:
        url: of the database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._db = self._connect()
        for statement in _THIN.split(";")[:-1]:
            self._db.execute(statement)

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(self._url, autocommit=True, prepare_threshold=0)

    def block(self, n: int) -> list[float]:
        """Perform n operations from one caller; return their durations in seconds."""
        return timed([thin_row() for _ in range(n)], lambda row: _operation(self._db, row))

    @contextmanager
    def callers(self, count: int) -> Iterator[list[Callable[[], None]]]:
        """Callers that each have a connection of their own."""
        made = [self._connect() for _ in range(count)]
        try:
            yield [lambda db=db: _operation(db, thin_row()) for db in made]  # type: ignore[misc]
        finally:
            for db in made:
                db.close()

    def syncs(self, store: Store) -> int:
        """How often the server has synced its log so far, by its own count.

        Args:
            store: of the subject, whose session tells what it did only once a second unless it is made to.
        """
        with store.lead() as session:
            session.execute("SELECT pg_stat_force_next_flush()")
        (count,) = self._db.execute(_SYNCS).fetchone()
        return int(count)

    def close(self) -> None:
        """Hang up."""
        self._db.close()


def _operation(db: Any, row: tuple[Any, ...]) -> None:
    db.execute(_CLAIM, row)
    db.execute(_SETTLE, (OUTCOME, row[7], row[0]))


def run(*, rounds: int, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Measure on a server of our own, on the disk of the current folder; return the figures, and every round's own.

    Args:
        rounds: interleaved blocks of each subject.
        progress: told what is measured next.
    """
    progress("starting a server")
    with server(Path.cwd()) as made:
        subject, thin = Subject(made.url()), Thin(made.url())
        try:
            progress("warming up")
            for _ in range(WARM_UP_CALLS):
                subject.call()
            return _figures(subject, thin, rounds, progress)
        finally:
            thin.close()
            subject.close()


def _figures(subject: Subject, thin: Thin, rounds: int, progress: Callable[[str], None]) -> dict[str, Any]:
    progress("one caller, in turn with the floor")
    one = interleave({"mine": subject.block, "async": subject.ablock, "thin": thin.block}, rounds=rounds)
    progress("fsyncs")
    store = subject.ledger.store
    before = thin.syncs(store)
    subject.block(100)
    lone = (thin.syncs(store) - before) / 100
    progress(f"{CALLERS} callers, in turn with {CONNECTIONS} raw connections")
    calls: dict[str, list[float]] = {"threads": [], "tasks": [], "raw": []}
    syncs = 0
    for _ in range(LOAD_ROUNDS):
        with thin.callers(CONNECTIONS) as callers:
            calls["raw"].append(load(callers, LOAD_SECONDS))
        before = thin.syncs(store)
        calls["threads"].append(load([subject.call] * CALLERS, LOAD_SECONDS))
        calls["tasks"].append(subject.tasks(CALLERS, LOAD_SECONDS))
        syncs += thin.syncs(store) - before
    made = sum(calls["threads"] + calls["tasks"]) * LOAD_SECONDS
    return {
        "store": "postgresql",
        "thin_ratio": ratio(one["mine"], one["thin"]),
        "async_ratio": ratio(one["async"], one["thin"]),
        "concurrent_ratio": {name: ratio(calls[name], calls["raw"]) for name in ("threads", "tasks")},
        "fsyncs_per_call": {"one": round(lone, 3), "many": round(syncs / made, 4)},
        "p50_ms": {name: round(statistics.median(found) * 1e3, 3) for name, found in one.items()},
        "per_second": {name: [round(rate) for rate in found] for name, found in calls.items()},
        "rounds": rounds,
        "quartiles": spread(one, calls),
        "rounds_kept": {"one": one, "calls": calls},
    }
