"""Recount a laboratory run from its raw ground truth, with nothing of the project in between.

``python scripts/recount.py DIR [--json]`` reads what ``counterfoil-lab ... --keep DIR`` left: ``effects.jsonl`` (a line
per applied effect, written by the provider), ``wire.jsonl`` (a line per request the provider received), ``receipts.db``
(the store, opened read-only) and ``kills.jsonl`` (a line per SIGKILL), in DIR or in each folder directly below it. It
prints its own counts and compares them with ``DIR/result.json``, where that exists: the sums, the figures of each
contract (folder ``CONTRACT``) and each row (folder ``CASE-RUNNER``).

Exit codes: 0 the counts agree, or there is nothing to compare; 1 they do not; 2 the folder cannot be counted.
A count whose source is missing is null; a result that claims it all the same disagrees.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

EFFECTS, WIRE, STORE, KILLS, RESULT = "effects.jsonl", "wire.jsonl", "receipts.db", "kills.jsonl", "result.json"

FROM_STORE = (
    "operations", "unrecorded", "excess_sends", "false_outcomes", "unknown_seen", "manual_review", "safe_to_retry",
    "unsettled",
)  # fmt: skip
SUMMED = ("effects", "sends", "duplicates", *FROM_STORE, "kills")
COMPARED = (*SUMMED, "kills_by_window")
"""What a result may claim that is counted here as well; other fields are the laboratory's own."""

WINDOWS = ("before_claim", "claim_to_outcome", "look_to_evidence", "after_outcome")
"""What a killed worker was between: nothing begun, a claim without outcome, a look without evidence, neither."""

SEQ_BITS = 15
"""An event's row number is its operation's, then this many bits of sequence."""
SALT_BYTES = 16
"""What stands before the payload in a claim's body."""

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
    payload: str
    """The payload's digest, by which a provider that was given no name can be asked; empty where it is not known."""
    outcome: str
    attempts: int
    dispatch: str = ""
    unresolved: int = 0
    settled_by: str = ""
    step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of an operation's history."""

    n: int
    """The operation's row number."""
    kind: str
    at: float
    record: Entry
    payload: str
    """Its body's content as a digest, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A whole store, read once."""

    receipts: list[Receipt]
    events: list[Event]
    joined_on: str
    """Which column named the operations to the provider."""


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


def stored(path: Path) -> Stored | None:
    """Read every operation and every event; None when there is no store."""
    if not path.exists():
        return None
    store = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    store.row_factory = sqlite3.Row
    try:
        return _read(store)
    except sqlite3.Error as broken:
        raise NotCountable(f"{path} cannot be read: {broken}") from broken
    finally:
        store.close()


def _read(store: sqlite3.Connection) -> Stored:
    columns = {row[1] for row in store.execute("PRAGMA table_info(operation)")}
    if not {"n", "key", "outcome"} <= columns:
        raise NotCountable("the store has no table `operation` with the columns n, key and outcome")
    events = list(_events(store))
    # An operation's first claim comes last here, so it is the one that is kept.
    begun = {event.n: event for event in reversed(events) if event.kind == "begun"}
    joined_on = "provider_key" if "provider_key" in columns else "begun event" if begun else "key"
    return Stored(
        receipts=[_receipt(dict(row), begun.get(row["n"])) for row in store.execute("SELECT * FROM operation")],
        events=events,
        joined_on=joined_on,
    )


def _receipt(row: Entry, begun: Event | None) -> Receipt:
    recorded = begun.record.get("provider_key") if begun else None
    kept = {name: row[name] for name in ("dispatch", "unresolved", "settled_by", "step") if name in row}
    return Receipt(
        name=row.get("provider_key") or recorded or row["key"],
        payload=begun.payload if begun else "",
        outcome=row["outcome"],
        # An older store without the column allows as many sends as it recorded claims, at least one.
        attempts=row.get("attempts", 1),
        **kept,
    )


def _events(store: sqlite3.Connection) -> Iterable[Event]:
    columns = {row[1] for row in store.execute("PRAGMA table_info(event)")}
    if not columns >= {"id", "kind", "record"}:
        return
    apart = store.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'body'").fetchone()
    large = {row["id"]: row["bytes"] for row in store.execute("SELECT id, bytes FROM body")} if apart else {}
    for row in store.execute("SELECT * FROM event ORDER BY id"):
        entry = dict(row)
        body = entry.get("body") or large.get(entry["id"])
        try:
            record = json.loads(entry["record"])
        except ValueError as broken:
            raise NotCountable(f"event {entry['id']} has a record that is not JSON") from broken
        yield Event(
            n=entry["id"] >> SEQ_BITS,
            kind=entry["kind"],
            at=entry.get("at", 0.0),
            record=record,
            payload=f"sha256:{hashlib.sha256(body[SALT_BYTES:]).hexdigest()}" if body else "",
        )


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
    effects, wire, found = lines(folder / EFFECTS), lines(folder / WIRE), stored(folder / STORE)
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
    return counts | joined(effects, sends, found) | killed(lines(folder / KILLS), found)


def joined(effects: Sequence[Entry], sends: Sequence[Entry] | None, found: Stored | None) -> Counts:
    """Count what only the receipts and the truth together show."""
    if found is None:
        return {**dict.fromkeys((*FROM_STORE, "joined_on")), "outcomes": {}}
    receipts = found.receipts
    happened, sent = by_receipt(effects, receipts), by_receipt(sends or [], receipts)
    allowed: Counter[str] = Counter()
    for receipt in receipts:
        allowed[receipt.name] += receipt.attempts
    return {
        "operations": len(receipts),
        "unrecorded": len((happened.keys() | sent.keys()) - allowed.keys()),
        "excess_sends": None if sends is None else sum(max(0, sent[name] - allowed[name]) for name in allowed),
        "false_outcomes": sum(is_false(receipt, happened) for receipt in receipts),
        "unknown_seen": unknown_seen(found.events),
        "manual_review": sum(1 for r in receipts if r.unresolved and r.step == "review"),
        "safe_to_retry": sum(1 for r in receipts if r.outcome == "rejected" and r.settled_by.startswith("absent")),
        "unsettled": sum(1 for r in receipts if r.unresolved and r.step != "review"),
        "outcomes": dict(Counter(receipt.outcome for receipt in receipts)),
        "joined_on": found.joined_on,
    }


def unknown_seen(events: Iterable[Event]) -> int:
    """Count the operations with silence on record before anything certain: at some time they read as unknown."""
    findings: dict[int, list[str]] = {}
    for event in events:
        if event.kind == "observed":
            findings.setdefault(event.n, []).append(event.record.get("finding", ""))
    # Before the first certain finding: what was written after it changed nothing.
    doubtful = (itertools.takewhile({"unknown", "not_sent"}.__contains__, listed) for listed in findings.values())
    return sum("unknown" in listed for listed in doubtful)


def by_receipt(entries: Iterable[Entry], receipts: Iterable[Receipt]) -> Counter[str]:
    """Count effects or sends under the name of the receipt they belong to, or under their own where none has it.

    Where the provider was given no name, the payload's own bytes tell the receipts apart.
    """
    by_payload = {receipt.payload: receipt.name for receipt in receipts if receipt.payload}
    counted: Counter[str] = Counter()
    for entry in entries:
        name = name_of(entry)
        if name is None and entry.get("whole", True):  # a body that a kill cut off has no digest to be known by
            digest = f"sha256:{entry.get('payload_sha256')}"
            name = by_payload.get(digest, digest)
        if name not in {None, CONTROL}:
            counted[str(name)] += 1
    return counted


def is_false(receipt: Receipt, happened: Counter[str]) -> bool:
    """Say whether a receipt claims what did not happen, or denies what did."""
    if receipt.outcome == "succeeded":
        return not happened[receipt.name]
    denies = receipt.outcome == "rejected" or (receipt.outcome, receipt.dispatch) == ("unobserved", "not_started")
    return denies and bool(happened[receipt.name])


def killed(kills: Sequence[Entry] | None, found: Stored | None) -> Counts:
    """Count the kills, and place each by what the killed worker's records say about that moment."""
    if kills is None or found is None:
        return {"kills": None, "kills_by_window": None}
    placed = Counter(window(kill, found.events) for kill in kills)
    return {"kills": len(kills), "kills_by_window": {name: placed[name] for name in WINDOWS}}


def window(kill: Entry, events: Iterable[Event]) -> str:
    """Say what a worker was between when it was killed; what was written later, others wrote."""
    began, claims, looks = False, set(), set()
    for event in events:
        if event.at > kill["at"]:
            continue
        record = event.record
        attempt = record.get("attempt", {})
        if event.kind == "begun" and attempt.get("worker") == kill["worker"]:
            claims.add((event.n, attempt["number"]))
            began = True
        elif event.kind == "looking" and record.get("facts", {}).get("by") == kill["worker"]:
            looks.add(event.n)
            began = True
        elif event.kind == "observed":
            claims.discard((event.n, attempt))
            looks -= {event.n} if record.get("source") == "look" else set()
    if claims:
        return "claim_to_outcome"
    return "look_to_evidence" if looks else "after_outcome" if began else "before_claim"


def recount(top: Path) -> Counts:
    """Count the run in a folder, or the sum of the runs in the folders directly below it."""
    if (top / EFFECTS).exists():
        return count(top)
    runs = {path.parent.name: count(path.parent) for path in sorted(top.glob(f"*/{EFFECTS}"))}
    if not runs:
        raise NotCountable(f"{top} has no {EFFECTS}, nor has any folder directly below it")
    summed: Counts = {name: _total(run[name] for run in runs.values()) for name in SUMMED}
    placed = [run["kills_by_window"] for run in runs.values()]
    windows = None if None in placed else {name: sum(run[name] for run in placed) for name in WINDOWS}
    return summed | {"kills_by_window": windows, "runs": runs}


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
    found = compared("", claimed, counts)
    runs = counts.get("runs", {})
    for name, figures in claimed.get("contracts", {}).items():
        found += compared(f"{name}: ", figures, runs.get(name, {}))
    for row in claimed.get("rows", []):
        # A row stands in a folder of its own name, and says `sent` for the sends.
        name = "-".join(row[part] for part in ("subject", "case", "runner") if part in row)
        found += compared(f"{name}: ", {"effects": row.get("effects"), "sends": row.get("sent")}, runs.get(name, {}))
    return found


def compared(whose: str, claimed: Counts, counts: Counts) -> list[str]:
    """Name every figure that is claimed and was not counted so."""
    return [
        f"{whose}{name}: reported {claimed[name]!r}, counted {counts.get(name)!r}"
        for name in COMPARED
        if name in claimed and claimed[name] != counts.get(name)
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
