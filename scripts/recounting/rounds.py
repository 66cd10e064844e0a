"""Benchmarks: the ratios of every round taken again, and what a call left in the store."""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from recounting.ground import STORE, Counts, NotCountable

ROUNDS = "rounds.json"
ROWS = "SELECT (SELECT count(*) FROM operation), (SELECT count(*) FROM event), (SELECT count(*) FROM body)"


def bench(top: Path) -> Counts:
    """Take every ratio again from the rounds' own figures, and count the rows of the store."""
    try:
        rounds = json.loads((top / ROUNDS).read_text("utf-8"))
        one, calls = rounds["one"], rounds["calls"]
        with closing(sqlite3.connect(f"{(top / STORE).resolve().as_uri()}?mode=ro", uri=True)) as store:
            rows = store.execute(ROWS).fetchone()
    except (OSError, ValueError, KeyError, sqlite3.Error) as broken:
        raise NotCountable(f"{top} cannot be counted: {broken}") from broken
    return {
        "sequential_ratio": ratio(one["mine"], one["same"]),
        "thin_ratio": ratio(one["mine"], one["thin"]),
        "async_ratio": ratio(one["async"], one["thin"]),
        "concurrent_ratio": {name: ratio(calls[name], calls["raw"]) for name in ("threads", "tasks")},
        "p50_ms": {name: round(statistics.median(found) * 1e3, 3) for name, found in one.items()},
        "rounds": len(one["mine"]),
        "rows_per_operation": round(sum(rows) / rows[0], 3),
    }


def ratio(subject: Sequence[float], floor: Sequence[float]) -> float:
    """The median of the rounds' own ratios."""
    return round(statistics.median(s / f for s, f in zip(subject, floor, strict=True)), 3)
