"""Recount a laboratory run from its raw ground truth, with nothing of the project in between.

``python scripts/recount.py DIR [--json]`` reads what ``counterfoil-lab ... --keep DIR`` left: ``effects.jsonl`` (a line
per applied effect, written by the provider), ``wire.jsonl`` (a line per request the provider received) and
``receipts.db`` (the store, opened read-only), in DIR or in each folder directly below it. It prints its own counts and
compares them with ``DIR/result.json``, where that exists.

Exit codes: 0 the counts agree, or there is nothing to compare; 1 they do not; 2 the folder cannot be counted.
A count whose source is missing is null and is compared with nothing.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

EFFECTS, WIRE, STORE, RESULT = "effects.jsonl", "wire.jsonl", "receipts.db", "result.json"

COMPARED = ("operations", "effects", "sends", "duplicates", "unrecorded", "excess_sends", "false_outcomes")
"""What a result may claim that is counted here as well; other fields are the laboratory's own."""

SEQ_BITS = 15
"""An event's row number is its operation's, then this many bits of sequence."""

CONTROL = "control"  # the provider's known item: looked for, never sent

Entry: TypeAlias = dict[str, Any]
Counts: TypeAlias = dict[str, Any]


class NotCountable(ValueError):
    """The folder holds no run, or a file of it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the store says of one operation."""

    name: str
    """The key or reference that the provider was given."""
    outcome: str
    attempts: int


def lines(path: Path) -> list[Entry] | None:
    """Read the whole lines of a journal; None when it does not exist.

    A last line without its end was torn by a crash and acknowledged to nobody.
    """
    if not path.exists():
        return None
    whole = path.read_bytes().rpartition(b"\n")[0]
    try:
        return [json.loads(line) for line in whole.split(b"\n") if line]
    except ValueError as broken:
        raise NotCountable(f"{path} has a line that is not JSON") from broken


def receipts(path: Path) -> tuple[list[Receipt], str] | None:
    """Read every operation and say which column named it to the provider; None when there is no store."""
    if not path.exists():
        return None
    store = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return _operations(store)
    except sqlite3.Error as broken:
        raise NotCountable(f"{path} cannot be read: {broken}") from broken
    finally:
        store.close()


def _operations(store: sqlite3.Connection) -> tuple[list[Receipt], str]:
    columns = {row[1] for row in store.execute("PRAGMA table_info(operation)")}
    if not {"n", "key", "outcome"} <= columns:
        raise NotCountable("the store has no table `operation` with the columns n, key and outcome")
    attempts = "attempts" if "attempts" in columns else "NULL"
    named = "provider_key" if "provider_key" in columns else "NULL"
    rows = store.execute(f"SELECT n, key, outcome, {attempts}, {named} FROM operation").fetchall()  # noqa: S608
    begun = _begun(store)
    joined_on = "provider_key" if named == "provider_key" else "begun event" if begun else "key"
    return [
        Receipt(
            name=(provider_key or begun.get(n, key)),
            outcome=outcome,
            # An older store without the column allows as many sends as it recorded claims, at least one.
            attempts=count if count is not None else 1,
        )
        for n, key, outcome, count, provider_key in rows
    ], joined_on


def _begun(store: sqlite3.Connection) -> dict[int, str]:
    """The provider key of each operation, by its row number, as its first claim recorded it."""
    if not {row[1] for row in store.execute("PRAGMA table_info(event)")} >= {"id", "kind", "record"}:
        return {}
    rows = store.execute(
        "SELECT id >> ?, json_extract(CAST(record AS TEXT), '$.provider_key') FROM event "
        "WHERE kind = 'begun' AND json_valid(CAST(record AS TEXT)) ORDER BY id DESC",
        (SEQ_BITS,),
    )
    return {n: name for n, name in rows if name}


def name_of(entry: Entry) -> str | None:
    """The name under which one effect or send can be joined to a receipt."""
    return entry.get("key") or entry.get("reference")


def duplicates(effects: Iterable[Entry]) -> int:
    """Count the effects beyond the first under one name; effects without a name are told apart by their bytes."""
    groups = Counter(
        (effect.get("kind"), effect.get("account"), name_of(effect) or f"sha256:{effect.get('payload_sha256')}")
        for effect in effects
    )
    return sum(groups.values()) - len(groups)


def count(folder: Path) -> Counts:
    """Count one run."""
    effects, wire, stored = lines(folder / EFFECTS), lines(folder / WIRE), receipts(folder / STORE)
    if effects is None:
        raise NotCountable(f"{folder} has no {EFFECTS}")
    sends = None if wire is None else [entry for entry in wire if entry.get("act") == "send"]
    counts: Counts = {
        "effects": len(effects),
        "sends": None if sends is None else len(sends),
        "looks": None if wire is None or sends is None else len(wire) - len(sends),
        "duplicates": duplicates(effects),
        "unnamed_effects": sum(1 for effect in effects if name_of(effect) is None),
    }
    return counts | joined(effects, sends or [], stored)


def joined(effects: Sequence[Entry], sends: Sequence[Entry], stored: tuple[list[Receipt], str] | None) -> Counts:
    """Count what only the receipts and the truth together show."""
    if stored is None:
        empty = dict.fromkeys(("operations", "unrecorded", "excess_sends", "false_outcomes", "joined_on"))
        return {**empty, "outcomes": {}}
    operations, joined_on = stored
    happened = Counter(name for effect in effects if (name := name_of(effect)))
    sent = Counter(name for send in sends if (name := name_of(send)))
    allowed: Counter[str] = Counter()
    for operation in operations:
        allowed[operation.name] += operation.attempts
    known = {operation.name for operation in operations} | {CONTROL}
    # Effects without any name cannot be joined; what they say about outcomes is left out, not guessed.
    joinable = bool(happened) or not effects
    return {
        "operations": len(operations),
        "unrecorded": len((happened.keys() | sent.keys()) - known),
        "excess_sends": sum(max(0, times - allowed[name]) for name, times in sent.items() if name in known),
        "false_outcomes": sum(1 for receipt in operations if joinable and is_false(receipt, happened)),
        "outcomes": dict(Counter(receipt.outcome for receipt in operations)),
        "joined_on": joined_on,
    }


def is_false(receipt: Receipt, happened: Counter[str]) -> bool:
    """Say whether a receipt claims what did not happen, or denies what did."""
    if receipt.outcome == "succeeded":
        return not happened[receipt.name]
    return receipt.outcome == "rejected" and bool(happened[receipt.name])


def recount(top: Path) -> Counts:
    """Count the run in a folder, or the sum of the runs in the folders directly below it."""
    if (top / EFFECTS).exists():
        return count(top)
    runs = {path.parent.name: count(path.parent) for path in sorted(top.glob(f"*/{EFFECTS}"))}
    if not runs:
        raise NotCountable(f"{top} has no {EFFECTS}, nor has any folder directly below it")
    return {name: _total(run[name] for run in runs.values()) for name in COMPARED} | {"runs": runs}


def _total(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(number or 0 for number in known)


def disagreements(counts: Counts, result: Path) -> list[str]:
    """Compare with what the laboratory itself reported."""
    if not result.exists():
        return []
    try:
        claimed = json.loads(result.read_text("utf-8"))
    except ValueError as broken:
        raise NotCountable(f"{result} is not JSON") from broken
    if not isinstance(claimed, dict):
        raise NotCountable(f"{result} is not one JSON object")
    return [
        f"{name}: reported {claimed[name]!r}, counted {counts[name]!r}"
        for name in COMPARED
        if name in claimed and counts[name] is not None and claimed[name] != counts[name]
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts and whether they agree."""
    parser = argparse.ArgumentParser(prog="recount.py", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="what --keep left")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    try:
        counts = recount(asked.folder)
        against = disagreements(counts, asked.folder / RESULT)
    except (NotCountable, OSError) as reason:
        print(f"cannot count: {reason}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps({**counts, "disagreements": against, "ok": not against}))
    else:
        for name, number in counts.items():
            print(f"{name:>16}  {number}")
        for line in against:
            print(f"DISAGREES  {line}")
    return 1 if against else 0


if __name__ == "__main__":
    sys.exit(main())
