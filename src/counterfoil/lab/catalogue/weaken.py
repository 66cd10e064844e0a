"""Every clause of a contract that safety may rest on, weakened in turn: it then claims more than the facts say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from counterfoil.domain.contract import (
    AnswerRule,
    AutomaticAttempts,
    By,
    Confidence,
    Consistency,
    Contract,
    Fence,
    Look,
    ProtectionKind,
    Terminal,
)
from counterfoil.domain.words import Coverage

REPEAT, ABSENCE, MATCH, ANSWER, FENCE, END = "repeat", "absence", "match", "answer", "fence", "end"
"""What a clause guards: the same key sent again, `not found`, `found`, an answer's word, a fence's, how it ends."""
LONGER = 1000.0
_change = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class Weakened:
    """One clause that claims too much."""

    clause: str
    guards: str
    contract: Contract
    at: int = -1
    """Its place among the answers, looks or fences."""


def weakened(contract: Contract) -> Iterator[Weakened]:
    """Every weakening of a contract, one at a time, and all of a kind together."""
    yield from _repeats(contract)
    for index, look in enumerate(contract.looks):
        yield from _looks(contract, index, look)
    for index, rule in enumerate(contract.answers):
        yield from _answers(contract, index, rule)
    for index, fence in enumerate(contract.fences):
        yield from _fences(contract, index, fence)
    for index, end in enumerate(contract.terminal):
        yield from _ends(contract, index, end)


# -- the same key, sent again ------------------------------------------------------------------------------------------


def _repeats(contract: Contract) -> Iterator[Weakened]:
    retention = contract.protection.retention_seconds
    longer = "never_expires" if isinstance(retention, str) else retention * LONGER
    single: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "protection.kind": ({"kind": ProtectionKind.IDEMPOTENCY_KEY}, {}),
        "protection.retention_seconds": ({"retention_seconds": longer}, {}),
        "repeat.same_payload": ({}, {"same_payload": "replays_answer"}),
        "repeat.in_flight": ({}, {"in_flight": "refused"}),
        "repeat.errors_replayed": ({}, {"errors_replayed": False}),
    }
    for clause, (kept, repeated) in single.items():
        if _permits_already(contract, clause):
            continue
        yield Weakened(clause, REPEAT, _repeating(contract, kept, repeated))
    together = {name: value for kept, _ in single.values() for name, value in kept.items()}
    again = {name: value for _, repeated in single.values() for name, value in repeated.items()}
    if not all(_permits_already(contract, clause) for clause in single if clause != "protection.retention_seconds"):
        yield Weakened("every clause of protection and repeat", REPEAT, _repeating(contract, together, again))


def _permits_already(contract: Contract, clause: str) -> bool:
    protection, repeat = contract.protection, contract.repeat
    match clause:
        case "protection.kind":
            return protection.kind.value in ("idempotency_key", "natural_key", "conditional_write")
        case "protection.retention_seconds":
            return protection.retention_seconds == "never_expires"
        case "repeat.same_payload":
            return repeat.same_payload in ("replays_answer", "returns_current", "refused")
        case "repeat.in_flight":
            return repeat.in_flight in ("refused", "waits")
        case _:
            return isinstance(repeat.errors_replayed, bool)


def _repeating(contract: Contract, kept: dict[str, Any], repeated: dict[str, Any]) -> Contract:
    """The contract with other claims about its key, as if documented, and one automatic repeat where there was none."""
    granted = max(contract.automatic_attempts.same_key_replay, 1)
    claimed = {contract.protection.source, contract.repeat.source}
    sure = {name: _change(contract.sources[name], confidence=Confidence.DOCUMENTED) for name in claimed}
    return _change(
        contract,
        sources=contract.sources | sure,
        protection=_change(contract.protection, **kept),
        repeat=_change(contract.repeat, **repeated),
        automatic_attempts=AutomaticAttempts(same_key_replay=granted),
        one_shot=False,
    )


# -- found and not found -----------------------------------------------------------------------------------------------

_ABSENT: dict[str, dict[str, Any]] = {
    "consistency": {"consistency": Consistency.STRONG, "lag_seconds": 0},
    "authoritative": {"authoritative": True},
    "absence_means": {"absence_means": "never_happened"},
    "complete": {"complete": True},
}


def _looks(contract: Contract, index: int, look: Look) -> Iterator[Weakened]:
    changes = {clause: change for clause, change in _ABSENT.items() if _change(look, **change) != look}
    for clause, change in changes.items():
        yield _looking(contract, index, clause, ABSENCE, change)
    together = {name: value for change in changes.values() for name, value in change.items()}
    if len(changes) > 1:
        yield _looking(contract, index, "every clause of absence", ABSENCE, together)
    if look.by is By.ID:
        yield _looking(contract, index, "by", ABSENCE, {"by": By.LIST, **together})
    match = look.match
    for where in match.material:
        rest = _without(match.material, where)
        yield _looking(
            contract, index, f"match.material {where or 'payload'}", MATCH, {"match": _change(match, material=rest)}
        )
    if match.text is not None and len(match.text.properties) > 1:
        for name in match.text.properties:
            rest_text = tuple(other for other in match.text.properties if other != name)
            change = {"match": _change(match, text=_change(match.text, properties=rest_text))}
            yield _looking(contract, index, f"match.text {name}", MATCH, change)
    for where in match.state:
        rest_state = _without(match.state, where)
        yield _looking(contract, index, f"match.state {where}", MATCH, {"match": _change(match, state=rest_state)})
    if match.account not in ("scope", "unknown"):
        yield _looking(contract, index, "match.account", MATCH, {"match": _change(match, account="scope")})


def _looking(contract: Contract, index: int, clause: str, guards: str, change: dict[str, Any]) -> Weakened:
    looks = list(contract.looks)
    looks[index] = _change(looks[index], **change)
    return Weakened(f"looks[{index}].{clause}", guards, _change(contract, looks=tuple(looks)), index)


# -- answers -----------------------------------------------------------------------------------------------------------


def _answers(contract: Contract, index: int, rule: AnswerRule) -> Iterator[Weakened]:
    changes: dict[str, dict[str, Any]] = {
        f"{clause} {where}": {clause: _without(fields, where)}
        for clause, fields in (("where", rule.where), ("match", rule.match), ("headers", rule.headers))
        for where in fields
    }
    if rule.content == "json" and not rule.where and not rule.match:
        changes["content"] = {"content": "any"}
    if rule.finding == "rejected":
        changes["status"] = {
            "status": ("408", "409", "412", "422", "429", "500", "502", "503", "504", *rule.status),
            "where": {},
        }
        changes["coverage"] = {"coverage": Coverage.PROVIDER_KEY}
    if rule.finding == "unknown":
        changes["finding"] = {"finding": "rejected", "means": None}
    if rule.finding == "accepted":
        changes["finding"] = {"finding": "succeeded", "effect": ""}
    for clause, change in changes.items():
        answers = list(contract.answers)
        answers[index] = _change(rule, **change)
        yield Weakened(f"answers[{index}].{clause}", ANSWER, _change(contract, answers=tuple(answers)), index)


def _without(fields: dict[str, Any], where: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != where}


def _fences(contract: Contract, index: int, fence: Fence) -> Iterator[Weakened]:
    fences = list(contract.fences)
    fences[index] = _change(fence, won=(*fence.won, *fence.lost))
    yield Weakened(f"fences[{index}].won", FENCE, _change(contract, fences=tuple(fences)), index)


def _ends(contract: Contract, index: int, end: Terminal) -> Iterator[Weakened]:
    """Each end taken for the other one."""
    terminal = list(contract.terminal)
    terminal[index] = _change(end, finding="rejected" if end.finding == "succeeded" else "succeeded")
    yield Weakened(f"terminal[{index}].finding", END, _change(contract, terminal=tuple(terminal)), index)
