"""One event of a receipt in sentences: what happened, by whom, and by which rule, from its record alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from counterfoil.cli import stands
from counterfoil.cli.leaf import removed_line, short, speaks_of
from counterfoil.cli.marks import duration, moment
from counterfoil.cli.story import heard
from counterfoil.cli.terminal import clipped
from counterfoil.domain.approval import Proposed
from counterfoil.domain.event import ORDINARY, Begun, Decided, Event, EventKind, Noted, Removed
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.looking import PUT_OFF
from counterfoil.domain.operation import Operation
from counterfoil.domain.words import Basis, Source
from counterfoil.runtime.replay import Happened

UNREADABLE = "its record cannot be read"
TEXT_COLUMNS = 400
HOUSE = "house"
_WORKERS = (Basis.SAME_KEY_REPLAY, Basis.ABSENCE_PROVEN)
"""Bases a caller's own call never has: by name they are asked for by somebody, and otherwise taken by a worker."""
_HEARD_BY = {
    Source.TRANSPORT: HOUSE,
    Source.ANSWER: "the provider",
    Source.LATE_ANSWER: "the provider",
    Source.LOOK: "the provider, when it was read",
    Source.WEBHOOK: "the provider",
    Source.STATEMENT: "the provider's statement",
    Source.SENDER: HOUSE,
}


def what(happened: Happened) -> str:
    """What one event records, in one line."""
    match happened.record:
        case None:
            return UNREADABLE
        case Begun() as begun:
            return f"attempt {begun.attempt.number} claimed, class {begun.attempt.attempt_class.value}"
        case Proposed() as asked:
            of = f" of {', '.join(map(_cut, asked.required.approvers))}" if asked.required.approvers else ""
            people = "person" if asked.required.people == 1 else "people"
            return f"approval asked: {asked.required.people} {people}{of}, within {duration(asked.required.seconds)}"
        case Evidence() as said:
            more = "; it contradicts what was known" if said.contradicts else ""
            told = "" if heard(said) == said.finding.value else f"{heard(said)}, "
            return f"{said.source.value}: {told}{said.finding.value} of {speaks_of(said)}{more}"
        case Decided() as said:
            return _decision(said, happened)
        case Removed():
            return removed_line(happened.event)
        case Noted() as noted:
            return _note(happened.event, noted)
        case _ as never:
            assert_never(never)


def _decision(said: Decided, happened: Happened) -> str:
    facts = said.facts
    of = {"override": facts.get("of"), "release": facts.get("of")}.get(said.decision)
    told = _cut(said.decision)
    if said.decision == "approve":
        wanted = happened.asked.required.people if happened.asked else facts.get("of", 1)
        return f"{told}, {len(happened.approved_by)} of {wanted}"
    if said.decision == "assign":
        return f"{told}: from {_cut(facts.get('from') or 'nobody')} to {_cut(facts.get('to', ''))}"
    if said.decision == "escalate":
        return f"{told} to {_cut(facts.get('to', ''))}"
    if said.decision == "wait_until" and isinstance(facts.get("until"), int | float):
        return f"{told} {moment(facts['until'])} UTC"
    if said.decision == "investigate":
        looks = f", {facts['looks']} more looks" if facts.get("looks") else ""
        return f"{told} by {_cut(facts.get('whom', ''))}: {_cut(facts.get('channel', ''))}{looks}"
    return f"{told}, one of {of}" if of else told


def _note(event: Event, noted: Noted) -> str:
    facts = noted.facts
    if event.kind is EventKind.LOOKING:
        return f"look {facts.get('used', '?')} of {facts.get('of', '?')} paid for"
    if event.kind is EventKind.HELD:
        return f"asked, and {_cut(noted.note)}" if event.seq == 1 else _cut(noted.note)
    other = facts.get("operation") or facts.get("after")
    return f"{_cut(noted.note)}: {_cut(other)}" if other else _cut(noted.note)


# -- by whom -----------------------------------------------------------------------------------------------------------


def by(happened: Happened, operation: Operation) -> str:
    """Who did it; empty where the record does not say.

    Args:
        happened: the event.
        operation: whose requester asked for it.
    """
    match happened.record:
        case None:
            return ""
        case Begun() as begun:
            return _claimant(begun, operation)
        case Proposed() as asked:
            return _cut(asked.bound.actor)
        case Evidence() as said:
            return _observer(said)
        case Decided() as said:
            return _known(said.by, said.how)
        case Removed() as left:
            return _cut(left.by)
        case Noted() as noted:
            theirs = happened.event.seq == 1 or happened.event.kind is EventKind.REPEATED
            return _cut(noted.facts.get("by") or (operation.actor if theirs else HOUSE))
        case _ as never:
            assert_never(never)


def _claimant(begun: Begun, operation: Operation) -> str:
    """Who made an attempt; a record of before workers named themselves tells by its basis that no caller did."""
    worker = begun.attempt.worker
    if begun.by == worker or (not begun.by and begun.basis in _WORKERS):
        return f"worker {_cut(worker)}"
    return _known(begun.by or operation.actor, begun.how)


def _observer(said: Evidence) -> str:
    if said.source is not Source.OPERATOR:
        handed = f", handed in by {_known(said.by, said.how)}" if said.by else ""
        return _HEARD_BY[said.source] + handed
    return _known(said.by, said.how) if said.by else "an operator"


def _known(name: str, how: str) -> str:
    return _cut(name) + (f", {_cut(how)}" if how else "")


# -- by which rule -----------------------------------------------------------------------------------------------------


def rules(happened: Happened) -> Iterator[tuple[str, str]]:
    """What allowed it, each as a name and a sentence; nothing where the record names nothing."""
    match happened.record:
        case Begun() as begun:
            yield from _why_claimed(happened, begun)
        case Proposed() as asked:
            yield "rule", f"{_cut(asked.rule) or 'unnamed'} of policy {short(asked.bound.policy)}"
            yield from (("anew", _cut(reason)) for reason in asked.because)
        case Evidence() as said:
            yield from _clause(happened, said)
        case Decided() as said:
            yield from _grounds(said)
        case Removed() as left:
            yield "rule", f"retention of {_cut(left.rule)!r}, policy {short(left.policy)}"
        case Noted() as noted:
            yield from _noted(happened.event, noted)
        case None:
            return
        case _ as never:
            assert_never(never)


def _why_claimed(happened: Happened, begun: Begun) -> Iterator[tuple[str, str]]:
    yield "basis", _cut(stands.basis(begun, otherwise="the first attempt of its key"))
    policy = f"policy {short(begun.policy)}" if begun.policy else "no policy in force"
    if begun.rule:
        policy = f"rule {_cut(begun.rule)} of {policy}"
    if happened.overrides:
        events = ", ".join(f"event {seq} by {_cut(by)}" for seq, by in happened.overrides)
        yield "override", f"{events}; {policy}"
    elif begun.attempt.approval:
        people = ", ".join(map(_cut, happened.approved_by)) or "people that are not on record any more"
        yield "approval", f"event {begun.attempt.approval}, by {people}; {policy}"
    else:
        yield "approval", f"none was asked for: {policy}"
    yield "contract", f"{_cut(begun.contract_id)}, {short(begun.contract)}"
    if begun.reason:
        yield "reason", _cut(begun.reason)


def _clause(happened: Happened, said: Evidence) -> Iterator[tuple[str, str]]:
    """The clause that judged it; silence has only a fixed word for what kind of silence it was."""
    if said.rule:
        clause = said.rule.startswith(("answers", "looks", "webhooks"))
        of = f" of contract {_cut(happened.first.contract_id)}" if clause and happened.first else ""
        yield "rule", f"{_cut(said.rule)}{of}" + (f": {_cut(said.reason)}" if said.reason else "")
    elif said.reason:
        yield "rule", f"silence proves nothing: {_cut(said.reason)}"
    if said.why:
        yield "reason", _cut(said.why)
    if said.body_digest and happened.event.body is None:
        yield "body", "erased"


def _grounds(said: Decided) -> Iterator[tuple[str, str]]:
    if said.decision == "expire":
        yield "rule", _cut(said.reason)
    elif said.reason:
        yield "reason", _cut(said.reason)
    if said.facts.get("policy"):
        yield "rule", f"retention of {_cut(said.facts.get('rule') or ORDINARY)!r}, policy {short(said.facts['policy'])}"
    if said.decision == "approve" and said.facts.get("binding"):
        yield "binding", _cut(said.facts["binding"])
    if said.decision == "release" and said.facts.get("beside"):
        yield "beside", ", ".join(map(_cut, said.facts["beside"]))
    if said.seen_seq:
        yield "seen", f"up to event {said.seen_seq}"


def _noted(event: Event, noted: Noted) -> Iterator[tuple[str, str]]:
    if noted.note == "reopened":
        said = "late evidence left it unresolved again while this one holds their effect; once this one is settled"
        yield "rule", f"{said}, that one holds it: evidence is never refused"
    elif event.kind is EventKind.LOOKING:
        last = "; no look follows this one" if noted.facts.get("last_by") else ""
        yield "rule", f"the read budget: {noted.facts.get('used', '?')} of {noted.facts.get('of', '?')}{last}"
    elif noted.note == PUT_OFF:
        until = noted.facts.get("until")
        said = f"; until {moment(until)} UTC" if isinstance(until, int | float) else ""
        yield "rule", f"{_cut(noted.facts.get('because', ''))}{said}"
    elif event.kind is EventKind.HELD:
        yield "rule", "one unresolved operation for each effect"
    elif event.kind is EventKind.REPEATED:
        yield "rule", "the same key and fingerprint: recorded, never sent"


def _cut(text: object) -> str:
    return clipped(text, TEXT_COLUMNS)
