"""What really happened in a world, kept outside the system under test: effects, wire, people's words, commits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab.scoreboard import SALT_BYTES


def sha256(payload: bytes) -> str:
    """The digest of the exact body bytes."""
    return hashlib.sha256(payload).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One write whose first byte left."""

    at: float
    seq: int
    kind: str
    name: str
    """The operation's id: the provider key of all its attempts."""
    token: str
    """Of the attempt it was sent by, as its sender held it."""
    account: str
    payload: bytes
    process: str
    act: str = "send"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One thing that happened, once."""

    at: float
    seq: int
    kind: str
    id: str
    name: str
    account: str
    payload: bytes
    wire: int
    """The request it came of; 0 for what somebody else made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a person decided, and was not told that it does not stand."""

    at: float
    verb: str
    by: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """An acknowledged commit: its last event, by the hash that covers all before it."""

    name: str
    head: bytes
    record: bytes | None
    """What it was to write down, where the command said so."""


class Row(NamedTuple):
    """One event as it stands in the file, read past everything that is tested."""

    seq: int
    kind: str
    at: float
    record: dict[str, Any]
    body: bytes | None


def token_of(record: bytes) -> str:
    """The attempt that a claim's record begins."""
    return str(json.loads(record)["attempt"]["token"])


def frozen(rows: Sequence[Row]) -> bytes | None:
    """The payload that was frozen when the operation was first written down."""
    return next((row.body[SALT_BYTES:] for row in rows if row.body), None)


@dataclass(slots=True)
class Truth:
    """The four logs of one world, and what can be asked of them."""

    wire: list[Wire] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    looks: dict[str, list[float]] = field(default_factory=dict)
    """By operation, when it was looked for."""
    on_the_way: dict[str, int] = field(default_factory=dict)
    """By operation, requests that may still be applied."""

    def of(self, name: str) -> list[Effect]:
        """Every effect of one operation that its own requests had."""
        return [e for e in self.effects if e.name == name and e.wire]

    def sent(self, name: str) -> list[Wire]:
        """Every write of one operation."""
        return [w for w in self.wire if w.name == name]

    def late(self, name: str, seconds: float) -> set[int]:
        """Requests of one operation under a key whose effect came longer after they were written than this."""
        sent = {w.seq: w.at for w in self.sent(name) if w.kind == "key"}
        return {e.wire for e in self.of(name) if e.wire in sent and e.at - sent[e.wire] > seconds}

    def said(self, name: str, *verbs: str) -> list[Word]:
        """What people have decided about one operation."""
        return [w for w in self.words if w.name == name and w.verb in verbs]

    def keep(self, folder: Path, assumed: dict[str, object]) -> None:
        """Write the logs down, a line each, as the laboratory's other runs leave them.

        Args:
            folder: where.
            assumed: whether what a deployment assumes holds in this world, and what that is.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "world.json").write_text(json.dumps(assumed) + "\n", encoding="utf-8")
        _lines(folder / "effects.jsonl", [_plain(asdict(e)) for e in self.effects])
        _lines(folder / "wire.jsonl", [_plain(asdict(w)) for w in self.wire])
        _lines(folder / "words.jsonl", [asdict(w) for w in self.words])


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry as the recount reads it: the provider knows an operation by its name, whatever carries that."""
    payload = entry.pop("payload")
    entry |= {"key": entry["name"], "reference": entry["name"], "payload_sha256": sha256(payload)}
    return entry


def _lines(path: Path, entries: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries), encoding="utf-8")
