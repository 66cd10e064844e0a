"""Retention by hand: what the store does with a rule that removes or erases, without a store."""

from __future__ import annotations

import json

import msgspec
from tests.crash.stepping import NOON, claimed, observed, order

from counterfoil.domain import retention
from counterfoil.domain.command import Amendment, Declined
from counterfoil.domain.event import Event, History, chain
from counterfoil.domain.identifier import operation_id
from counterfoil.domain.words import Finding

AGE = 100.0
"""How long everything here is kept."""
DUE = retention.Due(after_seconds=AGE, rule="ordinary", policy="pl1:p")
LATER = NOON + 1_000


def whole(history):
    """The same history under an id that names its row, chained anew: verification finds nothing wrong with it."""
    operation = msgspec.structs.replace(history.operation, id=operation_id(history.operation.n, bytes(10)))
    head, events = b"", []
    before, after = (json.dumps(name).encode() for name in (history.operation.id, operation.id))
    for event in history.events:
        record = event.record.replace(before, after)  # the provider was told it too
        head = chain(head, operation.id, event.seq, event.kind.value, event.at, record)
        events.append(msgspec.structs.replace(event, record=record, hash=head))
    return History(operation=operation, events=tuple(events))


def settled(finding=Finding.SUCCEEDED, made=None, **said):
    """A claim and its answer, whole."""
    return whole(observed(claimed(made or order()), finding, **{"rule": "answers[0]", "effect": "pay", **said}))


def refused(history, rule, at=LATER):
    """Why retention leaves an operation alone."""
    decided = rule(history, at)
    assert isinstance(decided, Declined), decided
    return decided.because


def removed(history, due=DUE, at=LATER):
    """The history after its removal."""
    return _after(history, retention.remove(due), at, keeps=False)


def body_erased(history, at=LATER, **by):
    """The history after its bodies were erased."""
    rule = retention.erase(**({"by": "user:mara", "reason": "asked to"} | by))
    bare = tuple(msgspec.structs.replace(event, body=None) for event in history.events)
    return _after(history, rule, at, keeps=True, events=bare)


def _after(history, rule, at, *, keeps, events=()):
    decided = rule(history, at)
    assert isinstance(decided, Amendment), decided
    assert decided.operation == history.operation  # nothing happened to it
    (new,) = decided.events
    operation = msgspec.structs.replace(history.operation, seq=history.operation.seq + 1)
    link = chain(history.head, operation.id, operation.seq, new.kind.value, at, new.record)
    event = Event(
        n=operation.n, seq=operation.seq, kind=new.kind, at=at, record=new.record, body=new.body, hash=link
    )  # fmt: skip
    return History(operation=operation, events=(*events, event) if keeps else (event,))
