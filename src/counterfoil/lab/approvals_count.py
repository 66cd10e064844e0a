"""What a case came to: every send on the provider's wire held against who had allowed it, by the store's own rows.

It reads rows by SQL and folds them with rules of its own, never through the product; ``scripts/recount.py`` does so
once more, in other words.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.lab.run_folder import STORE
from counterfoil.lab.scoreboard import SALT_BYTES, SEQ_BITS, read_only

Entry = Mapping[str, Any]

_OPERATIONS = "SELECT n, id, actor, permission, outcome FROM operation ORDER BY n"
_EVENTS = (
    "SELECT e.id & ?, e.kind, e.at, CAST(e.record AS TEXT), coalesce(e.body, b.bytes) FROM event e "
    "LEFT JOIN body b ON b.id = e.id WHERE e.id >> ? = ? ORDER BY e.id"
)
_ENDS = {"deny": "denied", "revoke": "revoked", "expire": "expired"}


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider's logs and the store's rows say of one case."""

    names: frozenset[str]
    """The operations that its receipts file knows."""
    sent: int
    effects: int
    authorised: int
    """Claims that somebody, or the policy, had allowed."""
    without: int
    """Bytes of sends that nobody had allowed."""
    twice: int
    """Uses of an approval, or of an override, beyond those it allows."""
    permission: str
    """Of the operation that was asked for last, like `outcome`."""
    outcome: str


class _Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One `begun` row, judged by the rows before it."""

    attempt: int
    allowed: bool
    under: str
    """The approval, or `override`; empty where the policy asks nobody."""
    uses: int
    fresh: bool = True
    """An override was decided since the claim before it."""


class Fold:
    """Who has allowed one operation what, row by row."""

    def __init__(self, actor: str, lenient: frozenset[str]) -> None:
        self._actor, self._lenient = actor, lenient
        self._asked: dict[str, Any] = {}
        self._people: list[str] = []
        self._overriders: list[str] = []
        self._permission, self._approval, self._ends = "authorized", 0, 0.0
        self._of, self._abandoned = 1, False
        self.claims: list[_Claim] = []
        self.not_sent: set[int] = set()
        """Attempts that are proven to have stayed here."""
        self.payload: bytes | None = None
        """As it was frozen; None where it is not what was approved."""

    def take(self, seq: int, kind: str, at: float, record: dict[str, Any], body: bytes | None) -> None:
        """Take in the next row."""
        if kind in {"proposed", "held", "begun"} and body is not None and self.payload is None:
            self.payload = body[SALT_BYTES:]
        match kind:
            case "proposed":
                self._asked, self._people = record, []
                self._permission, self._ends = "pending", at + record["required"]["seconds"]
                if body is not None and record["bound"]["payload_digest"] != f"sd1:{_sha256(body)}":
                    self.payload = None
            case "decided":
                self._decided(seq, at, record)
            case "observed" if record["finding"] != "unknown":
                self._overriders, self._abandoned = [], False
                if record["finding"] == "not_sent":
                    self.not_sent.add(record["attempt"])
            case "begun":
                self._begun(at, record)
            case _:
                pass  # looks, notes and repetitions allow nothing

    def _decided(self, seq: int, at: float, said: dict[str, Any]) -> None:
        decision, person = said["decision"], _spelled(said["by"])
        if decision in _ENDS:
            self._permission = _ENDS[decision]
        elif decision == "abandon":
            self._abandoned = True
        elif decision == "override" and self._is_somebody(person) and person not in self._overriders:
            self._overriders.append(person)
            self._of = said["facts"]["of"]
        elif decision == "approve" and self._approves(at, person, said):
            self._people.append(person)
            required = self._asked["required"]
            if len(self._people) >= required["people"]:
                self._permission, self._approval, self._ends = "authorized", seq, at + required["seconds"]

    def _is_somebody(self, person: str) -> bool:
        return person != _spelled(self._actor) and not person.startswith("agent:")

    def _approves(self, at: float, person: str, said: Mapping[str, Any]) -> bool:
        if self._permission != "pending" or not self._asked:
            return False
        required = self._asked["required"]
        question = json.dumps([self._asked["bound"], required], separators=(",", ":"), ensure_ascii=False)
        return (
            at <= self._ends
            and self._is_somebody(person)
            and person not in self._people
            and (not required["approvers"] or person in map(_spelled, required["approvers"]))
            and said.get("facts", {}).get("binding") == f"ab1:{_sha256(question.encode())[:40]}"
        )

    def _begun(self, at: float, record: dict[str, Any]) -> None:
        attempt = record["attempt"]
        approval = attempt.get("approval", 0)
        may = not self._abandoned and self._permission not in {"denied", "revoked"}
        if record.get("basis") == "operator_override":
            fresh = len(self._overriders) >= self._of
            claim = _Claim(attempt=attempt["number"], allowed=may and fresh, under="override", uses=1, fresh=fresh)
        elif approval:
            uses = self._asked["required"]["uses"] if self._asked else 0
            stands = may and self._stands(at, attempt, record)
            # Whatever it names, it uses up the approval that there is.
            claim = _Claim(attempt=attempt["number"], allowed=stands, under=str(self._approval), uses=uses)
        else:
            free = may and not self._asked and record.get("policy", "") in self._lenient
            claim = _Claim(attempt=attempt["number"], allowed=free, under="", uses=0)
        self._overriders = []
        self.claims.append(claim)

    def _stands(self, at: float, attempt: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
        bound, required = self._asked["bound"], self._asked["required"]
        approval = attempt["approval"]
        used = [c for c in self.claims if c.under == str(self._approval) and c.attempt not in self.not_sent]
        pins = {name: record.get(name, "") for name in ("contract", "code", "policy", "destination")}
        return (
            (self._permission, self._approval) == ("authorized", approval)
            and at <= self._ends
            and attempt.get("attempt_class", "first") in required["attempts"]
            and len(used) < required["uses"]
            and all(bound[name] == pin for name, pin in pins.items())
        )

    def twice(self, sends: int) -> int:
        """Uses beyond those that were allowed; a second send on one claim is a second use too."""
        made = Counter(c.under for c in self.claims if c.attempt not in self.not_sent)
        uses = {c.under: c.uses for c in self.claims}
        over = sum(max(0, made[name] - uses[name]) for name in made if name not in {"", "override"})
        over += sum(not c.fresh for c in self.claims)
        return over + max(0, sends - len(self.claims))

    def without(self, sends: Sequence[Entry]) -> int:
        """Bytes of the sends that nobody had allowed; where it is not known which claim sent, the worst is."""
        digest = None if self.payload is None else _sha256(self.payload)
        good = [s for s in sends if s["payload_sha256"] == digest]
        bad = [s for s in sends if s["payload_sha256"] != digest]
        forbidden = sum(not c.allowed for c in self.claims)
        charged = min(len(good), forbidden + max(0, len(good) - len(self.claims)))
        return bytes_of(bad + good[:charged])


def count(folder: Path, wire: Iterable[Entry], effects: Iterable[Entry]) -> Count:
    """Count one case.

    Args:
        folder: holds its receipts file.
        wire: every send that the provider received in the whole run.
        effects: everything that it did.
    """
    with closing(read_only(folder / STORE)) as store:
        lenient = frozenset(_lenient(store))
        rows = store.execute(_OPERATIONS).fetchall()
        folds = {row[1]: _folded(store, row, lenient) for row in rows}
    sends = {name: [s for s in wire if name_of(s) == name] for name in folds}
    return Count(
        names=frozenset(folds),
        sent=sum(map(len, sends.values())),
        effects=sum(name_of(effect) in folds for effect in effects),
        authorised=sum(c.allowed for fold in folds.values() for c in fold.claims),
        without=sum(fold.without(sends[name]) for name, fold in folds.items()),
        twice=sum(fold.twice(len(sends[name])) for name, fold in folds.items()),
        permission=rows[-1][3],
        outcome=rows[-1][4],
    )


def name_of(entry: Entry) -> str | None:
    """The operation that a send or an effect names."""
    name: str | None = entry["reference"] or entry["key"]
    return name


def bytes_of(sends: Iterable[Entry]) -> int:
    """What they wrote; a send without a body is one at least."""
    return sum(max(1, send["bytes"]) for send in sends)


def _folded(store: sqlite3.Connection, row: Sequence[Any], lenient: frozenset[str]) -> Fold:
    fold = Fold(row[2], lenient)
    for seq, kind, at, record, body in store.execute(_EVENTS, ((1 << SEQ_BITS) - 1, SEQ_BITS, row[0])):
        fold.take(seq, kind, at, json.loads(record), body)
    return fold


def _lenient(store: sqlite3.Connection) -> Iterator[str]:
    """Digests of the policies that ask nobody for anything."""
    for digest, text in store.execute("SELECT digest, CAST(policy AS TEXT) FROM policy"):
        if all(rule["approval"] is None and not rule["refuse"] for rule in json.loads(text)["rules"]):
            yield digest


def _spelled(name: str) -> str:
    """A name without the number a terminal adds, its case and its default kind: who it is, for the count."""
    return " ".join(name.split(" (uid ", maxsplit=1)[0].casefold().split()).removeprefix("user:")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
