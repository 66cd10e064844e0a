"""Benchmarks: every round's ratios taken again, of peers and full stores too, and what a call left in the store."""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from recounting.ground import STORE, Counts, NotCountable

ROUNDS = "rounds.json"
OURS = ("mine", "async", "thin")
"""What is measured beside the peers."""
Rounds = dict[str, Sequence[float]]
ROWS = "SELECT (SELECT count(*) FROM operation), (SELECT count(*) FROM event), (SELECT count(*) FROM body)"


def bench(top: Path) -> Counts:
    """Take every ratio again from the rounds' own figures, and count the rows of the store, where it is a file."""
    try:
        rounds = json.loads((top / ROUNDS).read_text("utf-8"))
        counts = one_store(rounds["one"], rounds["calls"])
        if (top / STORE).exists():
            with closing(sqlite3.connect(f"{(top / STORE).resolve().as_uri()}?mode=ro", uri=True)) as store:
                rows = store.execute(ROWS).fetchone()
            counts["rows_per_operation"] = round(sum(rows) / rows[0], 3)
        if "peers" in rounds:
            counts |= beside(rounds["peers"])
        if "growth" in rounds:
            one = rounds["growth"]["one"]
            counts["growth"] = {"ratio": ratio(one["full"], one["empty"]), "p50_ms": medians(one)}
    except (OSError, ValueError, KeyError, sqlite3.Error) as broken:
        raise NotCountable(f"{top} cannot be counted: {broken}") from broken
    return counts


def one_store(one: Rounds, calls: Rounds) -> Counts:
    """What a call costs over what its store costs."""
    counts: Counts = {
        "thin_ratio": ratio(one["mine"], one["thin"]),
        "async_ratio": ratio(one["async"], one["thin"]),
        "concurrent_ratio": {name: ratio(calls[name], calls["raw"]) for name in ("threads", "tasks")},
        "p50_ms": medians(one),
        "rounds": len(one["mine"]),
    }
    return counts | ({"sequential_ratio": ratio(one["mine"], one["same"])} if "same" in one else {})


def beside(rounds: dict[str, Rounds]) -> Counts:
    """What other libraries cost: each was driven by tasks or threads, and ours is compared in the same way."""
    one, calls = rounds["one"], rounds["calls"]
    names = [name for name in one if name not in OURS]
    peers = {
        name: {"mine_ratio": ratio(one[name], one["mine"]), "thin_ratio": ratio(one[name], one["thin"])}
        for name in names
    }
    over = {name: {way: ratio(calls[way], calls[name]) for way in ("threads", "tasks")} for name in names}
    return {"peers": peers, "over": over}


def medians(one: Rounds) -> dict[str, float]:
    """The median of the rounds' medians, in milliseconds."""
    return {name: round(statistics.median(found) * 1e3, 3) for name, found in one.items()}


def ratio(subject: Sequence[float], floor: Sequence[float]) -> float:
    """The median of the rounds' own ratios."""
    return round(statistics.median(s / f for s, f in zip(subject, floor, strict=True)), 3)
