"""A small book of receipts, tampered with in every way that leaves a trace; verification must name each.

``python -m counterfoil.lab.tampering FOLDER`` makes the book there, a copy for each way, and prints one line of JSON.
What is edited with every hash after it recomputed leaves no trace in the file, and is not asked for here.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import counterfoil
from counterfoil.cli.verify import verify
from counterfoil.lab.run_folder import STORE

WHO: Mapping[str, Any] = {"account": "acct_book", "owner": "payments", "authoriser": "payments-lead"}

WAYS: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    "edited": (
        "UPDATE event SET record = CAST(replace(CAST(record AS TEXT), 'unknown', 'lost') AS BLOB) WHERE id = :n + 2",
    ),
    "payload edited": ("UPDATE event SET body = CAST(body || 'x' AS BLOB) WHERE id = :n + 1",),
    "time edited": ("UPDATE event SET at = at - 3600 WHERE id = :n + 2",),
    "deleted in the middle": ("DELETE FROM event WHERE id = :n + 2",),
    "deleted at the end": (
        "DELETE FROM event WHERE id = :n + 4",
        "UPDATE operation SET updated_at = (SELECT at FROM event WHERE id = :n + 3) WHERE n = :n / 32768",
    ),
    "put in another order": (
        "UPDATE event SET id = 0 WHERE id = :n + 2",
        "UPDATE event SET id = :n + 2 WHERE id = :n + 3",
        "UPDATE event SET id = :n + 3 WHERE id = 0",
    ),
    "inserted": (
        "INSERT INTO event SELECT :n + 5, kind, at, record, body, hash FROM event WHERE id = :n + 4",
        "UPDATE operation SET seq = 5 WHERE n = :n / 32768",
    ),
    "row edited": ("UPDATE operation SET outcome = 'rejected' WHERE n = :n / 32768",),
}
"""By its name, what is done to the file; `:n` is where the events of the operation that is meant begin."""


class Named(NamedTuple):
    """What verification said of one way."""

    way: str
    named: bool
    """It named the operation that was meant; of the book as it is: nothing was wrong with it."""
    law: str


def book(path: Path) -> str:
    """Make a book of three operations and name the one in the middle: unknown, found out, and asked for once more."""
    with counterfoil.open(path, actor="agent:book") as ledger:

        def pay(order: str, note: str) -> dict[str, str]:
            if order == "unknown":
                raise TimeoutError
            return {"id": order, "note": note}

        given = {**WHO, "key": lambda **said: said["order"], "immaterial": {"/note": "for the reader only"}}
        guarded = ledger.action(pay, **given)
        _, meant, _ = (guarded(order, "as agreed").id for order in ("first", "unknown", "last"))
        said: dict[str, Any] = {"evidence": {"seen": "the statement"}, "by": "user:ada", "reason": "I looked"}
        ledger.resolve(meant, "succeeded", **said)
        guarded("unknown", "once more")  # differs immaterially: its last event, which changes no column
    return meant


def tampered(source: Path, to: Path, statements: tuple[str, ...], meant: str) -> None:
    """Copy the book and do something to the copy; what guards it is put back in its place."""
    shutil.copy(source, to)
    with closing(sqlite3.connect(to, isolation_level=None)) as db:
        guards = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            if db.execute(statement, {"n": int(meant[3:15], 16) << 15}).rowcount != 1:
                raise ValueError(statement)
        for _, guard in guards:
            db.execute(guard)


def judged(folder: Path) -> list[Named]:
    """Tamper in every way and say whether verification named it."""
    meant = book(folder / STORE)
    told = []
    for number, (way, statements) in enumerate(WAYS.items()):
        copy = folder / f"{number}.db"
        tampered(folder / STORE, copy, statements, meant)
        with counterfoil.open(copy) as ledger:
            violations = verify(ledger, lambda: None).violations
        of_it = [v for v in violations if v.operation == meant]
        named = bool(of_it) and len(of_it) == len(violations) if statements else not violations
        told.append(Named(way, named, of_it[0].law.value if of_it else ""))
    return told


def main() -> None:
    """Make the book, tamper, and tell."""
    rows = [row._asdict() for row in judged(Path(sys.argv[1]))]
    print(json.dumps({"rows": rows, "ok": all(row["named"] for row in rows)}), flush=True)


if __name__ == "__main__":
    main()
