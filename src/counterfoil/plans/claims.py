"""Building what a claim writes, before any lock is taken."""

from __future__ import annotations

import msgspec

from counterfoil.domain.action import Action, Draw, Order
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Claim
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import Begun, Intended, encode
from counterfoil.domain.payload import SALT_BYTES, salted_digest
from counterfoil.plans.observing import ReturnedForm


def first_claim(order: Order, draw: Draw) -> Claim:
    """Write down intent, permission, contract and attempt: everything the receipt says before anything leaves."""
    intent, action = order.intent, order.action
    body = draw.salts[:SALT_BYTES] + intent.payload
    digest = salted_digest(body)
    form = order.form
    if isinstance(form, ClaimForm) and order.value == form.value and not order.mentioned:
        record = form.fill(order, draw, digest)
    else:
        record = encode(first_begun_for(order, draw, digest))
    return Claim(
        n=draw.n, id=draw.id, intent=intent, owner=action.owner, value=order.value, worker=draw.worker,
        send_seconds=action.contract.send_deadline_seconds, record=record, body=body,
    )  # fmt: skip


def first_begun_for(order: Order, draw: Draw, payload_digest: str) -> Begun:
    """The record of a first claim: what was asked stands in it, under the chain's hash."""
    intent, action = order.intent, order.action
    begun = begun_for(
        action, draw, destination=intent.destination, payload_digest=payload_digest, mentioned=order.mentioned
    )
    intended = Intended(
        tenant=intent.tenant, actor=intent.actor, action=intent.action, account=intent.account, key=intent.key,
        fingerprint=intent.fingerprint, effect=intent.effect, owner=action.owner, value=order.value,
    )  # fmt: skip
    return msgspec.structs.replace(begun, intent=intended)


class ClaimForm:
    """The record of one action's first claims with gaps for what differs: the same bytes, an eighth of the work.

    Args:
        order: any order of the action and actor, with the value at risk that most have.
    """

    __slots__ = ("_text", "returned", "value")

    def __init__(self, order: Order) -> None:
        self.value = order.value
        self.returned = ReturnedForm(order.action)
        """Of the answer to such a claim."""
        gaps = [f"\x02gap-{i}\x03" for i in range(7)]
        token, worker, identifier, key, fingerprint, effect, digest = gaps
        intent = msgspec.structs.replace(order.intent, key=key, fingerprint=fingerprint, effect=effect)
        draw = Draw(n=0, id=identifier, worker=worker, token=token, salts=b"", jitter=0.0)
        blank = msgspec.structs.replace(order, intent=intent, mentioned={})
        text = encode(first_begun_for(blank, draw, digest)).decode()
        # Each gap stands once, as a JSON string of its own; what stands between them never changes. Only the key may
        # hold what JSON must escape: all else is of our making, and its quotes stand in the form.
        text = text.replace("%", "%%")
        places = [text.index(_json(gap)) for gap in gaps]
        if places != sorted(places):
            raise InvariantBroken("a claim's record has its fields in another order than its form")
        for gap in gaps:
            text = text.replace(_json(gap), "%s" if gap is key else '"%s"')
        self._text = text

    def fill(self, order: Order, draw: Draw, payload_digest: str) -> bytes:
        """Write the record of one claim."""
        intent = order.intent
        gaps = draw.token, draw.worker, draw.id, _json(intent.key), intent.fingerprint, intent.effect, payload_digest
        return (self._text % gaps).encode()


def _json(text: str) -> str:
    return encode(text).decode()


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
