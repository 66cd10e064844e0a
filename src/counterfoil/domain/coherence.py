"""Coherence: whether what one operation's records say fits together, where a chain made anew hides what was edited.

Every one of these was true when it was written, by whatever path: the fingerprint is of the payload and of where it
goes, the provider was told the operation's own id, neither clock ran backwards, and a due time follows from a decision.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from counterfoil.domain import canonical
from counterfoil.domain.approval import authority_of
from counterfoil.domain.canonical import NotCanonical
from counterfoil.domain.elapsed import reading_of
from counterfoil.domain.event import (
    Event,
    EventKind,
    History,
    Intended,
    Noted,
    attempts_of,
    destination_of,
    intended_of,
)
from counterfoil.domain.intent import material_of, print_of, print_prefix
from counterfoil.domain.payload import frozen_payload, is_intact
from counterfoil.domain.record import Record
from counterfoil.domain.steady import Steady
from counterfoil.domain.violation import Law, Violation

KEYED = "cf1h:"
"""Begins a fingerprint under a deployment's key, which no receipt holds."""

Fault = tuple[int, Law, str]
"""Which event, which law, and what is wrong."""


def incoherent(history: History, records: Sequence[tuple[Event, Record]]) -> Iterator[Violation]:
    """Name what cannot stand beside the rest of the same history.

    Args:
        history: one operation.
        records: its events, each with its record.
    """
    faults = itertools.chain(_print(history), _names(history, records), _clocks(history.events), _due(history))
    for seq, law, problem in faults:
        yield Violation(operation=history.operation.id, seq=seq, law=law, problem=problem)


def _print(history: History) -> Iterator[Fault]:
    """The fingerprint is of what was frozen; of an erased payload, or under a deployment's key, nothing can be said."""
    asked, frozen = intended_of(history.events), frozen_payload(history)
    if asked is None or frozen is None or asked.fingerprint.startswith(KEYED) or not is_intact(history):
        return  # a body that is not the one on record is a fault of its own
    first = history.events[0]
    try:
        made = _made(asked, frozen, destination_of((first,), ""))
    except (NotCanonical, ValueError):
        made = ""
    if asked.fingerprint != made:
        yield first.seq, Law.IDENTITY, "its fingerprint is not of the payload, account and destination on record"


def _made(asked: Intended, frozen: bytes, destination: str) -> str:
    material = material_of(frozen, asked.material, asked.immaterial)
    return canonical.fingerprint(print_of(print_prefix(asked.account, destination), material, asked.compensates))


def _names(history: History, records: Sequence[tuple[Event, Record]]) -> Iterator[Fault]:
    """The provider knows an operation by its own id; that every later record says the same is asked elsewhere."""
    for event, record in records:
        named = record.facts.get("provider_key") if isinstance(record, Noted) else getattr(record, "provider_key", "")
        if named:
            if named != history.operation.id:
                yield event.seq, Law.IDENTITY, "its provider key is not the operation's id"
            return


def _clocks(events: Sequence[Event]) -> Iterator[Fault]:
    """Neither the store's time nor a clock that nobody can set runs backwards along a history."""
    for earlier, later in itertools.pairwise(events):
        # Whoever claimed says how it ended by their own clock, which may be behind the one of the claim. And
        # news of another operation was once noted by the clock of who brought it; nothing is judged by a note's time.
        own_word = (earlier.kind, later.kind) == (EventKind.BEGUN, EventKind.OBSERVED)
        if later.at < earlier.at and not own_word and later.kind is not EventKind.NOTED:
            yield later.seq, Law.SEQUENCE, f"it lies {earlier.at - later.at:.1f} seconds before the event before it"
    latest: dict[str, Steady] = {}
    for event in events:
        reading = reading_of(event)
        if reading is None:
            continue
        since = reading.since(latest.get(reading.boot))
        if since is not None and since < 0:
            yield event.seq, Law.SEQUENCE, "the clock that nobody can set reads less than at an event before it"
        latest[reading.boot] = reading


def _due(history: History) -> Iterator[Fault]:
    """What is settled is due when people's question or answer ends, or never: that follows from the record."""
    operation = history.operation
    if operation.unresolved:
        return
    events = history.events
    ends_at = authority_of(events, attempts_of(events)[0]).ends_at if operation.step else 0.0
    if operation.due_at != ends_at:
        yield 0, Law.PROJECTION, f"due_at is {operation.due_at!r} and its events say {ends_at!r}"
