"""What a run comes to: every receipt held against what the provider really did.

It reads the store by SQL and the provider's own journals, never through the product; ``scripts/recount.py`` counts the
same figures with code of its own.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.lab.ground_truth import CONTROL, EFFECTS, WIRE
from counterfoil.lab.journal import read
from counterfoil.lab.run_folder import STORE

SALT_BYTES = 16
"""What stands before the payload in a claim's body."""
SEQ_BITS = 15
"""An event's row number is its operation's, then this many bits of sequence."""

_OPERATIONS = "SELECT n, id, dispatch, outcome, unresolved, settled_by, step, attempts FROM operation ORDER BY n"
_PAYLOADS = (
    "SELECT e.id >> ?, coalesce(e.body, b.bytes) FROM event e LEFT JOIN body b ON b.id = e.id WHERE e.kind = 'begun' "
    "AND coalesce(e.body, b.bytes) IS NOT NULL"
)
_FINDINGS = (
    "SELECT id >> ?, json_extract(CAST(record AS TEXT), '$.finding') FROM event WHERE kind = 'observed' ORDER BY id"
)

_UNOWNED = "SELECT count(*) FROM operation WHERE unresolved > 0 AND (owner = '' OR step = '')"


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run; each is counted, none is estimated."""

    operations: int
    effects: int
    sends: int
    duplicates: int
    """Effects beyond the first for one receipt."""
    unrecorded: int
    """Names on the wire or in the truth that no receipt has."""
    excess_sends: int
    """Sends beyond the attempts that the receipt recorded before them."""
    false_outcomes: int
    """Receipts that say `succeeded` without an effect, or that nothing happened although it did."""
    unknown_seen: int
    """Operations that at some time had nothing but silence to show."""
    manual_review: int
    safe_to_retry: int
    unsettled: int
    """Unresolved operations that are not a person's turn: the run was not done."""


ADDED = tuple(Score.__struct_fields__)
"""Figures that add up over several runs: all of them."""


class _Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """One operation's row, with the names the provider may know it by."""

    id: str
    payload: str
    """`sha256:` and the digest of its payload: the only name where a contract carries none."""
    dispatch: str
    outcome: str
    unresolved: int
    settled_by: str
    step: str
    attempts: int

    def says_happened(self) -> bool:
        """It claims the effect."""
        return self.outcome == "succeeded"

    def says_nothing_happened(self) -> bool:
        """It denies the effect: rejected, proven absent, or never sent."""
        return self.outcome == "rejected" or (self.outcome == "unobserved" and self.dispatch == "not_started")


def score(folder: Path) -> Score:
    """Count one run from its raw files."""
    with closing(read_only(folder / STORE)) as store:
        receipts = _receipts(store)
        unknown_seen = _unknown_seen(store)
    effects = read(folder / EFFECTS)
    sends = [entry for entry in read(folder / WIRE) if entry["act"] == "send"]
    happened, sent = _named(effects, receipts), _named(sends, receipts)
    known = {receipt.id for receipt in receipts}
    return Score(
        operations=len(receipts),
        effects=len(effects),
        sends=len(sends),
        duplicates=sum(happened.values()) - len(happened),
        unrecorded=len((happened.keys() | sent.keys()) - known),
        excess_sends=sum(max(0, sent[r.id] - r.attempts) for r in receipts),
        false_outcomes=sum(_is_false(r, happened) for r in receipts),
        unknown_seen=unknown_seen,
        manual_review=sum(bool(r.unresolved) and r.step == "review" for r in receipts),
        safe_to_retry=sum(r.outcome == "rejected" and r.settled_by.startswith("absent") for r in receipts),
        unsettled=sum(bool(r.unresolved) and r.step != "review" for r in receipts),
    )


def unowned(folder: Path) -> int:
    """Count the unresolved operations that nobody owns, or that nobody's turn it is: they would lie there for ever."""
    with closing(read_only(folder / STORE)) as store:
        return int(store.execute(_UNOWNED).fetchone()[0])


def total(scores: Iterable[Mapping[str, Any]], names: Sequence[str] = ADDED) -> dict[str, int]:
    """Add figures up over several runs."""
    listed = list(scores)
    return {name: sum(figures[name] for figures in listed) for name in names}


def count_effects(folder: Path) -> tuple[int, int]:
    """Count what the provider received and what it did, receipts or not: sends, effects."""
    return sum(entry["act"] == "send" for entry in read(folder / WIRE)), len(read(folder / EFFECTS))


def read_only(store: Path | str) -> sqlite3.Connection:
    """Open a store for reading; a killed worker's write-ahead log is read as it stands and left in place.

    Args:
        store: a file, or the URL of a database, of which its tables are read as they stand at this moment.
    """
    if isinstance(store, str):
        from counterfoil.lab.mirror import mirror

        return mirror(store)
    return sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)


def _receipts(store: sqlite3.Connection) -> list[_Receipt]:
    digests = {
        n: f"sha256:{hashlib.sha256(body[SALT_BYTES:]).hexdigest()}"
        for n, body in store.execute(_PAYLOADS, (SEQ_BITS,))
    }
    names = _Receipt.__struct_fields__
    return [
        _Receipt(**dict(zip(names, (row[1], digests.get(row[0], ""), *row[2:]), strict=True)))
        for row in store.execute(_OPERATIONS).fetchall()
    ]


def _unknown_seen(store: sqlite3.Connection) -> int:
    """How many operations read as unknown at some time: silence was on record, and nothing certain before it."""
    unknown: set[int] = set()
    certain: set[int] = set()
    for n, finding in store.execute(_FINDINGS, (SEQ_BITS,)):
        if finding == "unknown" and n not in certain:
            unknown.add(n)
        elif finding not in {"unknown", "not_sent"}:
            certain.add(n)
    return len(unknown)


def _named(entries: Iterable[Mapping[str, Any]], receipts: Sequence[_Receipt]) -> Counter[str]:
    """Count entries by the receipt they belong to, or by their own name where none has it."""
    by_payload = {receipt.payload: receipt.id for receipt in receipts}
    counted: Counter[str] = Counter()
    for entry in entries:
        name = entry["key"] or entry["reference"]
        if name is None and not entry.get("whole", True):
            continue  # cut off by a kill: part of a body has no digest that could be known
        if name is None:
            digest = f"sha256:{entry['payload_sha256']}"
            name = by_payload.get(digest, digest)
        if name != CONTROL:
            counted[name] += 1
    return counted


def _is_false(receipt: _Receipt, happened: Counter[str]) -> bool:
    if happened[receipt.id]:
        return receipt.says_nothing_happened()
    return receipt.says_happened()
