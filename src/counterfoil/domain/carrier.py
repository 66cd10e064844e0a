"""Carriers: whether a request carries the key where the protection says that it stands."""

from __future__ import annotations

from counterfoil.domain.contract import Contract
from counterfoil.domain.template import RequestTemplate


def carries(contract: Contract, request: RequestTemplate) -> bool:
    """The template puts the key where the protection says it stands."""
    kind, _, name = contract.protection.carrier.partition(":")
    words = {"{provider_key}", "{provider_uuid}", "{reference}"}
    if contract.reference.startswith("payload"):
        words |= {"{" + contract.reference + "}", "{/" + contract.reference + "}"}
    match kind:
        case "header":
            places: tuple[str, ...] = (request.headers.get(name.lower(), ""),)
        case "query":
            value = request.query.get(name, "")
            places = (value,) if isinstance(value, str) else value
        case "path":
            places = (request.path,)
        case "body":
            if name in request.put:
                places = (request.put[name],)
            else:
                return contract.reference == f"payload{name}" or request.body not in {"json", "form", "none"}
        case _:
            return True
    return any(word in place for word in words for place in places)
