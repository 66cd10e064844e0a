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
    begun = _begun.decode(claim.record)
    operation = Operation(
        n=claim.n, id=claim.id, tenant=claim.tenant, actor=claim.actor, action=claim.action, key=claim.key,
        account=claim.account, fingerprint=claim.fingerprint, effect=claim.effect, owner=claim.owner,
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
