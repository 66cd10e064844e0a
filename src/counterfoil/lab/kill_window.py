"""Which window a kill fell into: read from the store right after it, and once more when all is over."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Any

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


def window(store: Path, pid: int) -> tuple[str, Window]:
    """Say which worker a killed process was, and where it was killed.

    Args:
        store: the receipts file, read as the kill left it.
        pid: the killed process.

    Returns:
        The worker's id, empty where it had not registered, and the window.
    """
    if not is_made(store):
        return "", Window.BEFORE_CLAIM
    with closing(read_only(store)) as database:
        worker = _worker(database, pid)
        return worker, _window(database, worker) if worker else Window.BEFORE_CLAIM


def is_made(store: Path) -> bool:
    """Whether a receipts file stands there with all its tables; one that a kill left half-made is none yet."""
    if not store.exists():
        return False
    with closing(read_only(store)) as database:
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
