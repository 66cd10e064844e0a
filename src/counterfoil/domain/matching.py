"""Matching: which operation something from outside speaks of, field by field and never by one weak field."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from counterfoil.domain.contract import Contract, Look
from counterfoil.domain.errors import PayloadRefused
from counterfoil.domain.event import History, attempts_of, first_begun
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.template import Names, document_of, text_of, words_of


class Match(StrEnum):
    """How well something from outside fits an operation."""

    MATCHED = "matched"
    """A strong name of it and its account agree, and its reference is no other."""
    CANDIDATE = "candidate"
    """Some of it fits: shown to people, never counted."""
    UNMATCHED = "unmatched"


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """What something from outside says whose it is; an empty field is not said."""

    account: str = ""
    reference: str = ""
    """The provider key or the client reference, as the provider shows it."""
    external_id: str = ""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The names by which the world may speak of one operation."""

    account: str
    references: tuple[str, ...]
    external_ids: tuple[str, ...]


def known(history: History, contract: Contract) -> Known:
    """The names of one operation: its provider key in both forms, the contract's own reference, and its objects.

    Args:
        history: the operation with its events.
        contract: says which field of the payload the provider knows it by.
    """
    begun = first_begun(history.events)
    key = begun.provider_key if begun else history.operation.id
    attempts, _ = attempts_of(history.events)
    references = (key, Names(provider_key=key).provider_uuid, _own_reference(history, contract))
    return Known(
        account=history.operation.account,
        references=tuple(name for name in references if name),
        external_ids=tuple(dict.fromkeys(a.external_id for a in attempts if a.external_id)),
    )


def place_of(history: History, contract: Contract, look: Look) -> tuple[str, ...] | None:
    """Within what the names of objects that a look shows are of one object each: what its request takes from a payload.

    Issue 7 of one project is not issue 7 of another, and the digest of a content is nobody's name; None where nobody
    can say any more.
    """
    words = [word for word in words_of(look.request) if word.startswith("payload")]
    own = (contract.reference,) if look.match.reference == "path" else ()
    payload = frozen_payload(history)
    wanted = [*words, *(word for word in own if word.startswith("payload"))]
    if wanted and payload is None:
        return None
    own_key = (history.operation.id,) if own and not contract.reference.startswith("payload") else ()
    try:
        return (*(text_of(document_of(payload or b"{}"), word) for word in wanted), *own_key)
    except PayloadRefused:
        return None


def _own_reference(history: History, contract: Contract) -> str:
    payload = frozen_payload(history)
    if payload is None or not contract.reference.startswith("payload"):
        return ""
    try:
        return text_of(document_of(payload), contract.reference)
    except PayloadRefused:
        return ""  # it was asked under another contract, which had no such field


def compared(named: Named, stands: Known) -> dict[str, str]:
    """Compare name by name: `equal`, `different`, or `missing` where either side says nothing."""
    return {
        "account": _agrees(named.account, (stands.account,)),
        "reference": _agrees(named.reference, stands.references),
        "external_id": _agrees(named.external_id, stands.external_ids),
    }


def _agrees(named: str, stands: tuple[str, ...]) -> str:
    if not named or not stands:
        return "missing"
    return "equal" if named in stands else "different"


def match(fields: dict[str, str]) -> Match:
    """Weigh compared names; another object under our own reference is matched, and is a contradiction."""
    if "equal" not in (fields["reference"], fields["external_id"]):
        return Match.UNMATCHED
    ours = fields["account"] == "equal" and fields["reference"] != "different"
    return Match.MATCHED if ours else Match.CANDIDATE
