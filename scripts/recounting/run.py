"""One run: a provider's truth, the requests it received, and what the receipts say of both."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from recounting.agreement import UNLIKE, agreement
from recounting.ground import (
    EFFECTS,
    STORE,
    WIRE,
    Counts,
    Entry,
    Event,
    NotCountable,
    Receipt,
    Stored,
    duplicates,
    lines,
    name_of,
    stored,
    total,
)

KILLS, TROUBLES = "kills.jsonl", "troubles.jsonl"
RESTARTS, CUTS, ACKNOWLEDGED = "restarts.jsonl", "commit_cuts.jsonl", "acknowledged.jsonl"
"""Restarts of a database, commits that nobody answered for, and hashes of the events that it said are durable."""
STATE = "state"
"""The folder that a certified worker was given for its own; its receipts stand there, where it kept any."""
TOLD = ("transcript.jsonl", "second-life.out")
"""Where a worker's own last word stands: in a line of JSON, or as the last word of its output."""

OUTCOMES = frozenset({"unobserved", "accepted", "succeeded", "rejected", "unknown"})

FROM_STORE = (
    "operations", "unrecorded", "excess_sends", "false_outcomes", "unknown_seen", "manual_review", "safe_to_retry",
    "unsettled", "unowned_unknowns",
)  # fmt: skip
SUMMED = ("effects", "sends", "duplicates", *FROM_STORE, "kills")
OF_DATABASE = ("restarts", "commit_cuts", "ambiguous", "acknowledged", "acknowledged_lost")
"""What only receipts in a database suffer."""
WINDOWS = ("before_claim", "claim_to_outcome", "look_to_evidence", "after_outcome")
"""What a killed worker was between: nothing begun, a claim without outcome, a look without evidence, neither."""

WORKER_DEAD = "house.worker_dead"
"""By this rule another worker records that the one of an attempt has died."""

CONTROL = "control"  # the provider's known item: looked for, never sent


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
    counts["told"] = told(folder)
    befallen = lines(folder / TROUBLES)
    counts["troubles"] = None if befallen is None else dict(Counter(entry["trouble"] for entry in befallen))
    counts |= of_database(folder, found)
    kills = lines(folder / KILLS)
    return counts | joined(effects, sends, found) | agreement(folder, effects, sends, found) | killed(kills, found)


def of_database(folder: Path, found: Stored | None) -> Counts:
    """Count what a database was put through, and what it acknowledged and does not hold; nothing of a file."""
    restarts, cuts, acknowledged = (lines(folder / name) for name in (RESTARTS, CUTS, ACKNOWLEDGED))
    if restarts is None or cuts is None or acknowledged is None or found is None:
        return {}
    stand = {event.id for event in found.events}
    durable = sum(bool(cut["events"]) and stand.issuperset(cut["events"]) for cut in cuts)
    told = {line["hash"] for line in acknowledged}
    return {
        "restarts": len(restarts),
        "commit_cuts": len(cuts),
        "ambiguous": {"durable": durable, "absent": sum(not cut["events"] for cut in cuts)},
        "acknowledged": len(told),
        "acknowledged_lost": len(told - {event.hash for event in found.events}),
    }


def told(folder: Path) -> str | None:
    """What the worker itself said last, where it was asked."""
    transcript, said = lines(folder / TOLD[0]), folder / TOLD[1]
    if transcript:
        return str(transcript[-1].get("what"))
    words = said.read_text("utf-8", "replace").split() if said.exists() else []
    return words[-1] if words and words[-1] in OUTCOMES else None


def together(top: Path) -> Counts:
    """Count the runs in the folders directly below this one, and add up."""
    runs = {path.parent.name: count(path.parent) for path in sorted(top.glob(f"*/{EFFECTS}"))}
    if not runs:
        raise NotCountable(f"{top} has no {EFFECTS}, nor has any folder directly below it")
    summed: Counts = {name: total(run[name] for run in runs.values()) for name in SUMMED}
    placed = [run["kills_by_window"] for run in runs.values()]
    windows = None if None in placed else {name: sum(run[name] for run in placed) for name in WINDOWS}
    summed |= {name: sum(run[name] or 0 for run in runs.values()) for name in UNLIKE}
    return summed | {"kills_by_window": windows, "automatic_second_sends": second_sends(summed), "runs": runs}


def second_sends(counts: Counts) -> int | None:
    """How many more sends there were than operations; None where one of the two was not counted."""
    sends, operations = counts.get("sends"), counts.get("operations")
    return None if sends is None or operations is None else sends - operations


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
        return {"kills": None, "kills_by_window": None, "kills_by_aim": None, "kills_misplaced": None}
    places = [window(kill, found.events) for kill in kills]
    placed = Counter(places)
    said = [(kill.get("window", place), place) for kill, place in zip(kills, places, strict=True)]
    strangers = sum(is_stranger(kill, found.workers) for kill in kills)
    return {
        "kills": len(kills),
        "kills_misplaced": strangers + sum(where != place for where, place in said),
        "kills_by_window": {name: placed[name] for name in WINDOWS},
        "kills_by_aim": dict(Counter(kill.get("aim", "") for kill in kills)),
    }


def is_stranger(kill: Entry, workers: dict[str, int] | None) -> bool:
    """Whether the killed worker never had the store open, or not in that process; one killed too early has no name."""
    if workers is None:
        return False
    return workers.get(kill["worker"]) != kill["pid"] if kill["worker"] else kill["pid"] in workers.values()


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
