"""Compensation: an operation of its own that undoes another, linked on both receipts; only its caller makes one."""

from __future__ import annotations

import msgspec

from counterfoil.domain.command import Amendment, Declined, NewEvent, Rule
from counterfoil.domain.event import EventKind, History, Noted, encode, intended_of, read
from counterfoil.domain.intent import Intent
from counterfoil.domain.words import Outcome

NOTE = "compensation asked for"
ALREADY = "this compensation is on record already"
OTHER_TENANT = "it is another tenant's"
NOT_HAPPENED = "only what is known to have happened can be compensated: its outcome is {}"
TOO_MANY = "as many compensations of it were asked for as one receipt keeps"
ASKED_MAX = 64
"""Of one operation; more would let a caller grow its record without end."""

_noted = msgspec.json.Decoder(Noted)


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """By what the compensating operation is found: it may not stand yet, or never come to."""

    tenant: str
    actor: str
    action: str
    key: str


def ask(intent: Intent) -> Rule:
    """Note on an operation that it is about to be compensated, before the compensation is claimed; once.

    Args:
        intent: of the compensation.
    """
    key = Key(tenant=intent.tenant, actor=intent.actor, action=intent.action, key=intent.key)

    def rule(history: History, now: float) -> Amendment | Declined:
        del now
        before, operation = asked(history), history.operation
        if key in before:
            return Declined(because=(ALREADY,))
        happened = operation.outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED)
        failed = {
            OTHER_TENANT: operation.tenant != intent.tenant,
            NOT_HAPPENED.format(operation.outcome.value): not happened,
            TOO_MANY: len(before) >= ASKED_MAX,
        }
        because = tuple(reason for reason, fails in failed.items() if fails)
        if because:
            return Declined(because=because)
        record = encode(Noted(note=NOTE, facts=msgspec.to_builtins(key)))
        return Amendment(operation=operation, events=(NewEvent(kind=EventKind.NOTED, record=record),))

    return rule


def asked(history: History) -> tuple[Key, ...]:
    """Every compensation that was asked for of this operation."""
    noted = (read(_noted, event) for event in history.events if event.kind is EventKind.NOTED)
    return tuple(msgspec.convert(one.facts, Key) for one in noted if one.note == NOTE)


def compensates(history: History) -> str:
    """The operation that this one undoes; empty where it undoes none."""
    intended = intended_of(history.events)
    return intended.compensates if intended else ""
