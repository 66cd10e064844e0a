"""A receipt read again event by event: what its record says, and how the columns stood after it.

It reads one operation's events and nothing else: no contract, no action and no policy has to be at hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from counterfoil.domain.approval import Proposed
from counterfoil.domain.attempt import Attempt, Fold, contradiction, fold, settle
from counterfoil.domain.event import Begun, Decided, Event, History, Removed, first_begun
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.mandate import Mandate
from counterfoil.domain.operation import Operation
from counterfoil.domain.person import distinct
from counterfoil.domain.record import Record, readable
from counterfoil.domain.words import Basis, Discrepancy, Dispatch, Disposition, Finding, Outcome, Permission


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """May it go, did it go, what came of it, what the business decided, does evidence disagree."""

    permission: Permission
    dispatch: Dispatch
    outcome: Outcome
    disposition: Disposition
    discrepancy: Discrepancy


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One event with its record, and what the events up to it had come to."""

    event: Event
    record: Record | None
    """None where it cannot be read."""
    before: Columns | None
    """None for the first, and from the first one on whose record cannot be read."""
    after: Columns | None
    first: Begun | None
    """The claim of the first attempt, once there was one."""
    asked: Proposed | None
    """What people were last asked."""
    approved_by: tuple[str, ...]
    """Who has said yes to it so far."""
    overrides: tuple[tuple[int, str], ...] = ()
    """Of an attempt that an override let go: the events that decided it, and by whom."""


def columns_of(operation: Operation) -> Columns:
    """The columns as an operation's row has them."""
    return Columns(
        permission=operation.permission,
        dispatch=operation.dispatch,
        outcome=operation.outcome,
        disposition=operation.disposition,
        discrepancy=operation.discrepancy,
    )


def replay(history: History) -> list[Happened]:
    """Read every event in order; after one that cannot be read, nothing is said of how things stood."""
    walk = _Walk(history.operation)
    return [walk.step(event) for event in history.events]


class _Walk:
    """One pass, carrying what the events have said so far."""

    def __init__(self, operation: Operation) -> None:
        self._mandate = Mandate(operation.actor, operation.owner)
        self._attempts: tuple[Attempt, ...] = ()
        self._discrepancy = Discrepancy.NONE
        self._first: Begun | None = None
        self._approved_by: tuple[str, ...] = ()
        self._stood: Columns | None = None
        self._readable = True
        self._overrides: tuple[tuple[int, str], ...] = ()
        self._used_up: tuple[tuple[int, str], ...] = ()

    def step(self, event: Event) -> Happened:
        """One event with what it did to the columns."""
        before, record = self._stood, readable(event)
        if record is None:
            self._readable = False
        else:
            self._follow(event, record)
        self._stood = self._columns() if self._readable else None
        return Happened(
            event=event, record=record, before=before if self._readable else None, after=self._stood,
            first=self._first, asked=self._mandate.asked, approved_by=self._approved_by,
            overrides=self._used_up if isinstance(record, Begun) else (),
        )  # fmt: skip

    def _follow(self, event: Event, record: Record) -> None:
        if isinstance(record, Begun):
            self._used_up = self._overrides if record.basis == Basis.OPERATOR_OVERRIDE.value else ()
            self._overrides = ()
            self._first = self._first or record
            self._attempts = (*self._attempts, msgspec.structs.replace(record.attempt, started_at=event.at))
        elif isinstance(record, Evidence) and self._attempts:
            stood = self._discrepancy
            self._attempts, contradicts = settle(self._attempts, record)
            self._discrepancy = contradiction(stood, record, self._attempts, contradicts=contradicts)
            certain = record.finding is not Finding.UNKNOWN
            self._overrides = () if certain else self._overrides
            told = certain or self._discrepancy is not stood
            self._mandate.news(certain=certain, back=told and self._fold().unresolved)
        elif isinstance(record, Proposed):
            self._approved_by = ()
            _exhaust(self._mandate.proposed(event, record))
        elif isinstance(record, Decided):
            folded = self._fold()
            started = folded.dispatch is not Dispatch.NOT_STARTED
            _exhaust(self._mandate.decided(event, record, unresolved=folded.unresolved, started=started, done=False))
            if record.decision == "override":
                self._overrides = (*self._overrides, (event.seq, record.by))
            if record.decision == "approve":
                self._approved_by = distinct((*self._approved_by, record.by))
        elif isinstance(record, Removed):
            self._attempts, self._discrepancy = record.attempts, record.discrepancy
            self._mandate.permission, self._mandate.disposition = record.permission, record.disposition
            self._first = first_begun((event,))

    def _fold(self) -> Fold:
        follows = self._first is not None and self._first.follows
        return fold(self._attempts, self._discrepancy, follows=follows)

    def _columns(self) -> Columns:
        folded = self._fold()
        return Columns(
            permission=self._mandate.permission,
            dispatch=folded.dispatch,
            outcome=folded.outcome,
            disposition=self._mandate.disposition,
            discrepancy=self._discrepancy,
        )


def _exhaust(faults: Iterator[str]) -> None:
    """Let a decision take effect on what is carried; whether it was allowed is the audit's question."""
    for _ in faults:
        pass
