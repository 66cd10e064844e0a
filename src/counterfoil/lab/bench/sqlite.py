"""The benchmark on SQLite: a guarded call beside what the same rows and the thinnest ones cost, in one run."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from counterfoil.lab.bench.floors import SameRows, Thin, load
from counterfoil.lab.bench.fsyncs import counted
from counterfoil.lab.bench.loop_lag import lag_p99_ms
from counterfoil.lab.bench.measure import interleave, quartiles, ratio, spread
from counterfoil.lab.bench.startup import cli_start_ms, import_ms
from counterfoil.lab.bench.subject import Subject
from counterfoil.lab.run_folder import STORE

CALLERS = 64
WARM_UP_CALLS = 400
LOAD_SECONDS = 2.0
LOAD_ROUNDS = 3
ROWS_PER_OPERATION = 3
"""One operation and two events: a faster run with fewer rows is another product."""
BARS: Mapping[str, tuple[str, float]] = {
    "sequential_ratio": ("<=", 1.30),
    "thin_ratio": ("<=", 1.40),
    "async_ratio": ("<=", 2.0),
    "loop_lag_ms_p99": ("<=", 5.0),
    "concurrent_ratio.threads": (">=", 2.5),
    "concurrent_ratio.tasks": (">=", 4.0),
    "fsyncs_per_call.one": ("<=", 2.05),
    "fsyncs_per_call.many": ("<=", 0.1),
    "rows_per_operation": ("==", ROWS_PER_OPERATION),
}


def run(*, rounds: int, keep: Path | None = None, progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Measure on a file in the current folder; return the figures, and under `rounds_kept` every round's own.

    Args:
        rounds: interleaved blocks of each subject.
        keep: a folder that receives the store.
        progress: told what is measured next.
    """
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-bench-", dir=keep or Path.cwd()))
    subject, thin = Subject(folder / STORE), Thin(folder)
    try:
        progress("warming up")
        same = SameRows(folder, subject.warm_up(WARM_UP_CALLS))
        figures = _figures(subject, thin, same, rounds, progress)
        same.close()
        return figures
    finally:
        thin.close()
        subject.close()
        if keep is not None:
            shutil.copy2(folder / STORE, keep / STORE)
        shutil.rmtree(folder, ignore_errors=True)


def _figures(
    subject: Subject, thin: Thin, same: SameRows, rounds: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    progress("one caller, in turn with both floors")
    one = interleave(
        {"mine": subject.block, "async": subject.ablock, "thin": thin.block, "same": same.block}, rounds=rounds
    )
    progress("fsyncs and rows")
    measured = shape(subject)
    progress("64 callers, in turn with 64 raw connections")
    calls, many = _concurrent(subject, thin)
    progress("an event loop while another process holds the lock")
    lag = lag_p99_ms(subject)
    progress("start-up")
    return {
        "store": "sqlite",
        "sequential_ratio": ratio(one["mine"], one["same"]),
        "thin_ratio": ratio(one["mine"], one["thin"]),
        "async_ratio": ratio(one["async"], one["thin"]),
        "loop_lag_ms_p99": round(lag, 3),
        "concurrent_ratio": {name: ratio(calls[name], calls["raw"]) for name in ("threads", "tasks")},
        "fsyncs_per_call": {"one": measured["fsyncs"], "many": many},
        "rows_per_operation": measured["rows"],
        "bytes_per_operation": measured["bytes"],
        "cli_start_ms": round(cli_start_ms(Path(subject.store)), 1),
        "import_ms": round(import_ms(), 1),
        "p50_ms": {name: round(statistics.median(found) * 1e3, 3) for name, found in one.items()},
        "rounds": rounds,
        "quartiles": {"sequential_ratio": quartiles(one["mine"], one["same"]), **spread(one, calls)},
        "rounds_kept": {"one": one, "calls": calls},
    }


def shape(subject: Subject, calls: int = 400) -> dict[str, Any]:
    """Fsyncs, rows and bytes of one call, over enough calls to include the checkpoints they cause."""
    subject.call()  # both files are open
    with subject.ledger.store.lead() as db:
        before = _weigh(db)
    with counted(db) as count:
        for _ in range(calls):
            subject.call()
    with subject.ledger.store.lead() as db:
        after = _weigh(db)
    return {
        "fsyncs": round(count.syncs / calls, 3),
        "rows": round((after[0] - before[0]) / calls, 3),
        "bytes": round((after[1] - before[1]) / calls),
    }


def _weigh(db: Any) -> tuple[int, int]:
    """Rows of all tables, and bytes of the pages in use."""
    tables = ("operation", "event", "body")
    rows = sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)  # noqa: S608 - ours
    pages, free, size = (db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("page_count", "freelist_count", "page_size"))
    return rows, (pages - free) * size


def _concurrent(subject: Subject, thin: Thin) -> tuple[dict[str, list[float]], float]:
    """Calls per second of threads, tasks and raw connections, round by round, and fsyncs per call under load."""
    found: dict[str, list[float]] = {"threads": [], "tasks": [], "raw": []}
    syncs = calls = 0.0
    for _ in range(LOAD_ROUNDS):
        with thin.callers(CALLERS) as callers:
            found["raw"].append(load(callers, LOAD_SECONDS))
        with subject.ledger.store.lead() as db:
            pass  # the store writes through this connection for as long as nothing forks
        with counted(db) as count:
            found["threads"].append(load([subject.call] * CALLERS, LOAD_SECONDS))
            found["tasks"].append(subject.tasks(CALLERS, LOAD_SECONDS))
        syncs += count.syncs
        calls += (found["threads"][-1] + found["tasks"][-1]) * LOAD_SECONDS
    return found, round(syncs / calls, 4)
