"""Policies: which actions, accounts and amounts need whose approval, as data that one pure function reads.

A pattern is plain text in which `*` stands for any run of characters; it means the same here and in SQLite's GLOB.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

from counterfoil.domain.action import Consequence
from counterfoil.domain.errors import NotDeclared
from counterfoil.domain.terms import Breaker, OneShot, Required, Terms

DIGEST_PREFIX = "pl1:"
ESCALATION_SECONDS = 4 * 3600.0
"""Where no policy says when: twice in a working day, so that nobody finds it only tomorrow."""
FOREIGN = frozenset("?[]")
"""GLOB gives them a meaning of their own; a pattern that holds one would not mean here what it means in SQL."""


class Otherwise(StrEnum):
    """What holds for an operation that no rule speaks of."""

    ALLOW = "allow"
    REFUSE = "refuse"


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which operations a rule speaks of: all of these must match."""

    tenants: tuple[str, ...] = ("*",)
    actions: tuple[str, ...] = ("*",)
    accounts: tuple[str, ...] = ("*",)
    above: float | None = None
    """Only a value at risk greater than this; None: whatever is at risk."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for the operations it speaks of; the first rule that does decides alone."""

    name: str
    when: When
    approval: Required | None
    """None: it may go without one."""
    refuse: str = ""
    """Why it may not go at all; empty: it may."""
    one_shot: OneShot = OneShot.NO


class Override(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may decide that something is sent again, or beside an unresolved one, against the evidence."""

    people: int = 1
    above: float | None = None
    """From a value at risk greater than this on, `people_above` are asked; where none is declared, always."""
    people_above: int = 2
    approvers: tuple[str, ...] = ()
    """By name; empty: anybody but the requester."""


class Escalation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who hears of an unresolved operation that nobody has settled, and when."""

    actions: tuple[str, ...] = ("*",)
    accounts: tuple[str, ...] = ("*",)
    after_seconds: float = ESCALATION_SECONDS
    repeat_seconds: float = ESCALATION_SECONDS
    to: str = ""
    """Where it is said, in the deployment's own words; empty: only on record."""
    business_owner: str = ""


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long what is resolved is kept, by sensitivity class; None: for ever."""

    sensitivity: str
    bodies_seconds: float | None = None
    receipts_seconds: float | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a deployment decided about its operations beforehand."""

    name: str
    rules: tuple[Rule, ...]
    otherwise: Otherwise
    override: Override = Override()
    breakers: tuple[Breaker, ...] = ()
    escalation: tuple[Escalation, ...] = ()
    retention: tuple[Retention, ...] = ()


class OnRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One policy as the store keeps it, with the decision that put it in force."""

    n: int
    digest: str
    at: float
    record: bytes
    """The encoded `Decided`: hashed, and names the digest of `policy`."""
    policy: bytes
    hash: bytes


DEFAULT_ESCALATION = Escalation()
"""Four hours, then every four hours, to nobody in particular."""

encode = msgspec.json.Encoder(order="deterministic").encode
"""The form the store keeps and the digest covers: defaults are written out, so that a later default changes nothing."""

_policy = msgspec.json.Decoder(Policy)


def decode(stored: bytes) -> Policy:
    """Read the form the store keeps; raises `msgspec.MsgspecError` for anything else, unknown fields included."""
    return _policy.decode(stored)


def digest_of(stored: bytes) -> str:
    """Name a policy by the form the store keeps of it."""
    return DIGEST_PREFIX + hashlib.sha256(stored).hexdigest()


def digest(policy: Policy) -> str:
    """Name a policy by its content: the same rules in the same order have the same name."""
    return digest_of(encode(policy))


# -- patterns ----------------------------------------------------------------------------------------------------------


def matches(pattern: str, text: str) -> bool:
    """Whether a text is one the pattern means, exactly as SQLite's `text GLOB pattern` says."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    *middle, last = rest
    at, end = len(first), len(text) - len(last)
    if end < at or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def any_matches(patterns: tuple[str, ...], text: str) -> bool:
    """Whether one of the patterns means the text."""
    return any(matches(pattern, text) for pattern in patterns)


def covers(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    """Whether each narrow pattern is one that a single wide pattern means whole.

    A star of the narrow one is a character that only a star of the wide one takes.
    """
    return all(any_matches(wide, pattern) for pattern in narrow)


def shadows(earlier: When, later: When) -> bool:
    """Whether whatever `later` speaks of is spoken of by `earlier` before it: then `later` is never reached."""
    sooner = earlier.above is None or (later.above is not None and earlier.above <= later.above)
    return (
        sooner
        and covers(earlier.tenants, later.tenants)
        and covers(earlier.actions, later.actions)
        and covers(earlier.accounts, later.accounts)
    )


# -- what it asks of one operation -------------------------------------------------------------------------------------


def terms_of(  # noqa: PLR0913 - an operation is known by this much, before it is one
    policy: Policy,
    n: int,
    *,
    tenant: str,
    action: str,
    account: str,
    value: float,
    value_declared: bool,
    consequence: Consequence,
) -> Terms:
    """Say what the policy asks of one operation: the first rule that speaks of it decides alone.

    An action without consequence passes without ceremony: no approval, no breaker, whatever `otherwise` says. Only a
    rule that refuses refuses it too, and nothing is at risk in it, so that no rule with `above` speaks of it.

    Args:
        policy: the one in force.
        n: its number in the store.
        tenant: whose effect it is.
        action: its name.
        account: at whom.
        value: what is at risk.
        value_declared: the action says so itself.
        consequence: whether anything outside changes.

    Raises:
        NotDeclared: the rule to decide speaks of an amount, and the action declares none.
    """
    harmless = consequence is Consequence.NONE
    rule = _rule(policy, (tenant, action, account), value if value_declared else None, harmless=harmless)
    override = policy.override
    terms = Terms(
        policy=n,
        digest=digest(policy),
        override_people=_override_people(override, value, declared=value_declared),
        override_by=override.approvers,
    )
    if harmless:
        named = rule is not None and bool(rule.refuse)
        return _said(terms, rule) if rule and named else terms
    terms = msgspec.structs.replace(terms, breaker=breaker_of(policy, action, account))
    if rule is not None:
        return _said(terms, rule)
    if policy.otherwise is Otherwise.ALLOW:
        return terms
    return msgspec.structs.replace(terms, refused=f"no rule of policy {policy.name!r} allows it")


def _said(terms: Terms, rule: Rule) -> Terms:
    return msgspec.structs.replace(
        terms, rule=rule.name, refused=rule.refuse, required=rule.approval, one_shot=rule.one_shot
    )


def _rule(policy: Policy, asked: tuple[str, str, str], value: float | None, *, harmless: bool) -> Rule | None:
    for rule in policy.rules:
        if not _speaks_of(rule.when, *asked):
            continue
        above = rule.when.above
        if above is None:
            return rule
        if harmless:
            continue
        if value is None:
            raise NotDeclared(
                asked[1],
                missing="value at risk",
                why=f"rule {rule.name!r} of policy {policy.name!r} speaks of values above {above:g}; declare value=...",
            )
        if not value <= above:  # written so that NaN is spoken of
            return rule
    return None


def _speaks_of(when: When, tenant: str, action: str, account: str) -> bool:
    return (
        any_matches(when.actions, action) and any_matches(when.accounts, account) and any_matches(when.tenants, tenant)
    )


def _override_people(override: Override, value: float, *, declared: bool) -> int:
    """An amount nobody declared is not known to be small."""
    if override.above is None or (declared and value <= override.above):
        return override.people
    return override.people_above


def thresholds(policy: Policy, *, tenant: str, action: str, account: str) -> tuple[float, ...]:
    """The amounts at which the terms of an action's operations may change, smallest first; none: they are all alike."""
    found = {rule.when.above for rule in policy.rules if _speaks_of(rule.when, tenant, action, account)}
    return tuple(sorted(above for above in found | {policy.override.above} if above is not None))


def depends_on_value(policy: Policy, *, tenant: str, action: str, account: str) -> bool:
    """Whether two operations of one action may have different terms because of what is at risk in them."""
    return bool(thresholds(policy, tenant=tenant, action=action, account=account))


def breaker_of(policy: Policy, action: str, account: str) -> Breaker | None:
    """The first breaker that counts an action's operations; None: nothing stops them."""
    for breaker in policy.breakers:
        if any_matches(breaker.actions, action) and any_matches(breaker.accounts, account):
            return breaker
    return None


def escalation_of(policy: Policy | None, action: str, account: str) -> Escalation:
    """The first escalation that speaks of an operation, or the default: 4 h, repeated every 4 h, to nobody named."""
    for escalation in policy.escalation if policy else ():
        if any_matches(escalation.actions, action) and any_matches(escalation.accounts, account):
            return escalation
    return DEFAULT_ESCALATION


def retention_of(policy: Policy | None, sensitivity: str) -> Retention | None:
    """How long a sensitivity class is kept; None: nothing was decided, so everything is."""
    for retention in policy.retention if policy else ():
        if retention.sensitivity == sensitivity:
            return retention
    return None
