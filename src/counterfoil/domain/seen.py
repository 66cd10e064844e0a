"""What a person saw, read by the contract: its names for the object, and the fields that must be those asked for."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from counterfoil.domain import body, pointer
from counterfoil.domain.contract import Contract
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.template import document_of

ANY_NAME = ("id", "external_id")
"""What the provider's name for an object is called where the contract does not say."""


def names(contract: Contract) -> tuple[str, ...]:
    """The fields of a finding that hold the provider's own name for the object, the contract's before any other."""
    places = [rule.external_id for rule in contract.answers] + [look.external_id for look in contract.looks]
    places += [rule.external_id for rule in contract.webhooks]
    return tuple(dict.fromkeys([*(_last(place) for place in places if place.startswith("/")), *ANY_NAME]))


def comparable(contract: Contract) -> dict[str, str]:
    """The fields of a finding that the contract compares, each with its place in the payload."""
    matches = [rule.match for rule in contract.answers] + [look.match.material for look in contract.looks]
    matches += [rule.match for rule in contract.webhooks]
    places = [where for match in matches for where in match if where]
    return {_last(where): where for where in places}


def _last(where: str) -> str:
    return pointer.parse(where)[-1]


def external_id(contract: Contract, evidence: Mapping[str, object]) -> str:
    """The provider's own name for the object, as the person named it; empty where they named none."""
    return next((str(evidence[name]) for name in names(contract) if name in evidence), "")


def compared(contract: Contract, evidence: Mapping[str, object], payload: bytes | None) -> dict[str, str]:
    """Compare what was seen with what was asked for, field by field: `equal`, `different` or `missing`.

    Args:
        contract: says which fields are compared.
        evidence: what was seen; a text is what somebody typed, so that `10` is 10.
        payload: canonical JSON; None once it was erased.
    """
    document = MISSING if payload is None else document_of(payload)
    wanted = {name: where for name, where in comparable(contract).items() if name in evidence}
    return {name: _agrees(body.at(document, where), evidence[name]) for name, where in wanted.items()}


def _agrees(ours: object, seen: object) -> str:
    if ours is MISSING:
        return "missing"
    return "equal" if body.same(ours, seen) or _plain(ours) == _plain(seen) else "different"


def _plain(value: object) -> object:
    """A number by its value and a text by its characters; anything else is only what it is."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return (type(value), repr(value))
    try:
        found = Decimal(str(value).strip())
    except InvalidOperation:
        return str(value).strip()
    return found if found.is_finite() else str(value)
