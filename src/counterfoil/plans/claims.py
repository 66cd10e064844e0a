"""Building what a claim writes, before any lock is taken."""

from __future__ import annotations

from counterfoil.domain.action import Action, Draw, Order
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Claim
from counterfoil.domain.event import Begun, encode
from counterfoil.domain.payload import SALT_BYTES, salted_digest, seal


def first_claim(order: Order, draw: Draw) -> Claim:
    """Write down intent, permission, contract and attempt: everything the receipt says before anything leaves."""
    intent, action = order.intent, order.action
    body = seal(draw.salts[:SALT_BYTES], intent.payload)
    digest = salted_digest(body)
    begun = begun_for(action, draw, destination=intent.destination, payload_digest=digest, mentioned=order.mentioned)
    return Claim(
        n=draw.n, id=draw.id, tenant=intent.tenant, actor=intent.actor, action=intent.action, key=intent.key,
        account=intent.account, fingerprint=intent.fingerprint, effect=intent.effect, owner=action.owner,
        value=order.value, worker=draw.worker, send_seconds=action.send_seconds,
        record=encode(begun), body=body, payload_digest=digest,
    )  # fmt: skip


def begun_for(
    action: Action,
    draw: Draw,
    *,
    destination: str,
    payload_digest: str = "",
    mentioned: dict[str, str] | None = None,
    by: str = "",
) -> Begun:
    """The record of a claim; a further attempt's number, class and basis are filled in under the write lock."""
    protection = action.contract.protection
    retention = protection.retention_seconds
    return Begun(
        attempt=Attempt(number=1, token=draw.token, worker=draw.worker, send_seconds=action.send_seconds),
        provider_key=draw.id,
        key_scope=protection.scope,
        key_valid_seconds=None if isinstance(retention, str) else retention,
        contract=action.contract_digest,
        contract_id=action.contract.id,
        code=action.code,
        destination=destination,
        payload_digest=payload_digest,
        by=by,
        assumptions=assumptions_of(action),
        follows=action.contract.follows,
        mentioned=mentioned or {},
    )


def assumptions_of(action: Action) -> dict[str, object]:
    """The named assumptions a receipt of this action rests on."""
    if action.longest_delivery is None:
        return {}
    return {
        "longest_delivery": {
            "seconds": action.longest_delivery,
            "by": action.longest_delivery_by,
            "why": action.longest_delivery_why,
        }
    }
