"""Recount a laboratory run from its raw ground truth, with nothing of the project in between.

``python scripts/recount.py DIR [--json]`` reads what ``counterfoil-lab ... --keep DIR`` left: ``effects.jsonl`` (a line
per applied effect, written by the provider), ``wire.jsonl`` (a line per request the provider received), ``receipts.db``
(the store, opened read-only), ``kills.jsonl`` (a line per SIGKILL) and ``troubles.jsonl`` (a line per other trouble),
in DIR or in each folder directly below it. It prints its own counts and compares them with ``DIR/result.json``,
where that exists: the sums, the figures of each contract (folder ``CONTRACT``) and each row (folder ``CASE-RUNNER``; or
``CASE``, where a certified worker's own store stands below it, ``state/receipts.db``). What ``counterfoil-lab
approvals`` left has one wire for all and a store per case (``cases/CASE/receipts.db``): there each send is held against
the store's own event rows, and bytes that nobody had allowed are counted, and uses of an approval beyond those it was
good for. What ``counterfoil-lab simulate`` left has a folder per virtual world, with what people decided there
(``words.jsonl``) and whether what the deployment assumes held there (``world.json``).

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

EFFECTS, WIRE, STORE, RESULT = "effects.jsonl", "wire.jsonl", "receipts.db", "result.json"
KILLS, TROUBLES = "kills.jsonl", "troubles.jsonl"
WORDS, WORLD = "words.jsonl", "world.json"

FROM_STORE = (
    "operations", "unrecorded", "excess_sends", "false_outcomes", "unknown_seen", "manual_review", "safe_to_retry",
    "unsettled", "unowned_unknowns",
)  # fmt: skip
SUMMED = ("effects", "sends", "duplicates", *FROM_STORE, "kills")
AUTHORITY = ("cases", "bytes_sent_without_authority", "approvals_used_twice")
WORLDS = ("second_effects", "false_outcomes", "false_beyond")
PER_CASE = ("effects", "sends", "authorised", "permission", "outcome")
COMPARED = (
    *SUMMED,
    "kills_by_window",
    "kills_by_aim",
    "troubles",
    "second_effects",
    "false_beyond",
    *AUTHORITY,
    "authorised",
    "permission",
    "outcome",
)
"""What a result may claim that is counted here as well; other fields are the laboratory's own."""

WINDOWS = ("before_claim", "claim_to_outcome", "look_to_evidence", "after_outcome")
"""What a killed worker was between: nothing begun, a claim without outcome, a look without evidence, neither."""

SEQ_BITS = 15
"""An event's row number is its operation's, then this many bits of sequence."""
SALT_BYTES = 16
"""What stands before the payload in a claim's body."""

STATE = "state"
"""The folder that a certified worker was given for its own; its receipts stand there, where it kept any."""

CASES = "cases"
"""Where a run keeps a store per case, with one provider for all."""
ENDED_BY = {"deny": "denied", "revoke": "revoked", "expire": "expired"}
"""Decisions after which nothing may be claimed."""

WORKER_DEAD = "house.worker_dead"
"""By this rule another worker records that the one of an attempt has died."""

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
    owner: str | None = None


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
    kept = {name: row[name] for name in ("dispatch", "unresolved", "settled_by", "step", "owner") if name in row}
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
    effects, wire = lines(folder / EFFECTS), lines(folder / WIRE)
    found = stored(folder / STORE) or stored(folder / STATE / STORE)
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
    befallen = lines(folder / TROUBLES)
    counts["troubles"] = None if befallen is None else dict(Counter(entry["trouble"] for entry in befallen))
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
        "unowned_unknowns": sum(1 for r in receipts if r.unresolved and (r.owner == "" or not r.step)),
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
        return {"kills": None, "kills_by_window": None, "kills_by_aim": None}
    placed = Counter(window(kill, found.events) for kill in kills)
    return {
        "kills": len(kills),
        "kills_by_window": {name: placed[name] for name in WINDOWS},
        "kills_by_aim": dict(Counter(kill.get("aim", "") for kill in kills)),
    }


def window(kill: Entry, events: Iterable[Event]) -> str:
    """Say what a worker was between when it was killed: what it had begun and did not write down itself.

    What was written later, others wrote; so they did with what they say of its death, or look for once more.
    """
    began, claims, looks, lost = False, set(), set(), set()
    for event in events:
        if event.at > kill["at"]:
            continue
        record = event.record
        attempt, facts = record.get("attempt", {}), record.get("facts", {})
        if event.kind == "begun" and attempt.get("worker") == kill["worker"]:
            claims.add((event.n, attempt["number"]))
            began = True
        elif event.kind == "looking" and facts.get("by") == kill["worker"]:
            looks.add(event.n)
            began = True
        elif event.kind == "looking" and event.n in looks:
            lost.add("look_to_evidence")
        elif event.kind == "observed":
            if (event.n, attempt) in claims and record.get("rule") == WORKER_DEAD:
                lost.add("claim_to_outcome")
            claims.discard((event.n, attempt))
            looks -= {event.n} if record.get("source") == "look" else set()
    if claims or "claim_to_outcome" in lost:
        return "claim_to_outcome"
    return "look_to_evidence" if looks or lost else "after_outcome" if began else "before_claim"


# -- virtual worlds ----------------------------------------------------------------------------------------------------


def world(folder: Path) -> Counts:
    """Count one virtual world; where an assumption is broken, what was concluded from it is counted apart."""
    counts = count(folder)
    said = Counter(entry["name"] for entry in lines(folder / WORDS) or [] if entry["verb"] == "override")
    requests: dict[str, set[int]] = {}
    for effect in lines(folder / EFFECTS) or []:
        if effect["wire"]:
            requests.setdefault(effect["name"], set()).add(effect["wire"])
    try:
        held = json.loads((folder / WORLD).read_text("utf-8"))["assumptions"] == "hold"
    except (OSError, ValueError, KeyError) as broken:
        raise NotCountable(f"{folder / WORLD} does not say whether the assumptions hold") from broken
    wrong = counts["false_outcomes"]
    return counts | {
        "second_effects": sum(max(0, len(found) - 1 - said[name]) for name, found in requests.items()),
        "false_outcomes": wrong if held else 0,
        "false_beyond": 0 if held else wrong,
    }


def simulation(top: Path) -> Counts:
    """Count every world of a simulation and add up."""
    runs = {path.parent.name: world(path.parent) for path in sorted(top.glob(f"*/{WORDS}"))}
    return {name: _total(run[name] for run in runs.values()) for name in (*SUMMED, *WORLDS)} | {"runs": runs}


# -- authority ---------------------------------------------------------------------------------------------------------


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
            if named != binding(self.question) or (
                asked["approvers"] and person not in map(spelled, asked["approvers"])
            ):
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


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


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
        identified = list(zip(sorted(bodies), _events(store), strict=True))
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


def folder_of(name: str) -> str:
    """The folder in which a case of this name stands."""
    return "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in name)


# -- the whole run -----------------------------------------------------------------------------------------------------


def recount(top: Path) -> Counts:
    """Count the run in a folder, or the sum of the runs in the folders directly below it."""
    if (top / CASES).is_dir():
        return count(top) | authority(top)
    if (top / EFFECTS).exists():
        return count(top)
    if any(top.glob(f"*/{WORDS}")):
        return simulation(top)
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
        if "authorised" in row:
            said = {"sends" if part == "sent" else part: value for part, value in row.items()}
            figures = {part: said.get(part) for part in PER_CASE}
            found += compared(f"{name}: ", figures, runs.get(folder_of(name), {}))
            continue
        counted = runs.get(name) or runs.get(row.get("case"), {})
        found += compared(f"{name}: ", {"effects": row.get("effects"), "sends": row.get("sent")}, counted)
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
