"""Which window a kill fell into: read from the store right after it, and once more when all is over."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab.scoreboard import SEQ_BITS, read_only

WORKER_DEAD = "house.worker_dead"
"""The rule of the evidence by which another worker records that this one has died."""


class Window(StrEnum):
    """What the killed process was between."""

    BEFORE_CLAIM = "before_claim"
    """It had claimed nothing and paid no look."""
    CLAIM_TO_OUTCOME = "claim_to_outcome"
    """It had claimed an attempt whose outcome was not on record."""
    LOOK_TO_EVIDENCE = "look_to_evidence"
    """It had paid for a look whose evidence was not on record, and had no attempt open."""
    AFTER_OUTCOME = "after_outcome"
    """All it had begun was on record."""


class Fall(NamedTuple):
    """Where one killed process fell."""

    worker: str = ""
    """Its id; empty where it had not registered."""
    window: Window = Window.BEFORE_CLAIM
    at: float = 0.0
    """When the last event before it was written, by the clock of the store."""


def fallen(store: Path | str, pid: int) -> Fall:
    """Say which worker a killed process was, and where it was killed; all of it is read at one moment.

    Args:
        store: the receipts, read as the kill left them.
        pid: the killed process.
    """
    if _is_missing(store):
        return Fall()
    with closing(read_only(store)) as database:
        database.execute("BEGIN")
        if not _is_made(database):
            return Fall()
        worker = _worker(database, pid)
        fell = _window(database, worker) if worker else Window.BEFORE_CLAIM
        (at,) = database.execute("SELECT max(at) FROM event").fetchone()
        return Fall(worker, fell, float(at or 0.0))


def is_made(store: Path | str) -> bool:
    """Whether receipts stand there with all their tables; a file that a kill left half-made is none yet."""
    if _is_missing(store):
        return False
    with closing(read_only(store)) as database:
        return _is_made(database)


def _is_missing(store: Path | str) -> bool:
    return isinstance(store, Path) and not store.exists()


def _is_made(database: sqlite3.Connection) -> bool:
    try:
        return bool(database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'worker'").fetchone())
    except sqlite3.OperationalError:
        return False  # a reader cannot roll the half-made file back, and nothing is in it


def _worker(database: sqlite3.Connection, pid: int) -> str:
    row = database.execute("SELECT id FROM worker WHERE pid = ? ORDER BY started_at DESC LIMIT 1", (pid,)).fetchone()
    return str(row[0]) if row else ""


def _window(database: sqlite3.Connection, worker: str) -> Window:
    """Follow what the worker began to what it wrote down itself; what others wrote of it came after its death."""
    claims: set[tuple[int, int]] = set()
    looks: set[int] = set()
    lost: set[Window] = set()
    began = False
    for n, kind, record in _events(database):
        if kind == "begun" and record["attempt"].get("worker") == worker:
            claims.add((n, record["attempt"]["number"]))
            began = True
        elif kind == "looking" and record["facts"].get("by") == worker:
            looks.add(n)
            began = True
        elif kind == "looking" and n in looks:
            lost.add(Window.LOOK_TO_EVIDENCE)  # another worker looks: this one's evidence never came
        elif kind == "observed":
            if record.get("rule") == WORKER_DEAD and (n, record["attempt"]) in claims:
                lost.add(Window.CLAIM_TO_OUTCOME)
            claims.discard((n, record["attempt"]))
            if record["source"] == "look":
                looks.discard(n)
    if claims or Window.CLAIM_TO_OUTCOME in lost:
        return Window.CLAIM_TO_OUTCOME
    if looks or lost:
        return Window.LOOK_TO_EVIDENCE
    return Window.AFTER_OUTCOME if began else Window.BEFORE_CLAIM


def _events(database: sqlite3.Connection) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for row, kind, record in database.execute("SELECT id, kind, record FROM event ORDER BY id"):
        yield row >> SEQ_BITS, kind, json.loads(record)
