"""Approvals: what people were asked for, what exactly they allowed, and whether that still stands.

An approval is bound to every field of `Bound`. It is read from the events, under the write lock, by the store's
clock, each time an attempt is claimed: nothing about it is remembered elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from counterfoil.domain.attempt import Attempt
from counterfoil.domain.event import Decided, Event, EventKind, Intended, Removed, encode, read
from counterfoil.domain.person import distinct
from counterfoil.domain.terms import Required
from counterfoil.domain.words import Finding, Permission

EXPIRED = "the approval ended before it was used"
UNANSWERED = "nobody answered in time, which is no approval"
STALE = "it was asked under a policy that is in force no longer, so no answer to it counts: the same call asks anew"
USED_UP = "the approval is used up"


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one approval is for: a difference in any field is another question."""

    tenant: str
    actor: str
    action: str
    account: str
    destination: str
    fingerprint: str
    payload_digest: str
    """Of the frozen payload with its salt."""
    wire: str
    """Of what would be written, byte for byte, with references in the place of secrets."""
    contract: str
    policy: str
    code: str


class Proposed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people are asked: recorded when it is first asked, and again whenever it must be asked anew."""

    bound: Bound
    required: Required
    rule: str = ""
    """The policy's rule that asks."""
    intent: Intended | None = None
    """In an operation's first event."""
    provider_key: str
    contract_id: str = ""
    immaterial: dict[str, str] = {}
    """What the fingerprint leaves out, with the reasons: it is shown to whoever approves."""
    assumptions: dict[str, Any] = {}
    mentioned: dict[str, Any] = {}
    because: tuple[str, ...] = ()
    """Why it is asked anew: the fields that changed, or that the answer came to an end."""


class Authority(msgspec.Struct, frozen=True, kw_only=True):
    """Who has allowed an operation what, by its events; without a proposal its action and policy allowed it."""

    permission: Permission = Permission.AUTHORIZED
    proposed: Proposed | None = None
    proposed_seq: int = 0
    approved_by: tuple[str, ...] = ()
    approval: int = 0
    """Number of the event that made it authorized; 0 where none did."""
    ends_at: float = 0.0
    """Seconds since the epoch: when the question, or the answer, comes to an end."""
    uses: int = 0
    """Attempts under this approval that are not proven to have stayed here."""


_decided = msgspec.json.Decoder(Decided)
_proposed = msgspec.json.Decoder(Proposed)
_removed = msgspec.json.Decoder(Removed)

MOVES = {"deny": Permission.DENIED, "revoke": Permission.REVOKED, "expire": Permission.EXPIRED}
"""Decisions that end a permission."""


def decided_of(event: Event) -> Decided:
    """Read a `decided` event's record."""
    return read(_decided, event)


def proposed_of(event: Event) -> Proposed:
    """Read a `proposed` event's record."""
    return read(_proposed, event)


def binding(proposed: Proposed) -> str:
    """The digest of what is asked: whoever approves names it, so that nobody approves what they did not see."""
    return "ab1:" + hashlib.sha256(encode([proposed.bound, proposed.required])).hexdigest()[:40]


def changed(approved: Bound, now: Bound) -> tuple[str, ...]:
    """The fields in which two bindings differ."""
    return tuple(name for name in Bound.__struct_fields__ if getattr(approved, name) != getattr(now, name))


def is_stale(standing: Authority, policy: str) -> bool:
    """Whether a question, and any answer to it, counts for nothing because another policy is in force.

    Args:
        standing: who has allowed it what.
        policy: the digest of the one in force; empty where none was ever adopted.
    """
    open_still = standing.permission in (Permission.PENDING, Permission.AUTHORIZED)
    return standing.proposed is not None and open_still and standing.proposed.bound.policy != policy


def authority_of(events: Sequence[Event], attempts: Sequence[Attempt]) -> Authority:
    """Fold permission, and the approval that stands, from an operation's events.

    Args:
        events: all of them, in order.
        attempts: as they stand: one proven `not_sent` gives its use of an approval back.
    """
    standing = Authority()
    for event in events:
        if event.kind is EventKind.REMOVED:
            standing = Authority(permission=read(_removed, event).permission)
        elif event.kind is EventKind.PROPOSED:
            standing = _asked(event)
        elif event.kind is EventKind.DECIDED:
            standing = _answered(standing, event, decided_of(event))
    under = [a for a in attempts if standing.approval and a.approval == standing.approval]
    return msgspec.structs.replace(standing, uses=sum(a.finding is not Finding.NOT_SENT for a in under))


def _asked(event: Event) -> Authority:
    proposed = proposed_of(event)
    return Authority(
        permission=Permission.PENDING,
        proposed=proposed,
        proposed_seq=event.seq,
        ends_at=event.at + proposed.required.seconds,
    )


def _answered(standing: Authority, event: Event, decided: Decided) -> Authority:
    if decided.decision in MOVES:
        return msgspec.structs.replace(standing, permission=MOVES[decided.decision])
    if decided.decision != "approve" or standing.proposed is None or not _answers(standing, standing.proposed, decided):
        return standing
    people = distinct((*standing.approved_by, decided.by), besides=standing.proposed.bound.actor)
    if len(people) == len(standing.approved_by):  # as it may stand on record from before names had one form
        return standing
    if len(people) < standing.proposed.required.people:
        return msgspec.structs.replace(standing, approved_by=people)
    return msgspec.structs.replace(
        standing,
        permission=Permission.AUTHORIZED,
        approved_by=people,
        approval=event.seq,
        ends_at=event.at + standing.proposed.required.seconds,
    )


def _answers(standing: Authority, proposed: Proposed, decided: Decided) -> bool:
    """Whether an approval is one of the question that stands: taken from elsewhere, or repeated, it allows nothing."""
    return standing.permission is Permission.PENDING and decided.facts.get("binding") == binding(proposed)
