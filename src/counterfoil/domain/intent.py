"""What was asked: one occurrence of one action with its frozen payload."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from counterfoil.domain import canonical

_encode = msgspec.json.Encoder().encode

_EFFECT_HEX = 40
"""160 bits: a collision would only hold an operation back, never send one twice."""


class Siblings(StrEnum):
    """Whether equal effects under other keys may run while one is unresolved."""

    HELD = "held"
    INDEPENDENT = "independent"


class Occurrence(StrEnum):
    """Within what an equal intent without a key counts as the same occurrence."""

    RUN = "run"
    CONVERSATION = "conversation"
    DAY = "day"
    ONCE = "once"


class Intent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What was asked; `payload` is canonical and is what will be sent."""

    tenant: str
    actor: str
    """The accountable principal, never a run or an agent instance."""
    action: str
    account: str
    destination: str
    key: str
    payload: bytes
    fingerprint: str
    effect: str
    """The effect identity: what must not happen twice while unresolved."""


def effect_namer(tenant: str, account: str, effect: str) -> Callable[[Sequence[str]], str]:
    """Return what names an effect identity: what must not happen twice, whoever asks and by whatever route.

    Args:
        tenant: whose effect it is.
        account: where it lands.
        effect: the name shared by all actions that cause it.
    """
    # A JSON list, not a joined string: ("a", "b") and ("a,b",) stay apart whatever the parts contain.
    head = _encode((tenant, account, effect))[:-1] + b","

    def name(parts: Sequence[str]) -> str:
        """Name one effect by its declared pointers' canonical values, or by its fingerprint."""
        return "ef1:" + hashlib.sha256(head + _encode(parts)).hexdigest()[:_EFFECT_HEX]

    return name


def print_prefix(account: str, destination: str) -> bytes:
    """What a fingerprint is of, before the payload: a list of the account, the destination and the payload."""
    return canonical.canonical([account, destination])[:-1] + b","


def material_of(frozen: bytes, material: Sequence[str], immaterial: Sequence[str]) -> bytes:
    """What of a frozen payload its fingerprint is of.

    Args:
        frozen: the canonical payload.
        material: pointers that are compared; empty: all but the immaterial.
        immaterial: pointers that are not.

    Raises:
        NotCanonical: the payload has no canonical form.
    """
    if not material and not immaterial:
        return frozen
    kept = canonical.select(canonical.parse(frozen), material=tuple(material), immaterial=tuple(immaterial))
    return canonical.canonical(kept)


def print_of(prefix: bytes, material: bytes, compensates: str = "") -> bytes:
    """The octets a fingerprint is of; an intent that undoes an operation differs from the same one that undoes none."""
    undone = b"," + canonical.canonical(compensates) if compensates else b""
    return prefix + material + undone + b"]"
