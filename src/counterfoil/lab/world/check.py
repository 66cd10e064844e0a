"""The checkers: each law of the house asked of a world's own logs and of the file, past everything that is tested."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from counterfoil.domain.audit import audit
from counterfoil.domain.care import looks_granted
from counterfoil.domain.event import EventKind, History, attempts_of, begun_of, evidence_of
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import CALL, REST, REVIEW
from counterfoil.domain.words import Basis, Discrepancy, Dispatch, Disposition, Finding, Outcome, Permission
from counterfoil.lab.world.truth import Wire

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World

SEQ_BITS = 15
SALT_BYTES = 16


def at_send(world: World, wire: Wire) -> list[str]:
    """I1, I8, I9 and I11, asked when the first byte of a write leaves."""
    n = int(wire.name[3:15], 16)
    low, high = n << SEQ_BITS, (n + 1) << SEQ_BITS
    rows = world.read("SELECT id, kind, record, body FROM event WHERE id > ? AND id < ? ORDER BY id", low, high)
    begun = [(i, json.loads(record)) for i, kind, record, _ in rows if kind == "begun"]
    mine = [i for i, record in begun if record["attempt"]["token"] == wire.token]
    if not mine:
        return [f"I1 {wire.name}: attempt {wire.token} left before its receipt was durable"]
    faults = []
    first = next((record for _, record in begun if record.get("provider_key")), None)
    if (first or {}).get("provider_key", wire.name) != wire.name:
        faults.append(f"I9 {wire.name}: not the provider key that its receipt names")
    frozen = next((body for *_, body in rows if body), None)
    if frozen is None or frozen[SALT_BYTES:] != wire.payload:
        faults.append(f"I9 {wire.name}: other bytes left than were frozen")
    if any(json.loads(record).get("decision") == "abandon" and i < mine[0] for i, kind, record, _ in rows
           if kind == "decided"):  # fmt: skip
        faults.append(f"I8 {wire.name}: sent after it was abandoned")
    if any(w.token == wire.token and w.name == wire.name for w in world.truth.wire):
        faults.append(f"I3 {wire.name}: attempt {wire.token} was written twice")
    later = [record.get("basis") for i, record in begun if i > mine[0]]
    # Beside one that may still write only a person lets another go, or a name that is never given again.
    if any(basis != Basis.OPERATOR_OVERRIDE for basis in later) and wire.kind != "natural":
        faults.append(f"I11 {wire.name}: {wire.token} was written after a later attempt was claimed")
    return faults


def at_end(world: World) -> list[str]:
    """Every law that can be asked when nothing is left to happen."""
    faults = [f"ended: {name}: {error!r}" for name, error in world.stage.errors]
    for history in world.histories():
        world.operations += 1
        _met(world, history)
        faults += [f"audit {history.operation.id}: {v}" for v in audit(history)]
        faults += [f"{said} ({history.operation.id}, {history.operation.action})" for said in _about(world, history)]
    faults += _commits(world)
    return faults


def _met(world: World, history: History) -> None:
    """Count what this operation came to."""
    operation, kind = history.operation, history.operation.action
    if operation.settled_by:
        world.seen(f"{kind}: settled by {operation.settled_by}")
    if operation.unresolved:
        world.seen(f"{kind}: with a person")
    if operation.discrepancy is not Discrepancy.NONE:
        world.seen(f"{kind}: contradicted")
    if operation.held_by:
        world.seen("an operation ended held by another")
    if operation.disposition is Disposition.ABANDONED:
        world.seen("an operation was abandoned")
    if operation.permission is Permission.EXPIRED:
        world.seen("a question expired")
    for event in history.events:
        basis = begun_of(event).basis if event.kind is EventKind.BEGUN else ""
        if basis:
            world.seen(f"{kind}: sent again by {basis}")


def _about(world: World, history: History) -> list[str]:
    operation = history.operation
    return [
        *_effects(world, history),
        *_evidence(history),
        *_reads(world, history),
        *_rest(world, operation, history),
    ]


def _effects(world: World, history: History) -> list[str]:
    """I2 to I5, and I9 once more: what happened, held against what was allowed and what is claimed."""
    operation, truth = history.operation, world.truth
    sent, effects = truth.sent(operation.id), truth.of(operation.id)
    faults = []
    overrides = sum(begun_of(e).basis == Basis.OPERATOR_OVERRIDE for e in history.events if e.kind is EventKind.BEGUN)
    words = sum(w.verb == "override" and w.name == operation.id for w in truth.words)
    requests = {e.wire for e in effects}
    protected = operation.action in ("key", "natural")
    if len(requests) > 1 + min(overrides, words):
        faults.append(f"I3: {len(requests)} effects, {words} people allowed another")
    if overrides > words:
        faults.append(f"I3: {overrides} overridden attempts, {words} words")
    if not protected and len(sent) > 1 + words + sum(_not_left(history)):
        faults.append(f"I3: {len(sent)} writes to a provider without a key")
    if len({(w.payload, w.account) for w in sent}) > 1:
        faults.append("I9: its attempts did not send the same")
    tokens = {w.token for w in sent}
    attempts, _ = attempts_of(history.events)
    if any(a.finding is Finding.NOT_SENT and a.token in tokens for a in attempts):
        faults.append("I5: an attempt is said not to have left, and its bytes did")
    happened = [e for e in effects if e.account == operation.account]
    if operation.outcome is Outcome.SUCCEEDED and not happened:
        faults.append("I4: it is said to have succeeded, and nothing happened")
    ended = operation.outcome is Outcome.REJECTED and operation.discrepancy is not Discrepancy.OPEN
    if ended and effects and not _forgiven(world, history):
        faults.append(f"I5: it is said not to have happened, and it did ({operation.settled_by})")
    gone = operation.permission in (Permission.DENIED, Permission.EXPIRED)
    if gone and sent and operation.dispatch is Dispatch.NOT_STARTED and not all(_not_left(history)):
        faults.append(f"I5: {operation.permission.value}, and bytes left")
    return faults


def _not_left(history: History) -> list[bool]:
    """Per attempt, whether it is proven not to have left or done anything."""
    attempts, _ = attempts_of(history.events)
    return [a.finding in (Finding.NOT_SENT, Finding.REJECTED, Finding.ABSENT) for a in attempts]


def _forgiven(world: World, history: History) -> bool:
    """What was concluded from an assumption that this world breaks can be wrong: A3, how long a delivery takes; A6, the
    clock."""
    if not (world.options.beyond or "clock_step" in world.options.rates):
        return False
    world.seen("an assumption was broken, and what was proven by it is wrong")
    return history.operation.settled_by.startswith("absent")


def _evidence(history: History) -> list[str]:
    """I7: an unknown ends by evidence, never by a decision, a timer or a note."""
    faults, unknown = [], False
    for event in history.events:
        if event.kind is EventKind.OBSERVED:
            unknown = evidence_of(event).finding is Finding.UNKNOWN
    operation = history.operation
    attempts, _ = attempts_of(history.events)
    if unknown and not operation.unresolved and any(a.finding is Finding.UNKNOWN for a in attempts):
        faults.append("I7: its last word is unknown, and it counts as resolved")
    return faults


def _reads(world: World, history: History) -> list[str]:
    """I12: no more looks than the contract and people allow."""
    operation = history.operation
    made = len(world.truth.looks.get(operation.id, ()))
    most = world.actions[operation.action].contract.read_budget.looks_max + looks_granted(history.events)
    return [f"I12: {made} looks of {most}"] if made > most or made > operation.looks else []


def _rest(world: World, operation: Operation, history: History) -> list[str]:
    """L1: in the end everything is settled, or with a person who is named, with a reason."""
    if not operation.unresolved:
        return []
    faults = []
    if not operation.owner:
        faults.append("L3: nobody owns it")
    if operation.step not in (REVIEW, REST, CALL):
        faults.append(f"L1: {operation.outcome.value} and still to {operation.step or 'nothing'}, due {operation.due_at}")
    return faults


def _commits(world: World) -> list[str]:
    """I6: whatever was acknowledged stands, at its place, with the chain that led to it."""
    faults = []
    for commit in world.truth.commits:
        n = int(commit.name[3:15], 16)
        stands = world.read("SELECT hash FROM event WHERE id = ?", (n << SEQ_BITS) + commit.seq)
        if not stands or bytes(stands[0][0]) != commit.head:
            faults.append(f"I6 {commit.name}: event {commit.seq} is not the one that was acknowledged")
    return faults
