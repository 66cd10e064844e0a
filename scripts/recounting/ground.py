"""The raw truth as it stands on disk: journals of JSON lines, and stores read past everything that is tested."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

EFFECTS, WIRE, STORE, RESULT = "effects.jsonl", "wire.jsonl", "receipts.db", "result.json"

SEQ_BITS = 15
"""An event's row number is its operation's, then this many bits of sequence."""
SALT_BYTES = 16
"""What stands before the payload in a claim's body."""

FREEZING = ("begun", "held", "proposed")
"""Events whose body is the payload; the first of an operation froze it."""
KEPT = ("dispatch", "unresolved", "settled_by", "step", "owner", "n", "id", "action", "key", "account")
"""Columns of an operation's row that are taken as they stand."""

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
    owner: str | None = None
    n: int = 0
    id: str = ""
    action: str = ""
    key: str = ""
    account: str = ""
    content: object = None
    """What was frozen, read; None where it is not known."""


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
    id: int = 0
    content: bytes = b""
    hash: str = ""
    """Of the chain, in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A whole store, read once."""

    receipts: list[Receipt]
    events: list[Event]
    joined_on: str
    """Which column named the operations to the provider."""
    workers: dict[str, int] | None
    """The process of each worker that ever had it open; None where the store keeps none."""


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
    events = list(events_of(store))
    # An operation's first claim comes last here, so it is the one that is kept.
    begun = {event.n: event for event in reversed(events) if event.kind == "begun"}
    frozen = {event.n: event for event in reversed(events) if event.kind in FREEZING and event.payload}
    joined_on = "provider_key" if "provider_key" in columns else "begun event" if begun else "key"
    return Stored(
        receipts=[
            _receipt(dict(row), begun.get(row["n"]), frozen.get(row["n"]))
            for row in store.execute("SELECT * FROM operation")
        ],
        events=events,
        joined_on=joined_on,
        workers=workers_of(store),
    )


def _receipt(row: Entry, begun: Event | None, frozen: Event | None) -> Receipt:
    recorded = begun.record.get("provider_key") if begun else None
    kept = {name: row[name] for name in KEPT if name in row}
    return Receipt(
        name=row.get("provider_key") or recorded or row["key"],
        payload=frozen.payload if frozen else "",
        content=plain(frozen.content) if frozen else None,
        outcome=row["outcome"],
        # An older store without the column allows as many sends as it recorded claims, at least one.
        attempts=row.get("attempts", 1),
        **kept,
    )


def workers_of(store: sqlite3.Connection) -> dict[str, int] | None:
    """Every worker with its process."""
    if not store.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'worker'").fetchone():
        return None
    return {row["id"]: row["pid"] for row in store.execute("SELECT id, pid FROM worker")}


def plain(content: bytes) -> object:
    """What a frozen payload says; None where it is not JSON."""
    try:
        return json.loads(content)
    except ValueError:
        return None


def events_of(store: sqlite3.Connection) -> Iterable[Event]:
    """Read every event, oldest first of each operation."""
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
            payload=f"sha256:{digest(body[SALT_BYTES:])}" if body else "",
            id=entry["id"],
            content=body[SALT_BYTES:] if body else b"",
            hash=(entry.get("hash") or b"").hex(),
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


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def total(numbers: Iterable[int | None]) -> int | None:
    """The sum; null where one of them is not known."""
    known = list(numbers)
    return None if None in known else sum(number or 0 for number in known)
