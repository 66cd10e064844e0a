"""What a call costs in a store that holds many operations already, beside one that holds next to none."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from counterfoil.lab.bench import stock
from counterfoil.lab.bench.floors import grow_wal
from counterfoil.lab.bench.footprint import footprint
from counterfoil.lab.bench.measure import interleave, quartiles, ratio
from counterfoil.lab.bench.subject import Subject
from counterfoil.lab.database import server
from counterfoil.store.sqlite import SqliteStore

WARM_UP_CALLS = 400
RATIO_MAX = 1.25
BAR_FROM = 1_000_000
"""Of a smaller store the ratio says nothing that anybody could rest on."""
VERBS = {"list": ["list"], "list_all": ["list", "--json"], "queue": ["queue", "--json"], "verify": ["verify", "--json"]}
"""What is asked of the full store; `verify` also shows that what was filled in is whole."""
Progress = Callable[[str], None]


def run(kind: str, operations: int, *, rounds: int, progress: Progress = lambda _: None) -> dict[str, Any]:
    """Measure a call in a full store and in an empty one, and the verbs that read them all.

    Args:
        kind: `sqlite` or `postgresql`.
        operations: how many the full one holds.
        rounds: interleaved blocks in each.
        progress: told what is measured next.

    Raises:
        RunFailed: a verb did not end as it must.
    """
    with _two(kind) as (full, empty):
        progress(f"filling a store with {operations:,} operations")
        found = _measured(full, empty, operations, rounds, progress)
        verbs = {}
        for name, arguments in VERBS.items():
            progress(f"counterfoil {' '.join(arguments)}, over {operations:,} operations")
            verbs[name] = footprint([*arguments, "--store", str(full)])
    return {**found, "verbs": verbs}


def _measured(full: str, empty: str, operations: int, rounds: int, progress: Progress) -> dict[str, Any]:
    with contextlib.closing(Subject(full)) as much, contextlib.closing(Subject(empty)) as little:
        start = time.perf_counter()
        unresolved = stock.fill(much, operations)
        filled = time.perf_counter() - start
        for subject in (much, little):
            _warmed_up(subject)
        progress("one caller, in turn with one in an empty store")
        one = interleave({"full": much.block, "empty": little.block}, rounds=rounds)
        size = _bytes(much)
    return {
        "operations": operations,
        "unresolved": unresolved,
        "ratio": ratio(one["full"], one["empty"]),
        "quartiles": quartiles(one["full"], one["empty"]),
        "p50_ms": {name: round(statistics.median(found) * 1e3, 3) for name, found in one.items()},
        "rounds_kept": {"one": one},
        "fill_seconds": round(filled, 1),
        "mib": round(size / (1 << 20), 1),
    }


def _warmed_up(subject: Subject) -> None:
    for _ in range(WARM_UP_CALLS):
        subject.call()
    if isinstance(subject.ledger.store, SqliteStore):
        with subject.ledger.store.lead() as db:
            grow_wal(db)


def _bytes(subject: Subject) -> int:
    """What all operations take in the store, indexes included."""
    store = subject.ledger.store
    if isinstance(store, SqliteStore):
        (pages,), (size,) = (store.query(f"PRAGMA {name}")[0] for name in ("page_count", "page_size"))
        return int(str(pages)) * int(str(size))
    return int(str(store.query("SELECT pg_total_relation_size('operation') + pg_total_relation_size('event')")[0][0]))


@contextlib.contextmanager
def _two(kind: str) -> Iterator[tuple[str, str]]:
    """Two stores on the disk of the current folder."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="counterfoil-bench-", dir=Path.cwd()) as folder:
            yield str(Path(folder, "full.db")), str(Path(folder, "empty.db"))
        return
    import psycopg

    with server(Path.cwd()) as made:
        with psycopg.connect(made.url(), autocommit=True) as db:
            for name in ("full_book", "empty_book"):
                db.execute(f"CREATE DATABASE {name}".encode())
        yield made.url("full_book"), made.url("empty_book")


def name_of(operations: int) -> str:
    """What the ratio is called: `growth_1e6` for a million."""
    digits = str(operations)
    zeros = len(digits) - len(digits.rstrip("0"))
    return f"growth_{digits[:-zeros]}e{zeros}" if zeros > 2 else f"growth_{operations}"  # noqa: PLR2004 - 100 is shorter
