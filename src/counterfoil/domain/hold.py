"""Holds: an operation that is not sent because another of the same effect is unresolved."""

from __future__ import annotations

import msgspec

from counterfoil.domain.command import Claim, NewEvent
from counterfoil.domain.event import Begun, EventKind, Noted, encode
from counterfoil.domain.operation import Operation

_begun = msgspec.json.Decoder(Begun)


def propose(claim: Claim, holder: str, now: float) -> tuple[Operation, NewEvent]:
    """Record a proposed operation with its frozen payload and the one that holds it back; nothing is claimed.

    A held operation is never sent by the release: its caller asks again and is judged anew.
    """
    begun, intent = _begun.decode(claim.record), claim.intent
    operation = Operation(
        n=claim.n, id=claim.id, tenant=intent.tenant, actor=intent.actor, action=intent.action, key=intent.key,
        account=intent.account, fingerprint=intent.fingerprint, effect=intent.effect, owner=claim.owner,
        value=claim.value, created_at=now, held_by=holder, updated_at=now, seq=1,
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
