"""Operations that are written down and not sent: held by another of the same effect, or waiting for people."""

from __future__ import annotations

import msgspec

from counterfoil.domain.approval import decided_of
from counterfoil.domain.command import Amendment, Claim, Declined, NewEvent, Propose, Rule
from counterfoil.domain.decision import Verb
from counterfoil.domain.event import Begun, Event, EventKind, History, Noted, encode
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import APPROVE, CALL, DISPATCH
from counterfoil.domain.words import Dispatch, Permission

_begun = msgspec.json.Decoder(Begun)


def propose(claim: Claim, holder: str, now: float) -> tuple[Operation, NewEvent]:
    """Record a proposed operation with its frozen payload and the one that holds it back; nothing is claimed.

    A held operation is never sent by the release: its caller asks again and is judged anew.
    """
    begun, intent = _begun.decode(claim.record), claim.intent
    operation = Operation(
        n=claim.n, id=claim.id, tenant=intent.tenant, actor=intent.actor, action=intent.action, key=intent.key,
        account=intent.account, fingerprint=intent.fingerprint, effect=intent.effect, owner=claim.owner,
        value=claim.value, created_at=now, held_by=holder, step=CALL, updated_at=now, seq=1,
    )  # fmt: skip
    facts = {
        "intent": msgspec.to_builtins(begun.intent),
        "provider_key": begun.provider_key,
        "contract": begun.contract,
        "payload_digest": begun.payload_digest,
        "destination": begun.destination,
    }
    record = encode(Noted(note=f"held by {holder}", facts=facts))
    return operation, NewEvent(kind=EventKind.HELD, record=record, body=claim.body)


def hand_back(decided: Amendment, holder: str) -> Amendment:
    """Record who holds an operation back, beside what was decided: from here on only its caller sends it."""
    operation = msgspec.structs.replace(decided.operation, held_by=holder, step=CALL)
    event = NewEvent(kind=EventKind.HELD, record=encode(Noted(note=f"held by {holder}")))
    return msgspec.structs.replace(decided, operation=operation, events=(*decided.events, event))


def goes_back(operation: Operation, holder: str) -> bool:
    """Whether a claim that is refused for this holder gives it back: it waits to be sent, and that is not on record."""
    waits = operation.dispatch is Dispatch.NOT_STARTED and operation.permission is Permission.AUTHORIZED
    return waits and (operation.held_by, operation.step) != (holder, CALL)


def notice(holder: str) -> Rule:
    """Give what a worker would send back to its caller, because another of its effect is unresolved now."""

    def rule(history: History, now: float) -> Amendment | Declined:
        del now
        if history.operation.step != DISPATCH:
            return Declined(because=("no worker would send it",))
        return hand_back(Amendment(operation=history.operation, events=()), holder)

    return rule


def is_callers(events: tuple[Event, ...]) -> bool:
    """Whether it was held since its last attempt, or people decided on a hold of it: no worker sends it after that."""
    held = False
    for event in events:
        if event.kind is EventKind.DECIDED:
            held = held or decided_of(event).decision == Verb.RELEASE.value
        elif event.kind in (EventKind.HELD, EventKind.BEGUN):
            held = event.kind is EventKind.HELD
    return held


def ask(proposal: Propose, now: float) -> tuple[Operation, NewEvent]:
    """Record an operation that waits for people, with its frozen payload; nothing is claimed."""
    claim = proposal.claim
    intent = claim.intent
    operation = Operation(
        n=claim.n, id=claim.id, tenant=intent.tenant, actor=intent.actor, action=intent.action, key=intent.key,
        account=intent.account, fingerprint=intent.fingerprint, effect=intent.effect, owner=claim.owner,
        value=claim.value, created_at=now, permission=Permission.PENDING, step=APPROVE,
        due_at=now + proposal.seconds, updated_at=now, seq=1,
    )  # fmt: skip
    return operation, NewEvent(kind=EventKind.PROPOSED, record=claim.record, body=claim.body)
