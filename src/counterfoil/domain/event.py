"""The append-only history of an operation: one event per commit, hash-chained."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from counterfoil.domain.attempt import Attempt, contradiction, settle
from counterfoil.domain.errors import ReceiptBroken
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.identifier import short_id
from counterfoil.domain.operation import Operation
from counterfoil.domain.steady import Steady
from counterfoil.domain.words import Discrepancy, Disposition, Permission

T = TypeVar("T")

ORDINARY = "ordinary"
"""The sensitivity class of whatever declares no other."""
ERASE = "erase"
"""The decision that nulls an operation's bodies: it is about the record, and nothing happened to the operation."""
EVIDENCE_HEX = 32
"""128 bits: nobody makes two records that share them."""
SEQ_MAX = 32_767
"""15 bits of the event's row number; an operation that needs more is broken, not busy."""


class EventKind(StrEnum):
    """What one event records."""

    BEGUN = "begun"
    """Intent, permission, contract and claim of an attempt: nothing has left yet."""
    PROPOSED = "proposed"
    """Asked for, and waiting for the people the policy names: nothing was claimed."""
    HELD = "held"
    """Not sent, because another operation of the same effect is unresolved: from here on only its caller sends it."""
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
    REMOVED = "removed"
    """What all earlier events came to, in their place: retention removed them."""


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


class Intended(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
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
    sensitivity: str = ""
    """The class its retention follows; empty: `ORDINARY`."""
    compensates: str = ""
    """The operation that this one undoes, as its caller said; empty where it undoes none."""
    material: tuple[str, ...] = ()
    """The only pointers that its fingerprint is of, where they were declared."""
    immaterial: tuple[str, ...] = ()
    """Pointers that its fingerprint leaves out."""


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
    """Who asked for it, where somebody did; of what no caller waits for, the worker that made it."""
    reason: str = ""
    how: str = ""
    """How they were authenticated."""
    policy: str = ""
    """Digest of the policy it was judged under; empty where none was ever adopted."""
    rule: str = ""
    """The rule of that policy that spoke of it, by name; empty where none did."""
    key_scope: str = ""
    key_valid_seconds: float | None = None
    """How long after the claim the provider surely remembers the key; None where it is unknown or never forgets."""
    assumptions: dict[str, Any] = {}
    """Named assumptions the receipt rests on."""
    follows: bool = False
    """The contract names a later terminal observation."""
    fence: int | None = None
    """Which of the contract's fences it is; None: it is the effect itself."""
    mentioned: dict[str, Any] = {}
    """A model's own key or a framework's call id: evidence, never the key."""
    steady: Steady | None = None
    """When it was claimed, read under the write lock; the last field, see `stamped`."""


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
    how: str = ""
    """How they were authenticated."""
    seen_seq: int = 0
    """The last event of what they saw."""
    facts: dict[str, Any] = {}


class Noted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of an event that says little: which look, which hold, which repetition."""

    note: str
    facts: dict[str, Any] = {}
    steady: Steady | None = None
    """When a look was paid for, read under the write lock."""


class Removed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an operation had come to when retention removed its events: the chain and the fold go on from here."""

    events: int
    """How many were removed, over all removals."""
    head: str
    """Hash of the last of them, in hexadecimal."""
    intent: Intended
    created_at: float
    updated_at: float
    """When something last happened to it: what retention counts from."""
    permission: Permission = Permission.AUTHORIZED
    disposition: Disposition = Disposition.OPEN
    discrepancy: Discrepancy = Discrepancy.NONE
    attempts: tuple[Attempt, ...] = ()
    settled_by: str = ""
    looks: int = 0
    looked_at: float | None = None
    """When the last of them was paid for: its answer may still come."""
    quiet_since: float = 0.0
    provider_key: str = ""
    contract: str = ""
    contract_id: str = ""
    follows: bool = False
    assumptions: dict[str, Any] = {}
    observed: tuple[str, ...] = ()
    """Digests of the evidence that was removed: the same record again is still one piece of evidence."""
    returned: bool = False
    """There was something that a replay could return."""
    rule: str
    """The retention that removed it, by its sensitivity class."""
    policy: str
    """Digest of the policy that says so."""
    by: str


class _Facts(msgspec.Struct, frozen=True):
    intent: Intended | None = None


class _First(msgspec.Struct, frozen=True):
    """Any kind of first record, as far as it says what was asked."""

    intent: Intended | None = None
    facts: _Facts = _Facts()


def chain(previous: bytes, operation: str, seq: int, kind: str, at: float, record: bytes) -> bytes:
    """Hash one event onto its operation's chain: an edit without recomputation is found by `verify`."""
    head = f"cf-event-1\n{operation}\n{seq}\n{kind}\n{at!r}\n".encode()
    return hashlib.sha256(previous + head + record).digest()


class History(msgspec.Struct, frozen=True, kw_only=True):
    """One operation with all its events: what every decision is made from."""

    operation: Operation
    events: tuple[Event, ...]
    read: Steady | None = None
    """When it was read, where it is about to be judged; for a rule, under the write lock."""

    @property
    def head(self) -> bytes:
        """The hash of the last event."""
        return self.events[-1].hash if self.events else b""


_begun = msgspec.json.Decoder(Begun)
_evidence = msgspec.json.Decoder(Evidence)
_decided = msgspec.json.Decoder(Decided)
_removed = msgspec.json.Decoder(Removed)
_first = msgspec.json.Decoder(_First)
encode = msgspec.json.Encoder(order="deterministic").encode


def read(decoder: msgspec.json.Decoder[T], event: Event) -> T:
    """Read an event's record.

    Raises:
        ReceiptBroken: it is not what its kind says; the error names its operation.
    """
    try:
        return decoder.decode(event.record)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    raise ReceiptBroken(short_id(event.n), event.seq)


def begun_of(event: Event) -> Begun:
    """Read a `begun` event's record."""
    return read(_begun, event)


def evidence_of(event: Event) -> Evidence:
    """Read an `observed` event's record; what it returns to callers stands in the body."""
    return read(_evidence, event)


def removed_of(events: tuple[Event, ...]) -> Removed | None:
    """What retention left of an operation; None while its events stand."""
    if not events or events[0].kind is not EventKind.REMOVED:
        return None
    return read(_removed, events[0])


def removal_said(events: tuple[Event, ...]) -> tuple[str, ...]:
    """Why an operation whose record was removed is never sent again, in a fixed sentence; empty while it stands."""
    if removed_of(events) is None:
        return ()
    from datetime import UTC, datetime  # few operations come to this

    on = datetime.fromtimestamp(events[0].at, UTC).date().isoformat()
    return (f"its record was removed by retention on {on}",)


def removed_before(events: tuple[Event, ...]) -> int:
    """How many events stood before the first that is left."""
    return events[0].seq - 1 if events and events[0].kind is EventKind.REMOVED else 0


def start_of(events: tuple[Event, ...]) -> tuple[int, bytes]:
    """The number and the hash that the first event goes on from: of the last removed one, where any was removed.

    What cannot be read goes on from nothing, which verification then finds.
    """
    try:
        removed = removed_of(events)
        return (removed.events, bytes.fromhex(removed.head)) if removed else (0, b"")
    except ValueError:  # msgspec's errors are, too
        return 0, b""


def intended_of(events: tuple[Event, ...]) -> Intended | None:
    """What was asked, as an operation's first record says it; None where it does not."""
    first = read(_first, events[0]) if events else _First()
    return first.intent or first.facts.intent


def sensitivity_of(events: tuple[Event, ...]) -> str:
    """The class an operation's retention follows, as it was declared when it was asked."""
    asked = intended_of(events)
    return asked.sensitivity or ORDINARY if asked else ORDINARY


def evidence_digest(record: bytes) -> str:
    """What is kept of a removed piece of evidence, to know it again."""
    return hashlib.sha256(record).hexdigest()[:EVIDENCE_HEX]


def is_recorded(events: tuple[Event, ...], record: bytes) -> bool:
    """Whether this very piece of evidence is on record, or was before retention removed it."""
    if any(e.kind is EventKind.OBSERVED and e.record == record for e in events):
        return True
    removed = removed_of(events)
    return removed is not None and evidence_digest(record) in removed.observed


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
        if event.kind is EventKind.REMOVED:
            left = read(_removed, event)
            attempts, discrepancy = left.attempts, left.discrepancy
        elif event.kind is EventKind.BEGUN:
            claimed = msgspec.structs.replace(begun_of(event).attempt, started_at=event.at)
            attempts = (*attempts, claimed)
        elif event.kind is EventKind.OBSERVED and attempts:
            evidence = evidence_of(event)
            attempts, contradicts = settle(attempts, evidence)
            discrepancy = contradiction(discrepancy, evidence, attempts, contradicts=contradicts)
        yield event, attempts, discrepancy


def is_news(event: Event) -> bool:
    """Whether something happened to the operation itself; a note about another, and what retention does, is none."""
    if event.kind is EventKind.DECIDED:
        return read(_decided, event).decision != ERASE
    return event.kind not in (EventKind.NOTED, EventKind.REMOVED)


def first_begun(events: tuple[Event, ...]) -> Begun | None:
    """The claim of the first attempt, or None while nothing was claimed; of a removed one, what is left of it."""
    removed = removed_of(events)
    if removed is not None:
        return _left_of(removed)
    return next((begun_of(e) for e in events if e.kind is EventKind.BEGUN), None)


def is_followed(events: tuple[Event, ...]) -> bool:
    """The receipt says that its contract names a later terminal observation: `accepted` is not the end."""
    first = first_begun(events)
    return first is not None and first.follows


def _left_of(removed: Removed) -> Begun | None:
    if not removed.attempts:
        return None
    return Begun(
        attempt=removed.attempts[0], provider_key=removed.provider_key, intent=removed.intent,
        contract=removed.contract, contract_id=removed.contract_id, assumptions=removed.assumptions,
        follows=removed.follows,
    )  # fmt: skip


def destination_of(events: tuple[Event, ...], otherwise: str) -> str:
    """Where it was frozen to go, when it was last claimed or proposed; a change of the action alone moves nothing."""
    for event in reversed(events):
        if event.kind is EventKind.BEGUN:
            return begun_of(event).destination
        if event.kind is EventKind.PROPOSED:
            return str(msgspec.json.decode(event.record)["bound"]["destination"])
        facts = msgspec.json.decode(event.record, type=Noted).facts if event.kind is EventKind.HELD else {}
        if "destination" in facts:  # the first record has it; a later one only says who held it then
            return str(facts["destination"])
    return otherwise


def quiet_since(events: tuple[Event, ...]) -> float:
    """The latest moment at which a worker reported back or was proven dead: until then it may have written.

    Its send deadline alone does not bound that: a paused process wakes after it, a function may outlast it.
    """
    removed = removed_of(events)
    quiet = {a.number: removed.quiet_since for a in removed.attempts if a.quiesced} if removed else {}
    for event in events:
        if event.kind is EventKind.OBSERVED and (evidence := evidence_of(event)).quiesced:
            quiet.setdefault(evidence.attempt, event.at)
    return max(quiet.values(), default=0.0)
