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
from counterfoil.domain.terms import Breaker

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
    policy: int = 0
    """Number of the policy it was judged under."""
    breaker: Breaker | None = None


class Propose(msgspec.Struct, frozen=True, kw_only=True):
    """Receipt of an operation that waits for people: nothing is claimed and nothing leaves."""

    claim: Claim
    """What identifies it; its record is the encoded `Proposed`."""
    seconds: float
    """Within which it must be answered."""


class NewlyProposed(msgspec.Struct, frozen=True, kw_only=True):
    """The question is on record."""

    history: History


class PolicyMoved(msgspec.Struct, frozen=True, kw_only=True):
    """Another policy is in force than the one it was judged under: judge again. Nothing was recorded."""

    policy: int


class Tripped(msgspec.Struct, frozen=True, kw_only=True):
    """Too much is unknown already: the breaker lets nothing new go. Nothing was recorded."""

    breaker: str
    exposure: float
    limit: float


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
    """It starts an attempt: where another operation holds the effect, it is refused and goes back to its caller."""
    beside: frozenset[str] = frozenset()
    """Unresolved operations of the same effect that people let it run beside."""


class Declined(msgspec.Struct, frozen=True, kw_only=True):
    """What was refused, as it stands: nothing was written, but for who holds a refused claim back."""

    because: tuple[str, ...]
    history: History | None = None


Rule = Callable[[History, float], Amendment | Declined]
"""A pure decision from one operation's history and the store's clock."""


class Reads(msgspec.Struct, frozen=True, kw_only=True):
    """What every look at one provider's account shares, whichever operation it is for."""

    tenant: str
    provider: str
    account: str
    looks: int = 0
    """At most so many within `per_seconds`; 0: as many as the operations' own budgets allow."""
    per_seconds: float = 0.0


class Amend(msgspec.Struct, frozen=True, kw_only=True):
    """Run a rule on one operation inside the write transaction."""

    operation: str
    rule: Rule
    record: bytes | None = None
    """The observation it appends: kept beside the store where the store cannot take it; None where there is none."""
    body: bytes | None = None
    policy: int | None = None
    """Number of the policy the rule was made under, where it may start an attempt."""
    breaker: Breaker | None = None
    """Asked only where the rule starts an attempt."""
    reads: Reads | None = None
    """Where the rule pays for a look: what it shares, counted under the lock before it is paid."""


class Amended(msgspec.Struct, frozen=True, kw_only=True):
    """The amendment is durable."""

    history: History


class Adopt(msgspec.Struct, frozen=True, kw_only=True):
    """Put a policy in force, if the one that was seen still is."""

    seen: int
    """Number of the policy that was in force when it was decided; 0: none ever was."""
    digest: str
    policy: bytes
    """The encoded `Policy`."""
    record: bytes
    """The encoded `Decided`, which names the digest."""


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """The policy is in force, under this number and from this moment on."""

    n: int
    at: float


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    """Run a rule that puts one event in the place of all others of an operation; its own row stays."""

    operation: str
    rule: Rule


class Erase(msgspec.Struct, frozen=True, kw_only=True):
    """Run a rule that lets every body of an operation be nulled; its events stay."""

    operation: str
    rule: Rule


class CountRefusals(msgspec.Struct, frozen=True, kw_only=True):
    """Add one batch of calls that were answered from a receipt instead of being sent."""

    counts: tuple[tuple[int, int], ...]
    """Row numbers of operations, each with how often."""
    at: float
    """When the batch was closed, by the store's clock: by it a batch that is written again is known."""


class Counted(msgspec.Struct, frozen=True):
    """The batch is counted, once."""


Command = Claim | Propose | Settle | Amend | Adopt | Remove | Erase | CountRefusals
Reply = (
    Claimed | NewlyProposed | Existing | NewlyHeld | Conflict | Collision | PolicyMoved | Tripped
    | Settled | Stale | Amended | Adopted | Counted | Declined
)  # fmt: skip
