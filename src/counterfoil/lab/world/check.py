"""The checkers: each law of the house asked of a world's own logs and of the file, past everything that is tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.domain.audit import audit
from counterfoil.domain.care import looks_granted
from counterfoil.domain.event import EventKind, History, attempts_of, begun_of, evidence_of
from counterfoil.domain.operation import Operation
from counterfoil.domain.rejudge import rejudge
from counterfoil.domain.schedule import CALL, REST, REVIEW
from counterfoil.domain.words import Basis, Discrepancy, Dispatch, Disposition, Finding, Outcome, Permission, Source
from counterfoil.lab.world.score import late

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World


def at_end(world: World) -> list[str]:
    """Every law that can be asked when nothing is left to happen."""
    faults = [f"ended: {name}: {error!r}" for name, error in world.stage.errors]
    for history in world.histories():
        world.operations += 1
        _met(world, history)
        faults += [f"audit {v.operation}: event {v.seq}, {v.law.value}: {v.problem}" for v in audit(history)]
        judged = rejudge(history, world.actions[history.operation.action])
        faults += [f"audit {history.operation.id}: {one.broken}" for one in judged if one.broken]
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
        *_replays(history),
        *_reads(world, history),
        *_rest(operation),
    ]


def _effects(world: World, history: History) -> list[str]:
    """I2 to I5, and I9 once more: what happened, held against what was allowed and what is claimed."""
    operation, truth = history.operation, world.truth
    sent, effects = truth.sent(operation.id), truth.of(operation.id)
    faults = []
    overrides = sum(begun_of(e).basis == Basis.OPERATOR_OVERRIDE for e in history.events if e.kind is EventKind.BEGUN)
    words = len(truth.said(operation.id, "override"))
    requests = {e.wire for e in effects}
    protected = operation.action in ("key", "natural")
    attempts, _ = attempts_of(history.events)
    not_left = [a.finding in (Finding.NOT_SENT, Finding.REJECTED, Finding.ABSENT) for a in attempts]
    if len(requests) > 1 + min(overrides, words) + late(world, operation.id):
        faults.append(f"I3: {len(requests)} effects, {words} people allowed another")
    if overrides > words:
        faults.append(f"I3: {overrides} overridden attempts, {words} words")
    if not protected and len(sent) > 1 + words + sum(not_left):
        faults.append(f"I3: {len(sent)} writes to a provider without a key")
    if len({(w.payload, w.account) for w in sent}) > 1:
        faults.append("I9: its attempts did not send the same")
    tokens = {w.token for w in sent}
    if any(a.finding is Finding.NOT_SENT and a.token in tokens for a in attempts):
        faults.append("I5: an attempt is said not to have left, and its bytes did")
    happened = [e for e in effects if e.account == operation.account]
    if operation.outcome is Outcome.SUCCEEDED and not happened:
        faults.append("I4: it is said to have succeeded, and nothing happened")
    ended = operation.outcome is Outcome.REJECTED and operation.discrepancy is not Discrepancy.OPEN
    if ended and effects and not _forgiven(world, history):
        faults.append(f"I5: it is said not to have happened, and it did ({operation.settled_by})")
    nothing = (operation.outcome, operation.dispatch) == (Outcome.UNOBSERVED, Dispatch.NOT_STARTED)
    if nothing and effects:
        faults.append("I5: nothing of it is said to have left, and it happened")
    gone = operation.permission in (Permission.DENIED, Permission.EXPIRED)
    if gone and sent and operation.dispatch is Dispatch.NOT_STARTED and not all(not_left):
        faults.append(f"I5: {operation.permission.value}, and bytes left")
    return faults


def _forgiven(world: World, history: History) -> bool:
    """What was concluded from an assumption that this world breaks may be wrong."""
    if world.options.assumptions_hold:
        return False
    world.seen("a delivery took longer than was assumed, and what was proven by that is wrong")
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


def _replays(history: History) -> list[str]:
    """I11: no repeat beside an attempt that nobody has reported on, nor one that may still write."""
    reported: set[int] = set()
    quiet: set[int] = set()
    faults = []
    number = 0
    for event in history.events:
        if event.kind is EventKind.OBSERVED:
            evidence = evidence_of(event)
            reported |= {evidence.attempt} if evidence.source is not Source.LOOK else set()
            quiet |= {evidence.attempt} if evidence.quiesced else set()
        elif event.kind is EventKind.BEGUN:
            begun = begun_of(event)
            safe = reported if begun.key_valid_seconds is None else reported & quiet
            if begun.basis == Basis.SAME_KEY_REPLAY and not safe >= set(range(1, number + 1)):
                faults.append("I11: it was sent again while an attempt was not reported on, or might still write")
            number += 1
    return faults


def _reads(world: World, history: History) -> list[str]:
    """I12: no more looks than the contract and people allow."""
    operation = history.operation
    made = len(world.truth.looks.get(operation.id, ()))
    most = world.actions[operation.action].contract.read_budget.looks_max + looks_granted(history.events)
    return [f"I12: {made} looks of {most}"] if made > most or made > operation.looks else []


def _rest(operation: Operation) -> list[str]:
    """L1: in the end everything is settled, or with a person who is named, with a reason."""
    if not operation.unresolved:
        return []
    faults = []
    if not operation.owner:
        faults.append("L3: nobody owns it")
    if operation.step not in (REVIEW, REST, CALL):
        faults.append(
            f"L1: {operation.outcome.value} and still to {operation.step or 'nothing'}, due {operation.due_at}"
        )
    return faults


def _says(record: bytes, words: bytes) -> bool:
    """Whether a record is the words that were given; a claim's has the moment it was claimed after them."""
    return record == words or record.startswith(words[:-1] + b',"steady":["')


def _commits(world: World) -> list[str]:
    """I6: whatever was acknowledged stands, at its place in its chain, with the words that were given."""
    faults = []
    stands = dict(world.read("SELECT hash, record FROM event"))
    for commit in world.truth.commits:
        record = stands.get(commit.head)
        if record is None:
            faults.append(f"I6 {commit.name}: an event that was acknowledged is gone")
        elif commit.record is not None and not _says(record, commit.record):
            faults.append(f"I6 {commit.name}: something else stands where a record was acknowledged")
    return faults
