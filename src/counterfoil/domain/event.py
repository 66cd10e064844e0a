"""The append-only history of an operation: one event per commit, hash-chained."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from counterfoil.domain.attempt import Attempt, settle
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.operation import Operation
from counterfoil.domain.words import Discrepancy

SEQ_MAX = 32_767
"""15 bits of the event's row number; an operation that needs more is broken, not busy."""


class EventKind(StrEnum):
    """What one event records."""

    BEGUN = "begun"
    """Intent, permission, contract and claim of an attempt: nothing has left yet."""
    HELD = "held"
    """Proposed while another operation of the same effect is unresolved."""
    OBSERVED = "observed"
    """One piece of evidence."""
    LOOKING = "looking"
    """A read was paid from the budget and is about to be made."""
    DECIDED = "decided"
    """A person's or a rule's decision."""
    NOTED = "noted"
    """Something about another operation that this one's writers must take notice of."""
    REPEATED = "repeated"
    """The same call with other immaterial values: recorded, never sent."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the history; `record` is hashed, `body` is not and may be erased."""

    n: int
    seq: int
    kind: EventKind
    at: float
    record: bytes
    """Canonical JSON of a `Begun`, an `Evidence`, ... ; holds only digests of what may be erased."""
    body: bytes | None
    hash: bytes


class Intended(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What was asked, as the chain keeps it: whoever edits it in the projection is found out."""

    tenant: str
    actor: str
    action: str
    account: str
    key: str
    fingerprint: str
    effect: str
    owner: str
    value: float


class Begun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a claim records before anything leaves."""

    attempt: Attempt
    provider_key: str
    intent: Intended | None = None
    """Of an operation's first event; every later one is of the same intent."""
    contract: str
    """Digest of the contract the receipt stands on."""
    contract_id: str
    code: str = ""
    """Digest of the action's own code, where there is code."""
    destination: str = ""
    payload_digest: str = ""
    """SHA-256 over salt and payload; both stand in the body. Empty for attempts after the first."""
    basis: str = ""
    """For attempts after the first: the retry decision's basis."""
    because: tuple[str, ...] = ()
    by: str = ""
    """Who asked for it, where somebody did."""
    reason: str = ""
    how: str = ""
    """How they were authenticated."""
    key_scope: str = ""
    key_valid_seconds: float | None = None
    """How long after the claim the provider surely remembers the key; None where it is unknown or never forgets."""
    assumptions: dict[str, Any] = {}
    """Named assumptions the receipt rests on."""
    follows: bool = False
    """The contract names a later terminal observation."""
    mentioned: dict[str, Any] = {}
    """A model's own key or a framework's call id: evidence, never the key."""


def assumed_delivery(begun: Begun | None) -> float | None:
    """The longest_delivery printed on the receipt, in seconds; None where none is. A later one is not read back."""
    assumed = begun.assumptions.get("longest_delivery") if begun else None
    seconds = assumed.get("seconds") if isinstance(assumed, dict) else None
    return float(seconds) if seconds is not None and type(seconds) in (int, float) else None


class Decided(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who decided what, on which ground, seeing which version."""

    decision: str
    by: str
    reason: str = ""
    seen_seq: int = 0
    facts: dict[str, Any] = {}


class Noted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of an event that says little: which look, which hold, which repetition."""

    note: str
    facts: dict[str, Any] = {}


def chain(previous: bytes, operation: str, seq: int, kind: str, at: float, record: bytes) -> bytes:
    """Hash one event onto its operation's chain: an edit without recomputation is found by `verify`."""
    head = f"cf-event-1\n{operation}\n{seq}\n{kind}\n{at!r}\n".encode()
    return hashlib.sha256(previous + head + record).digest()


class History(msgspec.Struct, frozen=True, kw_only=True):
    """One operation with all its events: what every decision is made from."""

    operation: Operation
    events: tuple[Event, ...]

    @property
    def head(self) -> bytes:
        """The hash of the last event."""
        return self.events[-1].hash if self.events else b""


_begun = msgspec.json.Decoder(Begun)
_evidence = msgspec.json.Decoder(Evidence)
encode = msgspec.json.Encoder(order="deterministic").encode


def begun_of(event: Event) -> Begun:
    """Read a `begun` event's record."""
    return _begun.decode(event.record)


def evidence_of(event: Event) -> Evidence:
    """Read an `observed` event's record; what it returns to callers stands in the body."""
    return _evidence.decode(event.record)


def attempts_of(events: tuple[Event, ...]) -> tuple[tuple[Attempt, ...], Discrepancy]:
    """Fold the history into its attempts, and whether evidence contradicts evidence."""
    attempts: tuple[Attempt, ...] = ()
    discrepancy = Discrepancy.NONE
    for _, attempts, discrepancy in unfolded(events):  # noqa: B007 - the last of them is what stands
        pass
    return attempts, discrepancy


def unfolded(events: tuple[Event, ...]) -> Iterator[tuple[Event, tuple[Attempt, ...], Discrepancy]]:
    """Each event with the attempts, and whether evidence contradicts evidence, as they stood after it."""
    attempts: tuple[Attempt, ...] = ()
    discrepancy = Discrepancy.NONE
    for event in events:
        if event.kind is EventKind.BEGUN:
            claimed = msgspec.structs.replace(begun_of(event).attempt, started_at=event.at)
            attempts = (*attempts, claimed)
        elif event.kind is EventKind.OBSERVED and attempts:
            evidence = evidence_of(event)
            attempts, contradicts = settle(attempts, evidence)
            discrepancy = Discrepancy.OPEN if contradicts or evidence.contradicts else discrepancy
        yield event, attempts, discrepancy


def first_begun(events: tuple[Event, ...]) -> Begun | None:
    """The claim of the first attempt, or None while nothing was claimed."""
    return next((begun_of(e) for e in events if e.kind is EventKind.BEGUN), None)


def destination_of(events: tuple[Event, ...], otherwise: str) -> str:
    """Where it was frozen to go, when it was claimed or proposed; a later change of the action moves nothing."""
    for event in events:
        if event.kind is EventKind.BEGUN:
            return begun_of(event).destination
        if event.kind is EventKind.HELD:
            return str(msgspec.json.decode(event.record, type=Noted).facts.get("destination", otherwise))
    return otherwise


def quiet_since(events: tuple[Event, ...]) -> float:
    """The latest moment at which a worker reported back or was proven dead: until then it may have written.

    Its send deadline alone does not bound that: a paused process wakes after it, a function may outlast it.
    """
    quiet: dict[int, float] = {}
    for event in events:
        if event.kind is EventKind.OBSERVED:
            evidence = evidence_of(event)
            if evidence.quiesced:
                quiet.setdefault(evidence.attempt, event.at)
    return max(quiet.values(), default=0.0)
