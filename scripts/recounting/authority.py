"""Authority: each send of a run of `approvals` held against the store of its case, and against what people said."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recounting.ground import (
    EFFECTS,
    SALT_BYTES,
    SEQ_BITS,
    STORE,
    WIRE,
    Counts,
    Entry,
    Event,
    NotCountable,
    digest,
    events_of,
    lines,
    name_of,
)

CASES = "cases"
"""Where a run keeps a store per case, with one provider for all."""
ENDED_BY = {"deny": "denied", "revoke": "revoked", "expire": "expired"}
"""Decisions after which nothing may be claimed."""


@dataclass(slots=True, kw_only=True)
class Mandate:
    """Who has allowed one operation what, up to some row of its history."""

    requester: str
    free: frozenset[str]
    """Digests of the policies under which nobody is asked."""
    question: Entry | None = None
    standing: str = "authorized"
    approvers: set[str] = field(default_factory=set)
    approval: int = 0
    until: float = 0.0
    overriders: set[str] = field(default_factory=set)
    overriders_asked: int = 1
    given_up: bool = False
    frozen: str | None = None
    """Digest of the payload, as long as it is the one that was asked about."""
    claims: list[tuple[int, int, bool]] = field(default_factory=list)
    """Of each: the attempt, the approval it uses up (0: none, -1: an override) and whether it was allowed."""
    stayed: set[int] = field(default_factory=set)
    """Attempts that are proven not to have left."""
    overused: int = 0

    def somebody(self, name: str) -> str | None:
        """The person behind a name, if they may decide: not the requester, and no agent."""
        person = spelled(name)
        return None if person == spelled(self.requester) or person.startswith("agent:") else person

    def read(self, seq: int, row: Event, body: bytes | None) -> None:
        """Take in one row; those before it were taken in."""
        record = row.record
        if body is not None and self.frozen is None and row.kind in {"proposed", "held", "begun"}:
            self.frozen = digest(body[SALT_BYTES:])
        if row.kind == "proposed":
            self.question, self.standing, self.approvers = record, "pending", set()
            self.until = row.at + record["required"]["seconds"]
            if body is not None and record["bound"]["payload_digest"] != "sd1:" + digest(body):
                self.frozen = None
        elif row.kind == "decided":
            self.decide(seq, row.at, record)
        elif row.kind == "observed" and record["finding"] != "unknown":
            self.overriders, self.given_up = set(), False
            self.stayed |= {record["attempt"]} if record["finding"] == "not_sent" else set()
        elif row.kind == "begun":
            self.claim(row.at, record)

    def decide(self, seq: int, at: float, said: Entry) -> None:
        """Take in a decision; one that was not this person's to take, or not on this question, counts for nothing."""
        word, person = said["decision"], self.somebody(said["by"])
        self.standing = ENDED_BY.get(word, self.standing)
        self.given_up |= word == "abandon"
        if person is None or word not in {"approve", "override"}:
            return
        if word == "override":
            self.overriders.add(person)
            self.overriders_asked = said["facts"]["of"]
        elif self.question and self.standing == "pending" and at <= self.until and person not in self.approvers:
            asked = self.question["required"]
            named = said.get("facts", {}).get("binding")
            entitled = not asked["approvers"] or person in map(spelled, asked["approvers"])
            if named != binding(self.question) or not entitled:
                return
            self.approvers.add(person)
            if len(self.approvers) == asked["people"]:
                self.standing, self.approval, self.until = "authorized", seq, at + asked["seconds"]

    def claim(self, at: float, begun: Entry) -> None:
        """Judge a claim by what stands now."""
        attempt = begun["attempt"]
        allowed = not self.given_up and self.standing not in {"denied", "revoked"}
        named, under = attempt.get("approval", 0), 0
        if begun.get("basis") == "operator_override":
            decided = len(self.overriders) >= self.overriders_asked
            under, allowed = -1, allowed and decided
            self.overused += not decided
        elif named:
            under = self.approval
            spent = self.spent(under)
            uses = self.question["required"]["uses"] if self.question else 0
            allowed = allowed and self.covers(at, named, attempt.get("attempt_class", "first"), begun) and spent < uses
            self.overused += spent >= uses
        else:
            allowed = allowed and self.question is None and begun.get("policy", "") in self.free
        self.overriders = set()
        self.claims.append((attempt["number"], under, allowed))

    def spent(self, approval: int) -> int:
        """How many attempts have used an approval up so far."""
        return sum(under == approval and attempt not in self.stayed for attempt, under, _ in self.claims)

    def covers(self, at: float, named: int, kind: str, begun: Entry) -> bool:
        """Whether the approval that stands is the one that is named, still good, and of just this claim."""
        if self.question is None:
            return False
        bound, asked = self.question["bound"], self.question["required"]
        same = all(bound[pin] == begun.get(pin, "") for pin in ("contract", "code", "policy", "destination"))
        good = self.standing == "authorized" and named == self.approval and at <= self.until
        return same and good and kind in asked["attempts"]


def spelled(name: str) -> str:
    """A name without the number a terminal adds, its case and its default kind."""
    return " ".join(name.split(" (uid ", maxsplit=1)[0].casefold().split()).removeprefix("user:")


def binding(question: Entry) -> str:
    """The name of what was asked: an approval says which question it answers."""
    spelled = json.dumps([question["bound"], question["required"]], separators=(",", ":"), ensure_ascii=False)
    return "ab1:" + digest(spelled.encode())[:40]


def authority(top: Path) -> Counts:
    """Hold every send of a run against the stores of its cases."""
    sends = [entry for entry in lines(top / WIRE) or [] if entry.get("act") == "send"]
    effects = Counter(name_of(effect) for effect in lines(top / EFFECTS) or [])
    cases = {path.parent.name: case(path, sends, effects) for path in sorted((top / CASES).glob(f"*/{STORE}"))}
    known = {name for counted in cases.values() for name in counted["operations"]}
    stray = weight(entry for entry in sends if name_of(entry) not in known)
    return {
        "cases": len(cases),
        "bytes_sent_without_authority": stray + sum(counted["without"] for counted in cases.values()),
        "approvals_used_twice": sum(counted["overused"] for counted in cases.values()),
        "runs": cases,
    }


def case(path: Path, sends: Sequence[Entry], effects: Counter[str | None]) -> Counts:
    """Count one case."""
    store = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    store.row_factory = sqlite3.Row
    try:
        rows = [dict(row) for row in store.execute("SELECT * FROM operation ORDER BY n")]
        found = store.execute("SELECT * FROM policy")
        policies = {row["digest"]: json.loads(row["policy"])["rules"] for row in found}
        bodies = {row["id"]: row["body"] for row in store.execute("SELECT id, body FROM event")}
        bodies |= {row["id"]: row["bytes"] for row in store.execute("SELECT id, bytes FROM body")}
        identified = list(zip(sorted(bodies), events_of(store), strict=True))
    except (sqlite3.Error, ValueError) as broken:
        raise NotCountable(f"{path} cannot be read: {broken}") from broken
    finally:
        store.close()
    free = frozenset(name for name, rules in policies.items() if not any(r["approval"] or r["refuse"] for r in rules))
    mandates = {row["n"]: Mandate(requester=row["actor"], free=free) for row in rows}
    for number, event in identified:
        mandates[event.n].read(number & ((1 << SEQ_BITS) - 1), event, bodies[number])
    of = {row["id"]: [entry for entry in sends if name_of(entry) == row["id"]] for row in rows}
    judged = [(mandates[row["n"]], of[row["id"]]) for row in rows]
    return {
        "operations": list(of),
        "sends": sum(map(len, of.values())),
        "effects": sum(effects[name] for name in of),
        "authorised": sum(allowed for mandate, _ in judged for _, _, allowed in mandate.claims),
        "permission": rows[-1]["permission"] if rows else None,
        "outcome": rows[-1]["outcome"] if rows else None,
        "without": sum(forbidden(mandate, sent) for mandate, sent in judged),
        "overused": sum(m.overused + max(0, len(sent) - len(m.claims)) for m, sent in judged),
    }


def forbidden(mandate: Mandate, sent: Sequence[Entry]) -> int:
    """Bytes that nobody had allowed: other bytes than were approved, and sends of claims that were not allowed."""
    right = [entry for entry in sent if entry.get("payload_sha256") == mandate.frozen]
    wrong = [entry for entry in sent if entry.get("payload_sha256") != mandate.frozen]
    against = sum(not allowed for _, _, allowed in mandate.claims) + max(0, len(right) - len(mandate.claims))
    return weight(wrong) + weight(right[:against])


def weight(sends: Iterable[Entry]) -> int:
    """The bytes of some sends; one that had none still went."""
    return sum(max(1, entry.get("bytes", 1)) for entry in sends)
