"""Building what a claim writes, before any lock is taken."""

from __future__ import annotations

import msgspec

from counterfoil.domain.action import Action, Draw, Order
from counterfoil.domain.approval import Bound, Proposed
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Claim, Propose
from counterfoil.domain.decision import authority
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import ORDINARY, Begun, History, Intended, encode
from counterfoil.domain.payload import SALT_BYTES, frozen_body, salted_digest
from counterfoil.domain.terms import Required
from counterfoil.plans.observing import ReturnedForm


def first_claim(order: Order, draw: Draw) -> Claim:
    """Write down intent, permission, contract and attempt: everything the receipt says before anything leaves."""
    intent, action = order.intent, order.action
    body = draw.salts[:SALT_BYTES] + intent.payload
    digest = salted_digest(body)
    form = order.form
    if isinstance(form, ClaimForm) and form.fits(order):
        record = form.fill(order, draw, digest)
    else:
        record = encode(first_begun_for(order, draw, digest))
    return Claim(
        n=draw.n, id=draw.id, intent=intent, owner=action.owner, value=order.value, worker=draw.worker,
        send_seconds=action.contract.send_deadline_seconds, record=record, body=body,
        policy=order.terms.policy, breaker=order.terms.breaker,
    )  # fmt: skip


def first_proposal(order: Order, draw: Draw, wire: str) -> Propose:
    """Write down what people are asked, with the payload as it is frozen: the receipt of what is not sent yet.

    Args:
        order: its terms name the people.
        draw: the operation's id, which is its provider key too.
        wire: the digest of what would be written.
    """
    required = _required(order.terms.required)
    body = draw.salts[:SALT_BYTES] + order.intent.payload
    digest = salted_digest(body)
    proposed = _proposed(order, required, draw.id, digest, wire)
    record = encode(msgspec.structs.replace(proposed, intent=intended_of(order)))
    bare = first_claim(msgspec.structs.replace(order, form=None), draw)
    return Propose(claim=msgspec.structs.replace(bare, record=record), seconds=required.seconds)


def proposal_again(order: Order, history: History, wire: str) -> Proposed:
    """What people would be asked about a stored operation now: its frozen payload, under what is declared now."""
    standing = authority(history).proposed
    required = _required(order.terms.required or (standing.required if standing else None))
    digest = salted_digest(frozen_body(history) or b"")
    proposed = _proposed(order, required, history.operation.id, digest, wire)
    return msgspec.structs.replace(
        proposed, bound=msgspec.structs.replace(proposed.bound, fingerprint=history.operation.fingerprint)
    )


def _required(required: Required | None) -> Required:
    if required is None:
        raise InvariantBroken("people are asked although nothing says whom")
    return required


def _proposed(order: Order, required: Required, provider_key: str, payload_digest: str, wire: str) -> Proposed:
    intent, action = order.intent, order.action
    bound = Bound(
        tenant=intent.tenant, actor=intent.actor, action=intent.action, account=intent.account,
        destination=intent.destination, fingerprint=intent.fingerprint, payload_digest=payload_digest, wire=wire,
        contract=action.contract_digest, policy=order.terms.digest, code=action.code,
    )  # fmt: skip
    return Proposed(
        bound=bound, required=required, rule=order.terms.rule, provider_key=provider_key,
        contract_id=action.contract.id, immaterial=action.immaterial,
        assumptions=assumptions_of(action), mentioned=dict(order.mentioned),
    )  # fmt: skip


def intended_of(order: Order) -> Intended:
    """What was asked, as the chain keeps it."""
    intent = order.intent
    return Intended(
        tenant=intent.tenant, actor=intent.actor, action=intent.action, account=intent.account, key=intent.key,
        fingerprint=intent.fingerprint, effect=intent.effect, owner=order.action.owner, value=order.value,
        sensitivity="" if order.action.sensitivity == ORDINARY else order.action.sensitivity,
        compensates=order.compensates,
        material=order.action.material, immaterial=tuple(order.action.immaterial),
    )  # fmt: skip


def first_begun_for(order: Order, draw: Draw, payload_digest: str) -> Begun:
    """The record of a first claim: what was asked stands in it, under the chain's hash."""
    intent, action = order.intent, order.action
    begun = begun_for(
        action, draw, destination=intent.destination, payload_digest=payload_digest, mentioned=order.mentioned
    )
    terms = order.terms
    return msgspec.structs.replace(begun, intent=intended_of(order), policy=terms.digest, rule=terms.rule)


class ClaimForm:
    """The record of one action's first claims with gaps for what differs: the same bytes, an eighth of the work.

    Args:
        order: any order of the action and actor, with the value at risk that most have.
    """

    __slots__ = ("_text", "policy", "returned", "value")

    def __init__(self, order: Order) -> None:
        self.value = order.value
        self.policy = order.terms.digest
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

    def fits(self, order: Order) -> bool:
        """Whether nothing but the gaps differs: of one value the same policy says the same."""
        plain = not order.mentioned and not order.compensates
        return plain and order.value == self.value and order.terms.digest == self.policy

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
