"""Barriers: what a contract may call a fence. It takes the original's place, by the original's condition, with nothing.

Anything else that is answered with success is an effect of its own: the original once more, or over what stands there.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterfoil.domain import pointer
from counterfoil.domain.carrier import carries
from counterfoil.domain.contract import PLACED, Contract, ProtectionKind
from counterfoil.domain.template import RequestTemplate, places, texts

OVER_WHAT_STANDS = ("if-match", "if-unmodified-since")
_NO_CONDITION = ("accept", "content-", "user-agent")
"""Headers that say how something is written, and not when."""


def flaws(contract: Contract) -> Iterator[tuple[str, str]]:
    """Name what is wrong with each fence: it takes the original's place by its condition, and does nothing else."""
    protection, repeat = contract.protection, contract.repeat
    for index, fence in enumerate(contract.fences):
        path = f"$.fences[{index}]"
        if protection.kind not in PLACED:
            yield path, "only a name or a condition is taken for good: an original under any other key may land later"
        elif repeat.other_payload != "refused" or repeat.in_flight != "refused":
            yield path, "nothing documents that the provider refuses an original beside it"
        flaw = _flaw(contract, fence.request)
        if flaw:
            yield f"{path}.request", flaw
        if contract.one_shot or contract.reconcile != "allowed":
            yield path, "the contract forbids to touch its destination again"
        if any(not status.startswith("2") for status in fence.won):
            yield f"{path}.won", "only a 2xx says that a write took place"
        if any(not status.startswith("4") for status in fence.lost):
            yield f"{path}.lost", "only a 4xx says that it did not"


def _flaw(contract: Contract, fence: RequestTemplate) -> str:
    """The first reason for which a request is no fence; empty where it is one."""
    original = contract.request
    if original is None or not carries(contract, fence):
        return "it does not carry the original's key, so it stands in nobody's way"
    conditions = _conditions(original)
    lacking = [name for name, value in conditions.items() if _conditions(fence).get(name) != value]
    failed = {
        "it is the original write itself": fence == original,
        f"it does not go where the original goes: {original.method} {original.path}":
            (fence.method, fence.path) != (original.method, original.path),
        "it writes over what stands there: `if-match` is no fence's condition":
            any(name in fence.headers for name in OVER_WHAT_STANDS),
        "the original's request carries no condition, so a fence has none to take its place by":
            contract.protection.kind is ProtectionKind.CONDITIONAL_WRITE and not conditions,
        f"it lacks the original's condition: {', '.join(lacking)} as there": bool(lacking),
        "it carries the payload: a fence holds nothing but what names the place":
            _holds_payload(contract, original, fence),
    }  # fmt: skip
    return next((sentence for sentence, fails in failed.items() if fails), "")


def _conditions(request: RequestTemplate) -> dict[str, object]:
    """Every header and query value that is the same each time: under what condition, or as what, it is written."""
    headers = {name: value for name, value in request.headers.items() if not name.startswith(_NO_CONDITION)}
    return {name: value for name, value in {**request.query, **headers}.items() if "{" not in str(value)}


def _holds_payload(contract: Contract, original: RequestTemplate, fence: RequestTemplate) -> bool:
    """Something of what was asked for goes with it, beside what names the place."""
    named = {*places(fence.path), *places("{" + contract.reference + "}")}
    if any(where not in named for text in texts(fence) for where in places(text)):
        return True
    if fence.body not in {"json", "form"}:
        return fence.body != "none"
    if not set(fence.without) - set(original.without) - named:
        return True
    left_out = [pointer.parse(where) for where in fence.without]
    told = [pointer.parse(where) for where in _compared(contract) if where not in named]
    return any(not any(where[: len(out)] == out for out in left_out) for where in told)


def _compared(contract: Contract) -> Iterator[str]:
    """Every field of the payload by which the contract tells the effect."""
    for answer in contract.answers:
        yield from answer.match
    for event in contract.webhooks:
        yield from event.match
    for look in contract.looks:
        yield from look.match.material
        yield from (look.match.text.payload,) if look.match.text else ()
