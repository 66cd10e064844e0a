"""What is asked of the store: each command is one durable transaction, and idempotent by its token.

A command that is refused answers with a value and never rolls back its batch mates. A command that is run
again, because its first answer was lost, recognises its own write.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from counterfoil.domain.event import EventKind, History
from counterfoil.domain.intent import Intent
from counterfoil.domain.operation import Operation

Columns = tuple[str, str, str, int, int, str, str]
"""Dispatch, outcome, discrepancy, exposure, unresolved, settled_by and step, as they are stored."""


class Claim(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Receipt, permission and claim of a first attempt in one transaction (invariants 1 and 2)."""

    n: int
    id: str
    intent: Intent
    owner: str
    value: float
    worker: str
    send_seconds: float
    record: bytes
    """The encoded `Begun`."""
    body: bytes
    """Salt and canonical payload."""


class Claimed(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The claim is durable and this caller holds it: exactly one send may follow."""

    at: float
    head: bytes


class Existing(msgspec.Struct, frozen=True, kw_only=True):
    """The key was used before: this is what stands there. Nothing may be sent."""

    history: History


class NewlyHeld(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded, and held back by another unresolved operation of the same effect. Nothing may be sent."""

    history: History


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """The key is bound to another fingerprint. Nothing was recorded and nothing may be sent."""

    operation: str
    stored: str


class Collision(msgspec.Struct, frozen=True):
    """Another process drew the same row number: draw again."""


class Settle(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Record one piece of evidence on an operation nobody else wrote to since `seq`."""

    n: int
    id: str
    seq: int
    """Number of the event before, and `head` its hash."""
    head: bytes
    columns: Columns
    """What the evidence makes of the operation."""
    record: bytes
    body: bytes | None
    due_after: float
    """Seconds from the commit to the next automatic step."""


def columns_of(o: Operation) -> Columns:
    """What evidence may change of an operation, as plain strings: `_value_` spares the descriptor's call."""
    dispatch, outcome, discrepancy = o.dispatch._value_, o.outcome._value_, o.discrepancy._value_
    return dispatch, outcome, discrepancy, o.exposure, o.unresolved, o.settled_by, o.step


class Settled(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The evidence is durable."""

    at: float
    head: bytes


class Stale(msgspec.Struct, frozen=True):
    """Somebody wrote to the operation since: judge again from its history."""


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to append; the store gives it its number, time and hash."""

    kind: EventKind
    record: bytes
    body: bytes | None = None


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule decided: the operation as it shall stand and the events that say why."""

    operation: Operation
    events: tuple[NewEvent, ...]
    claims: bool = False
    """It starts an attempt: refused (not moved aside) where another operation holds the effect."""


class Declined(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule refused, from what history: nothing was written."""

    because: tuple[str, ...]
    history: History | None = None


Rule = Callable[[History, float], Amendment | Declined]
"""A pure decision from one operation's history and the store's clock."""


class Amend(msgspec.Struct, frozen=True, kw_only=True):
    """Run a rule on one operation inside the write transaction."""

    operation: str
    rule: Rule
    record: bytes | None = None
    """The observation it appends: kept beside the store where the store cannot take it; None where there is none."""
    body: bytes | None = None


class Amended(msgspec.Struct, frozen=True, kw_only=True):
    """The amendment is durable."""

    history: History


Command = Claim | Settle | Amend
Reply = Claimed | Existing | NewlyHeld | Conflict | Collision | Settled | Stale | Amended | Declined
