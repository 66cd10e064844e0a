"""Listing: what a provider has in one account, read for its own sake and not for one intent's."""

from __future__ import annotations

from datetime import datetime

import msgspec

from counterfoil.domain import body, reply
from counterfoil.domain.answer import Answer, Replied
from counterfoil.domain.contract import Look
from counterfoil.domain.page import items_of
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.reading import shown


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a list, by its own names: whose it is, nobody has said yet."""

    account: str
    reference: str
    external_id: str
    state: dict[str, object]
    created_at: float | None
    """Seconds since the epoch; None where it does not say."""
    document: object


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one list look shows."""

    things: tuple[Thing, ...] = ()
    reason: str = ""
    """A fixed word for why it is not all there is, or nothing at all; empty where it is all."""


def listed(look: Look, answer: Answer, account: str) -> Listed:
    """Read a list for its own sake: what it shows is shown, also where it says that it is not all.

    Args:
        look: a clause that lists.
        answer: of its own request.
        account: whose credentials asked.
    """
    items, reason = items_of(look, answer)
    return Listed(things=tuple(_thing(look, told, document, account) for told, document in items), reason=reason)


def _thing(look: Look, told: Replied, document: object, account: str) -> Thing:
    place = look.match.account
    named = "" if place == "unknown" else reply.name_at(told, document, place)
    return Thing(
        account=account if place == "scope" else named, reference=reply.name_at(told, document, look.match.reference),
        external_id=reply.name_at(told, document, look.external_id),
        state={where: shown(body.at(document, where)) for where in look.match.state},
        created_at=moment(body.at(document, look.created_at)) if look.created_at else None, document=document,
    )  # fmt: skip


def moment(said: object) -> float | None:
    """Seconds since the epoch; None where nobody can say which moment is meant."""
    if isinstance(said, int | float) and not isinstance(said, bool):
        return float(said)
    try:
        found = datetime.fromisoformat(said) if isinstance(said, str) else None
        return found.timestamp() if found is not None and found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def content(fields: dict[str, str], document: object, *, theirs: bool) -> bytes | None:
    """What is compared of a payload, or of an item, as one text; None where a field of it is missing.

    Args:
        fields: payload pointer to the item's.
        document: the payload, or the item.
        theirs: it is the item.
    """
    found = [body.at(document, there if theirs else where) for where, there in fields.items()]
    if not found or any(value is MISSING for value in found):
        return None
    try:
        return body.encode(found)
    except TypeError:
        return None  # a value that JSON has no form for stands in no answer
