"""A contract in words: each clause with what it says and what it rests on, and what follows from all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from counterfoil.cli.marks import duration
from counterfoil.domain import reach
from counterfoil.domain.contract import (
    AnswerRule,
    Contract,
    Fence,
    Group,
    Look,
    Match,
    ProviderBudget,
    ReadBudget,
    Terminal,
    WebhookRule,
)
from counterfoil.domain.retry import RETENTION_SECONDS_MIN, RETENTION_SHARE
from counterfoil.domain.sure import believed


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One clause: which, what it says, and the name of the source that it rests on."""

    clause: str
    says: str
    source: str


def clauses(contract: Contract) -> list[Said]:
    """Every clause of a contract in the order in which it is written."""
    protection, repeat = contract.protection, contract.repeat
    said = [
        Said(clause="protection", says=_protected(contract), source=protection.source),
        Said(clause="repeat", says=_repeated(contract), source=repeat.source),
    ]
    said += [
        Said(clause=f"answers[{i}]", says=_answered(rule), source=rule.source)
        for i, rule in enumerate(contract.answers)
    ]
    said += [
        Said(clause=f"looks[{i}]", says=_looked(believed(contract, look)), source=look.source)
        for i, look in enumerate(contract.looks)
    ]
    said += [
        Said(clause=f"webhooks[{i}]", says=_heard(rule), source=rule.source) for i, rule in enumerate(contract.webhooks)
    ]
    said += [
        Said(clause=f"fences[{i}]", says=_fenced(fence), source=fence.source) for i, fence in enumerate(contract.fences)
    ]
    said += [
        Said(clause=f"terminal[{i}]", says=_ends(end), source=end.source) for i, end in enumerate(contract.terminal)
    ]
    return said


def lasts(contract: Contract) -> str:
    """How long the key protects."""
    retention = contract.protection.retention_seconds
    return retention.replace("_", " ") if isinstance(retention, str) else duration(retention)


def _protected(contract: Contract) -> str:
    protection = contract.protection
    kind = protection.kind.value.replace("_", " ")
    if protection.carrier in ("none", "unknown"):
        return kind
    said = [f"{kind} at {protection.carrier}", f"kept: {lasts(contract)}", f"unique within: {protection.scope}"]
    if protection.length_max != "unknown":
        said.append(f"at most {protection.length_max} characters")
    return "; ".join(said)


def _repeated(contract: Contract) -> str:
    repeat = contract.repeat
    errors = {True: "replayed", False: "the key goes on protecting", "run_again": "run again"}
    said = {
        "same request": repeat.same_payload,
        "another request": repeat.other_payload,
        "beside the first": repeat.in_flight,
        "after an error": errors.get(repeat.errors_replayed, "unknown"),
    }
    return "; ".join(f"{name}: {value.replace('_', ' ')}" for name, value in said.items())


def _answered(rule: AnswerRule) -> str:
    said = [" ".join(rule.status), *(f"{where} = {_value(value)}" for where, value in rule.where.items())]
    said += [f"header {name}{'' if value == '*' else f' = {value}'}" for name, value in rule.headers.items()]
    means = f" ({rule.means.value.replace('_', ' ')})" if rule.means else ""
    compared = f", if {', '.join(rule.match)} is as asked for" if rule.match else ""
    return f"{', '.join(said)}: {rule.effect or rule.finding.replace('_', ' ')}{means}{compared}"


def _looked(look: Look) -> str:
    match = look.match
    said = [
        f"{look.request.method} {look.request.path} by {look.by.value.replace('_', ' ')}",
        f"consistency {look.consistency.value}",
    ]
    if look.next_page is not None:
        said.append(f"page by page, by {look.next_page}")
    compared = [*match.material, *(match.text.properties if match.text else ())]
    noted = "ours by the name that its sender noted" if match.noted else "never ours"
    ours = compared and reach.may_find(look)
    said.append(f"ours if {' and '.join(_agree(match, compared))}" if ours else noted)
    missing = reach.why_no_absence(look)
    said.append(
        "not found may prove that it never happened" if not missing else f"not found proves nothing: {missing[0]}"
    )
    return "; ".join(said)


def _agree(match: Match, compared: Sequence[str]) -> Iterator[str]:
    """What must agree before something that was found is ours."""
    if match.reference not in ("path", "unknown"):
        yield f"{match.reference} is the name it was sent under"
    yield from (f"{where} is {' or '.join(map(_value, values))}" for where, values in match.state.items())
    yield f"{', '.join(where or 'the payload' for where in compared)} as asked for"


def _heard(rule: WebhookRule) -> str:
    said = ", ".join(f"{where} = {_value(value)}" for where, value in rule.where.items())
    by = " and ".join(place for place in (rule.reference, rule.external_id) if place)
    compared = f", if {', '.join(rule.match)} is as asked for" if rule.match else ""
    return f"{said}: {rule.effect or rule.finding}{compared}; found by {by}"


def _fenced(fence: Fence) -> str:
    carried = [*(f"header {name}" for name in fence.headers), *(f"{at} = {_value(v)}" for at, v in fence.where.items())]
    won = " with ".join([" ".join(fence.won), *([", ".join(carried)] if carried else [])])
    return f"{fence.request.method} {fence.request.path}: won by {won}, lost by {' '.join(fence.lost)}"


def _ends(end: Terminal) -> str:
    states = (f"{where} = {' | '.join(map(_value, values))}" for where, values in end.state.items())
    return f"what was accepted ends {end.finding} where {', '.join(states)}"


def _value(value: object) -> str:
    return msgspec.json.encode(value).decode()


def follows(contract: Contract) -> Iterator[tuple[str, str]]:
    """What a deployment may expect: how a lost answer is settled, what is repeated, what is proven."""
    if reach.finds(contract):
        settled = "found by a look of which it is known what it shows"
    elif reach.finds_at_all(contract):
        settled = "found by a look, if it shows it"
    else:
        settled = "by a person"
    yield "a lost answer", settled
    if contract.looks and contract.read_budget.looks_max:
        yield "looks", _reads(contract.read_budget)
    refused = reach.why_no_repeat(contract)
    granted = contract.automatic_attempts.same_key_replay
    by_itself = f"up to {granted} by itself" if granted else "only where somebody asks"
    yield "the same key again", "never: " + refused[0] if refused else f"{by_itself}, {_protects(contract)}"
    ways = [
        *(["a fence"] if reach.disproves_by_fence(contract) else []),
        *(["a look"] if reach.disproves_by_look(contract) else []),
    ]
    yield "that it never happened", f"proven by {' or '.join(ways)}" if ways else "never proven"
    if contract.follows:
        within = (
            "" if isinstance(contract.follow_seconds, str) else f", for at most {duration(contract.follow_seconds)}"
        )
        yield "what is accepted", f"followed by looks to its end{within}; then a person is asked"
    yield "undone by", contract.compensation


def _protects(contract: Contract) -> str:
    """For how long the same key may go again, and what a deployment must say for it."""
    retention = contract.protection.retention_seconds
    if isinstance(retention, str):
        return "while the key protects"
    if retention < RETENTION_SECONDS_MIN:
        return f"while the key protects, where a longest_delivery is assumed: it is kept for {lasts(contract)} only"
    return (
        f"while the key protects, within {duration(retention / RETENTION_SHARE)} unless a longest_delivery is assumed"
    )


def _reads(budget: ReadBudget) -> str:
    """How often a worker looks for one operation, and what all of them share."""
    apart = f", then {duration(budget.spacing_seconds)} apart" if budget.looks_max > 1 else ""
    said = f"at most {budget.looks_max}, the first after {duration(budget.first_after_seconds)}{apart}"
    shared = budget.provider
    if isinstance(shared, ProviderBudget):
        said += f"; all of an account together {shared.looks} in {duration(shared.per_seconds)}"
    return said


def weakest(contract: Contract) -> str:
    """The least sure confidence that any clause rests on."""
    order = ["measured", "documented", "source_code", "inferred", "unknown"]
    found = [contract.sources[said.source].confidence.value for said in clauses(contract)]
    return max(found, key=order.index)


def counts(catalogue: Sequence[Contract]) -> dict[str, Any]:
    """What there is in all: the laboratory's own, and the one for plain functions, are no provider's."""
    providers = [c for c in catalogue if c.group is not Group.LABORATORY and c.request is not None]
    return {
        "contracts": len(providers),
        "groups": dict(sorted(Counter(c.group.value for c in providers).items())),
        "key_retention_mismatch": sum(map(reach.documented, providers)),
        "found_by_look": sum(map(reach.finds_at_all, providers)),
        "found_by_known_look": sum(map(reach.finds, providers)),
        "repeated": sum(map(reach.repeats, providers)),
        "fence_or_absence": sum(map(reach.disproves, providers)),
        "laboratory": len(catalogue) - len(providers),
    }
