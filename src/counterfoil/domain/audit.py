"""Verification: whether one operation's history is whole, and whether its columns are what that history says.

It finds accidents and every edit that was not made with recomputation of the chain. It reads no clock, repairs
nothing, and asks of each decision on record whether it was permitted when it was made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import assert_never

import msgspec

from counterfoil.domain import fence_law
from counterfoil.domain.approval import Proposed
from counterfoil.domain.attempt import Attempt, Fold, contradiction, fold, settle
from counterfoil.domain.coherence import incoherent
from counterfoil.domain.elapsed import since_last_write
from counterfoil.domain.errors import ReceiptBroken
from counterfoil.domain.event import (
    Begun,
    Decided,
    Event,
    EventKind,
    History,
    Noted,
    Removed,
    assumed_delivery,
    chain,
    first_begun,
    intended_of,
    is_news,
    start_of,
)
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.identifier import row_number
from counterfoil.domain.mandate import Mandate
from counterfoil.domain.negative import Paid, against_absence
from counterfoil.domain.operation import COLUMNS, Operation
from counterfoil.domain.payload import salted_digest
from counterfoil.domain.positive import not_said
from counterfoil.domain.record import Record, digest_of, readable
from counterfoil.domain.retry import CLASS_OF
from counterfoil.domain.schedule import APPROVE, CALL, DISPATCH, WAITING
from counterfoil.domain.violation import Law, Violation
from counterfoil.domain.words import (
    AttemptClass,
    Basis,
    Discrepancy,
    Dispatch,
    Disposition,
    Finding,
    Permission,
    Source,
)


def audit(history: History) -> tuple[Violation, ...]:
    """Name everything about one operation that cannot be true; empty means that its record holds.

    A receipt that was removed together with all its events, or an edit made with recomputation of every hash after
    it, is found only against heads that are kept elsewhere.
    """
    walk = _Walk(history.operation)
    walk.links(history)
    readable = walk.decode(history.events)
    if readable is not None:
        walk.assigned = any(isinstance(record, Decided) and record.decision == "assign" for _, record in readable)
        for event, record in readable:
            walk.body(event, record)
            walk.step(event, record)
        walk.columns(history)
        walk.found += incoherent(history, readable)
    return tuple(walk.found)


class _Walk:
    """One pass over the events, carrying what they have said so far."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.found: list[Violation] = []
        self.attempts: tuple[Attempt, ...] = ()
        self.discrepancy = Discrepancy.NONE
        self.mandate = Mandate(operation.actor, operation.owner)
        self.assigned = False
        """Its owner was changed on record."""
        self.first: Begun | None = None
        self.provider_key = self.payload_digest = ""
        self.settled_by = ""
        self.begun_seq = 0
        """Number of the event that began its last attempt."""
        self.looks = 0
        self.paid: list[Paid] = []
        self.passed: list[Event] = []
        self.removed: Removed | None = None

    def fault(self, seq: int, law: Law, problem: str) -> None:
        """Note one violation."""
        self.found.append(Violation(operation=self.operation.id, seq=seq, law=law, problem=problem))

    # -- the chain -----------------------------------------------------------------------------------------------------

    def links(self, history: History) -> None:
        """Numbers without a gap, each hash over the one before, and the operation's row naming the last."""
        operation = history.operation
        if row_number(operation.id) != operation.n:
            self.fault(0, Law.IDENTITY, f"row {operation.n} is not the row its id names")
        last, previous = start_of(history.events)
        for event in history.events:
            if event.kind is EventKind.REMOVED and event is not history.events[0]:
                self.fault(event.seq, Law.SEQUENCE, "it stands for removed events, after others that were not")
            if event.n != operation.n or event.seq != last + 1:
                self.fault(event.seq, Law.SEQUENCE, f"event {event.seq} stands where event {last + 1} belongs")
            elif event.hash != chain(previous, operation.id, event.seq, event.kind.value, event.at, event.record):
                self.fault(event.seq, Law.CHAIN, "its hash does not cover what stands there after the event before")
            last, previous = event.seq, event.hash
        if last != operation.seq or not history.events:
            self.fault(last + 1, Law.SEQUENCE, f"the operation names {operation.seq} events and the last is {last}")

    def decode(self, events: tuple[Event, ...]) -> list[tuple[Event, Record]] | None:
        """Every event with its record; None where one cannot be read, because nothing after it can be judged."""
        read: list[tuple[Event, Record]] = []
        for event in events:
            record = readable(event)
            if record is not None:
                read.append((event, record))
            else:
                self.fault(event.seq, Law.RECORD, f"its record cannot be read as {event.kind.value!r}")
        return read if len(read) == len(events) else None

    def body(self, event: Event, record: Record) -> None:
        """A body may be erased; one that is there must be the one on record, and what begins must name one."""
        named = digest_of(event, record)
        if event.body is None:
            return
        if not named:
            self.fault(event.seq, Law.BODY, "it has a body and its record names none")
        elif salted_digest(event.body) != named:
            self.fault(event.seq, Law.BODY, "its body is not the one whose salted digest is on record")

    # -- what happened -------------------------------------------------------------------------------------------------

    def step(self, event: Event, record: Record) -> None:
        """Follow one event, and ask whether it could happen then."""
        self.passed.append(event)
        if event.seq == 1 or isinstance(record, Removed):
            self._asked(event)
        match record:
            case Begun():
                self._begun(event, record)
            case Evidence():
                self._observed(event, record)
            case Decided():
                self._decided(event, record)
            case Proposed():
                self._proposed(event, record)
            case Noted():
                self._noted(event, record)
            case Removed():
                self._removed(event, record)
            case _ as never:
                assert_never(never)

    def _asked(self, event: Event) -> None:
        """The first record holds what was asked; the operation's row must say the same."""
        asked = None
        with contextlib.suppress(ReceiptBroken):
            asked = intended_of((event,))
        if asked is None:
            self.fault(event.seq, Law.IDENTITY, "its first record does not say what was asked")
            return
        self.mandate.owner = asked.owner
        said = [name for name in asked.__struct_fields__ if name in COLUMNS and not (name == "owner" and self.assigned)]
        edited = [name for name in said if getattr(asked, name) != getattr(self.operation, name)]
        if edited:
            self.fault(event.seq, Law.IDENTITY, f"the row's {', '.join(edited)} is not what was asked")

    def _begun(self, event: Event, begun: Begun) -> None:
        if self.removed:
            self.fault(event.seq, Law.BASIS, "an attempt was dispatched after retention had removed its record")
        if begun.attempt.number != len(self.attempts) + 1:
            self.fault(event.seq, Law.BASIS, f"attempt {begun.attempt.number} follows {len(self.attempts)} attempts")
        if any(a.token == begun.attempt.token for a in self.attempts):
            self.fault(event.seq, Law.BASIS, "it was dispatched under the token of an earlier attempt")
        if self.provider_key and begun.provider_key != self.provider_key:
            self.fault(event.seq, Law.BASIS, "it carries another provider key than the operation's first record")
        if not begun.payload_digest and event.seq == 1:
            self.fault(event.seq, Law.BODY, "it names no payload digest, so nothing says what was sent")
        self._based(event, begun)
        under = [a.finding for a in self.attempts if a.approval == begun.attempt.approval]
        self._word(event, self.mandate.begun(event, begun, under))
        self.first = self.first or begun
        self.provider_key = self.provider_key or begun.provider_key
        self.attempts = (*self.attempts, msgspec.structs.replace(begun.attempt, started_at=event.at))
        self.settled_by = ""
        self.begun_seq = event.seq

    def _based(self, event: Event, begun: Begun) -> None:
        """The basis on record held at that moment; a first attempt needs none."""
        if begun.attempt.attempt_class is AttemptClass.FENCE:
            for against in fence_law.against_begun(begun, self.attempts, self.discrepancy, self.first):
                self.fault(event.seq, Law.BASIS, f"a fence could not be sent: {against}")
            return
        if not self.attempts:
            if begun.basis:
                self.fault(event.seq, Law.BASIS, "a first attempt names a basis for a further one")
            return
        if begun.basis not in list(Basis):
            self.fault(event.seq, Law.BASIS, "a further attempt was dispatched without a recorded basis")
            return
        basis = Basis(begun.basis)
        against = self._against(basis, event, begun)
        if against:
            self.fault(event.seq, Law.BASIS, f"{basis.value} did not hold: {against}")
        if begun.attempt.attempt_class is not CLASS_OF[basis]:
            self.fault(event.seq, Law.BASIS, f"{basis.value} does not allow class {begun.attempt.attempt_class.value}")

    def _against(self, basis: Basis, event: Event, begun: Begun) -> str:
        findings = {a.finding for a in self.attempts}
        left = findings - {Finding.NOT_SENT}
        if findings & {Finding.SUCCEEDED, Finding.ACCEPTED}:
            return "the effect had taken place or was accepted"
        if self.discrepancy is Discrepancy.OPEN:
            return "evidence contradicted evidence"
        if basis is not Basis.OPERATOR_OVERRIDE and fence_law.stands(self.attempts):
            return "a fence may have stood where it would go"
        match basis:
            case Basis.NOT_SENT:
                return "an attempt may have left" if left else ""
            case Basis.REJECTED_WITHOUT_EFFECT:
                return "" if Finding.REJECTED in left and left <= _NOTHING else "not every attempt was rejected"
            case Basis.ABSENCE_PROVEN:
                proven = Finding.ABSENT in left and left <= _NOTHING and self._quiesced()
                return "" if proven else "absence was not proven for every attempt"
            case Basis.SAME_KEY_REPLAY:
                return self._against_replay(event, begun)
            case Basis.OPERATOR_OVERRIDE:
                return "" if self.mandate.overridden else "no override was decided"
            case _ as never:
                assert_never(never)

    def _against_replay(self, event: Event, begun: Begun) -> str:
        if any(a.finding is None for a in self.attempts):
            return "nobody had reported on an earlier attempt"
        valid = begun.key_valid_seconds
        if valid is None:
            return ""  # the provider never forgets it; the contract that says so is pinned by its digest
        since = begun.steady.since(self.first.steady) if begun.steady and self.first else None
        if max(event.at - self.attempts[0].started_at, since or 0.0) > valid:
            return "the key had ended"
        return "" if self._quiesced() else "a worker of an earlier attempt could still write"

    def _quiesced(self) -> bool:
        return all(a.quiesced for a in self.attempts)

    def _observed(self, event: Event, evidence: Evidence) -> None:
        if not 1 <= evidence.attempt <= len(self.attempts):
            self.fault(event.seq, Law.EVIDENCE, f"it speaks of attempt {evidence.attempt} of {len(self.attempts)}")
            return
        against = self._insufficient(evidence)
        if against:
            self.fault(event.seq, Law.EVIDENCE, f"{evidence.finding.value} by {evidence.source.value}: {against}")
        self.attempts, contradicts = settle(self.attempts, evidence)
        stood = self.discrepancy
        self.discrepancy = contradiction(stood, evidence, self.attempts, contradicts=contradicts)
        folded = self._folded()
        certain = evidence.finding is not Finding.UNKNOWN
        self.mandate.news(certain=certain, back=folded.unresolved and (certain or self.discrepancy is not stood))
        started = folded.dispatch is not Dispatch.NOT_STARTED
        if started:
            self.mandate.left()
        settled = started and not folded.unresolved
        said = f"{evidence.finding.value}:{evidence.source.value}"
        self.settled_by = (self.settled_by or said) if settled else ""

    def _insufficient(self, evidence: Evidence) -> str:
        """Why this source cannot establish that finding; empty where it can."""
        if evidence.source is Source.OPERATOR and not evidence.body_digest:
            return "an operator's finding names nothing that was seen"
        if fence_law.is_about_fence(evidence, self.attempts):
            return fence_law.against_said(evidence)
        match evidence.finding:
            case Finding.UNKNOWN:
                return ""
            case Finding.NOT_SENT:
                return "a look cannot show that nothing was sent" if evidence.source is Source.LOOK else ""
            case Finding.ABSENT:
                return against_absence(evidence, self.attempts, self.paid, assumed_delivery(self.first))
            case Finding.SUCCEEDED | Finding.ACCEPTED | Finding.REJECTED:
                return not_said(evidence)
            case _ as never:
                assert_never(never)

    def _decided(self, event: Event, decided: Decided) -> None:
        folded = self._folded()
        unresolved, started = folded.unresolved, folded.dispatch is not Dispatch.NOT_STARTED
        done = started and not unresolved and not self._waits_for()
        self._word(event, self.mandate.decided(event, decided, unresolved=unresolved, started=started, done=done))

    def _proposed(self, event: Event, asked: Proposed) -> None:
        self._word(event, self.mandate.proposed(event, asked))
        self.provider_key = self.provider_key or asked.provider_key
        if asked.provider_key != self.provider_key:
            self.fault(event.seq, Law.BASIS, "it names another provider key than the operation's first record")
        if not asked.bound.payload_digest:
            self.fault(event.seq, Law.BODY, "it names no payload digest, so nothing says what was asked")
        self.payload_digest = self.payload_digest or asked.bound.payload_digest
        if asked.bound.payload_digest != self.payload_digest:
            self.fault(event.seq, Law.BODY, "it asks about another payload than the one that was frozen")

    def _word(self, event: Event, faults: Iterator[str]) -> None:
        """What people had not said."""
        for problem in faults:
            self.fault(event.seq, Law.AUTHORITY, problem)

    def _noted(self, event: Event, noted: Noted) -> None:
        if event.kind is EventKind.LOOKING:
            self.looks += 1
            self.paid.append(Paid(event.at, since_last_write(tuple(self.passed))))
        elif event.kind is EventKind.HELD:
            started = self._folded().dispatch is not Dispatch.NOT_STARTED
            self._word(event, self.mandate.held(noted.note.removeprefix("held by "), started=started))
            self.provider_key = self.provider_key or str(noted.facts.get("provider_key", ""))
            if event.seq == 1 and not noted.facts.get("payload_digest"):
                self.fault(event.seq, Law.BODY, "it names no payload digest, so nothing says what was asked")

    def _removed(self, event: Event, left: Removed) -> None:
        """What all events before it came to: everything after folds on from there."""
        if event.seq != left.events + 1:
            self.fault(event.seq, Law.SEQUENCE, f"it stands for {left.events} events and is number {event.seq}")
        self.attempts, self.discrepancy = left.attempts, left.discrepancy
        self.mandate.permission, self.mandate.disposition = left.permission, left.disposition
        self.first, self.provider_key = first_begun((event,)), left.provider_key
        self.settled_by, self.looks = left.settled_by, left.looks
        self.paid = [] if left.looked_at is None else [Paid(left.looked_at, None)]
        self.removed = left

    def _folded(self) -> Fold:
        return fold(self.attempts, self.discrepancy, follows=self.first is not None and self.first.follows)

    def columns(self, history: History) -> None:
        """Compare the operation's row with what its events come to."""
        operation = history.operation
        for name, expected in self._expected(history).items():
            found = bool(operation.unresolved) if name == "unresolved" else getattr(operation, name)
            if found != expected:
                self.fault(0, Law.PROJECTION, f"{name} is {_said(found)} and its events say {_said(expected)}")
        if operation.unresolved and operation.step in ("", *WAITING):
            self.fault(0, Law.PROJECTION, "it is unresolved and owes no step")
        if not operation.unresolved and operation.step != self._waits_for():
            self.fault(0, Law.PROJECTION, "it is resolved and still owes a step, or waits and owes none")

    def _waits_for(self) -> str:
        """The step of an operation of which nothing is unresolved."""
        mandate, findings = self.mandate, {a.finding for a in self.attempts}
        if findings & {Finding.SUCCEEDED, Finding.ACCEPTED} or mandate.disposition is Disposition.ABANDONED:
            return ""
        if mandate.permission is Permission.PENDING:
            return APPROVE
        stayed = findings <= {Finding.NOT_SENT}
        if mandate.permission is not Permission.AUTHORIZED or not (mandate.approval or (mandate.callers and stayed)):
            return ""
        if mandate.approval < self.begun_seq:
            return CALL if stayed else ""
        return DISPATCH if stayed and not mandate.callers and mandate.approval > mandate.given_up else CALL

    def _expected(self, history: History) -> dict[str, object]:
        folded = self._folded()
        expected: dict[str, object] = {
            "owner": self.mandate.owner if self.assigned else self.operation.owner,
            "permission": self.mandate.permission,
            "dispatch": folded.dispatch,
            "outcome": folded.outcome,
            "disposition": self.mandate.disposition,
            "discrepancy": self.discrepancy,
            "attempts": len(self.attempts),
            "exposure": folded.exposure,
            "unresolved": folded.unresolved,
            "settled_by": self.settled_by,
            "held_by": self.mandate.held_by,
            "looks": self.looks,
            "worker": self.attempts[-1].worker if self.attempts else "",
            "deadline": self.attempts[-1].deadline if self.attempts else 0.0,
        }
        own = [e.at for e in history.events if is_news(e)]
        if self.removed:
            own = [self.removed.created_at, self.removed.updated_at, *own]
        return expected | ({"created_at": own[0], "updated_at": own[-1]} if own else {})


_NOTHING = frozenset({Finding.REJECTED, Finding.ABSENT})


def _said(value: object) -> str:
    return repr(str(value)) if isinstance(value, str) else repr(value)
