"""A policy in words: what a rule speaks of and asks for, what changed between two, and which action falls under which.

Plain text throughout, so that a terminal, a JSON document and a difference say the same.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from counterfoil.cli.marks import duration, figure
from counterfoil.domain import policy as model
from counterfoil.domain.action import Action, Consequence
from counterfoil.domain.errors import NotDeclared
from counterfoil.domain.policy import Override, Policy, Rule, When
from counterfoil.domain.terms import OneShot, Required, Terms

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

ANYTHING = ("*",)
NO_APPROVAL = "goes without approval"
WITHOUT_CEREMONY = "no consequence: passes"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One line that is in one of two policies only."""

    sign: str
    """`-` goes, `+` comes."""
    line: str


class Fall(msgspec.Struct, frozen=True, kw_only=True):
    """Under which rule one action falls, for one range of values at risk."""

    action: str
    account: str
    tenant: str
    value: str
    """`any`, or the range; `undeclared` where the action does not say."""
    rule: str
    """Empty: no rule speaks of it."""
    asks: str
    unmatched: bool = False
    """`otherwise` decides."""
    wrong: bool = False
    """Every call of it would be refused until it is mended."""


# -- sentences ---------------------------------------------------------------------------------------------------------


def speaks_of(when: When) -> str:
    """What a rule speaks of."""
    said = scope(when.actions, when.accounts)
    if when.tenants != ANYTHING:
        said += f" of {', '.join(when.tenants)}"
    return said if when.above is None else f"{said} above {figure(when.above)}"


def scope(actions: tuple[str, ...], accounts: tuple[str, ...]) -> str:
    """Actions, and the accounts they are at where those are named."""
    said = "anything" if "*" in actions else ", ".join(actions)
    return said if "*" in accounts else f"{said} at {', '.join(accounts)}"


def whose(required: Required | None) -> str:
    """Whose approval it is."""
    if required is None:
        return "nobody"
    return ", ".join(required.approvers) or "anybody but the requester"


def approval(required: Required | None) -> str:
    """Whose approval, and how many of them."""
    if required is None:
        return NO_APPROVAL
    if not required.approvers:
        return f"approval by {_people(required.people)}, not the requester"
    if len(required.approvers) == 1:
        return f"approval by {required.approvers[0]}"
    return f"approval by {required.people} of {', '.join(required.approvers)}"


def allows(required: Required) -> str:
    """What one approval allows."""
    uses = "" if required.uses == 1 else f", {required.uses} uses"
    return f"{', '.join(word.value for word in required.attempts)}{uses}"


def asks(terms: Terms) -> str:
    """What a policy asks of one operation."""
    if terms.refused:
        return f"refused: {terms.refused}"
    return approval(terms.required) + _finality(terms.one_shot)


def rule_line(rule: Rule) -> str:
    """One rule in one line."""
    said = f"rule {rule.name}: {speaks_of(rule.when)}"
    if rule.refuse:
        return f"{said} → refused: {rule.refuse}"
    if rule.approval is None:
        return f"{said} → {NO_APPROVAL}{_finality(rule.one_shot)}"
    within = f"within {duration(rule.approval.seconds)}, for {allows(rule.approval)}"
    return f"{said} → {approval(rule.approval)} {within}{_finality(rule.one_shot)}"


def override_line(override: Override) -> str:
    """Who may override."""
    people = f"{override.people} of {', '.join(override.approvers)}" if override.approvers else ""
    said = people or f"{_people(override.people)}, not the requester"
    return said if override.above is None else f"{said}; above {figure(override.above)}: {override.people_above}"


def besides(policy: Policy) -> Iterator[tuple[str, str]]:
    """Everything of a policy but its rules, as names with what they come to."""
    yield "otherwise", policy.otherwise.value
    yield "override", override_line(policy.override)
    for b in policy.breakers:
        limit = f"open from {figure(b.unknown_exposure_max)} unknown"
        yield f"breaker {b.name}", f"{scope(b.actions, b.accounts)}: {limit}"
    for e in policy.escalation:
        times = f"after {duration(e.after_seconds)}, then every {duration(e.repeat_seconds)}"
        to = f", to {e.to}" if e.to else ""
        owner = f", business owner {e.business_owner}" if e.business_owner else ""
        yield "escalation", f"{scope(e.actions, e.accounts)}: {times}{to}{owner}"
    for r in policy.retention:
        yield f"retention {r.sensitivity}", f"bodies {_kept(r.bodies_seconds)}, receipts {_kept(r.receipts_seconds)}"


def lines(policy: Policy) -> list[str]:
    """The whole policy, one line per thing it says."""
    said = [f"{name}: {text}" for name, text in besides(policy)]
    return [f"name: {policy.name}", *(rule_line(rule) for rule in policy.rules), *said]


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count} people"


def _finality(one_shot: OneShot) -> str:
    match one_shot:
        case OneShot.NO:
            return ""
        case OneShot.YES:
            return "; one-shot"
        case OneShot.ABSOLUTE:
            return "; absolute one-shot"


def _kept(seconds: float | None) -> str:
    return "for ever" if seconds is None else duration(seconds)


# -- differences -------------------------------------------------------------------------------------------------------


def changes(before: Policy | None, after: Policy) -> list[Change]:
    """What goes and what comes, in order; a rule that moved does both, because the first that speaks decides."""
    old, new = lines(before) if before else [], lines(after)
    found: list[Change] = []
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for word, i, i_end, j, j_end in matcher.get_opcodes():
        if word != "equal":
            found += [Change(sign="-", line=line) for line in old[i:i_end]]
            found += [Change(sign="+", line=line) for line in new[j:j_end]]
    return found


# -- which action falls under which rule -------------------------------------------------------------------------------


def falls(policy: Policy, ledger: Ledger) -> list[Fall]:
    """Under which rules the registered actions of a ledger fall, by name and then by value at risk."""
    found: list[Fall] = []
    for _, registered in sorted(ledger.registry.items()):
        declared = registered.declares_value
        found += _falls(policy, registered.action, declared=declared)
    return found


def _falls(policy: Policy, action: Action, *, declared: bool) -> list[Fall]:
    if action.consequence is Consequence.NONE or not declared:
        return [_fall(policy, action, None, declared=declared)]
    where = model.thresholds(policy, tenant=action.tenant, action=action.name, account=action.account)
    found: list[Fall] = []
    since: float | None = None
    for below, upto in itertools.pairwise((None, *where, None)):
        fall = _fall(policy, action, math.inf if upto is None else upto, declared=True)
        same = bool(found) and (found[-1].rule, found[-1].asks) == (fall.rule, fall.asks)
        since = since if same else below
        found[len(found) - same :] = [msgspec.structs.replace(fall, value=_range(since, upto))]
    return found


def _range(above: float | None, upto: float | None) -> str:
    if above is None:
        return "any" if upto is None else f"up to {figure(upto)}"
    return f"above {figure(above)}" if upto is None else f"above {figure(above)} to {figure(upto)}"


def _fall(policy: Policy, action: Action, value: float | None, *, declared: bool) -> Fall:
    harmless = action.consequence is Consequence.NONE
    fall = Fall(
        action=action.name, account=action.account, tenant=action.tenant, value="undeclared", rule="",
        asks="declares no value at risk, and a rule speaks of amounts: every call is refused", wrong=True,
    )  # fmt: skip
    try:
        terms = model.terms_of(
            policy, 0, tenant=action.tenant, action=action.name, account=action.account,
            value=1.0 if value is None else value, value_declared=declared, consequence=action.consequence,
        )  # fmt: skip
    except NotDeclared:
        return fall
    said = WITHOUT_CEREMONY if harmless and not terms.refused else asks(terms)
    unmatched = not terms.rule and not harmless
    return msgspec.structs.replace(fall, value="any", rule=terms.rule, asks=said, unmatched=unmatched, wrong=False)
