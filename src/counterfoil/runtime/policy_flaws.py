"""What is wrong with a policy, whichever way it comes in: each flaw with its place, in the policy's own order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from counterfoil.contracts.document import Tokens
from counterfoil.domain import policy as model
from counterfoil.domain.person import deceptive, distinct, is_agent, same
from counterfoil.domain.policy import Policy, Rule
from counterfoil.domain.terms import Breaker, OneShot, Required
from counterfoil.domain.words import AttemptClass
from counterfoil.runtime.policy_entries import ApprovalEntry, Duration, PolicyFile, seconds

NAME_CHARS_MAX = 200
"""A name that is longer is a sentence."""
PATTERN_CHARS_MAX = 2_000
"""As long as what it is compared with may be."""
SECONDS_MAX = 100 * 365 * 86_400.0
"""A century: what is longer was meant to be something else."""
PEOPLE_MAX = 100
"""More people than ever agreed to one payment."""
USES_MAX = 100
"""More attempts than one answer of people was ever meant for."""
ENTRIES_MAX = 1_000
"""Of one list: more than anybody reads before adopting it, and few enough to compare each with each."""

REFUSES = "it refuses, and so takes neither approval nor one_shot"
_AFTER_A_SEND = (AttemptClass.SAME_KEY, AttemptClass.AFTER_ABSENCE, AttemptClass.OVERRIDE)
"""Attempts that follow one that may have left, and so has taken a use before them."""

Flaw = tuple[Tokens, str]


def unmade(file: PolicyFile) -> Iterator[Flaw]:
    """What keeps a policy from being made of a file, by the words of the file."""
    for i, rule in enumerate(file.rules):
        at = ("rules", str(i))
        if rule.refuse is not None:
            yield from _text((*at, "refuse"), rule.refuse, PATTERN_CHARS_MAX)
            if rule.approval is not None:
                yield at, REFUSES
        elif rule.approval is None:
            yield at, "says neither approval nor refuse; write `approval: none` where it may go without one"
        elif isinstance(rule.approval, ApprovalEntry):
            yield from _named((*at, "approval", "approvers"), rule.approval.approvers)
            yield from _readable((*at, "approval", "within"), rule.approval.within)
    yield from _named(("override", "approvers"), file.override.approvers)
    for i, entry in enumerate(file.escalation):
        yield from _readable(("escalation", str(i), "after"), entry.after)
        yield from _readable(("escalation", str(i), "repeat"), entry.repeat)
    for i, kept in enumerate(file.retention):
        yield from _readable(("retention", str(i), "bodies"), kept.bodies)
        yield from _readable(("retention", str(i), "receipts"), kept.receipts)


_GROUPS = ("group:", "team:", "role:")


def _groups(at: Tokens, approvers: Sequence[str]) -> Iterator[Flaw]:
    for i, name in enumerate(approvers):
        if name.startswith(_GROUPS):
            yield (
                (*at, str(i)),
                f"{name} is taken for one person's name: approvers are people, groups are not known here",
            )


def _named(at: Tokens, approvers: tuple[str, ...] | None) -> Iterator[Flaw]:
    if approvers == ():
        yield at, "names nobody; leave it out where anybody but the requester may"


def doubts(policy: Policy) -> Iterator[Flaw]:
    """What may be adopted, and could never do what was meant."""
    for i, rule in enumerate(policy.rules):
        asked = rule.approval
        yield from _groups(("rules", str(i), "approval", "approvers"), asked.approvers if asked else ())
        if asked is None or asked.uses > 1:
            continue
        for j, word in enumerate(asked.attempts):
            if word in _AFTER_A_SEND:
                at = ("rules", str(i), "approval", "attempts", str(j))
                yield at, f"{word.value} could never be used: the attempt before it has taken the one use"
    yield from _groups(("override", "approvers"), policy.override.approvers)


def flaws(policy: Policy) -> Iterator[Flaw]:
    """What must be mended before it can be adopted, by the fields of `Policy`."""
    yield from _name(("name",), policy.name)
    crowded = list(_crowded(policy))
    if crowded:  # nothing more: each entry is compared with every other
        yield from crowded
        return
    for i, rule in enumerate(policy.rules):
        yield from _rule(("rules", str(i)), rule)
    yield from _twice("rules", "name", [rule.name for rule in policy.rules])
    yield from _unreached(policy.rules)
    yield from _override(policy.override)
    yield from _breakers(policy.breakers)
    yield from _escalation(policy.escalation)
    yield from _retention(policy.retention)


def _crowded(policy: Policy) -> Iterator[Flaw]:
    for key in ("rules", "breakers", "escalation", "retention"):
        yield from _few((key,), getattr(policy, key))


def _few(at: Tokens, entries: Sequence[object]) -> Iterator[Flaw]:
    if len(entries) > ENTRIES_MAX:
        yield at, f"has {len(entries)} entries; at most {ENTRIES_MAX} are wanted"


def _rule(at: Tokens, rule: Rule) -> Iterator[Flaw]:
    yield from _name((*at, "name"), rule.name)
    for key in ("tenants", "actions", "accounts"):
        yield from _patterns((*at, "when", key), getattr(rule.when, key))
    if rule.when.above is not None:
        yield from _limit((*at, "when", "above"), rule.when.above)
    if rule.refuse:
        yield from _text((*at, "refuse"), rule.refuse, PATTERN_CHARS_MAX)
        if rule.approval is not None or rule.one_shot is not OneShot.NO:
            yield at, REFUSES
    elif rule.approval is not None:
        yield from _approval((*at, "approval"), rule.approval)


def _approval(at: Tokens, asked: Required) -> Iterator[Flaw]:
    yield from _approvers((*at, "approvers"), asked.approvers)
    yield from _people((*at, "people"), asked.people, asked.approvers)
    yield from _duration((*at, "seconds"), asked.seconds)
    if not 1 <= asked.uses <= USES_MAX:
        yield (*at, "uses"), f"is {asked.uses}; at least 1 attempt is wanted, and at most {USES_MAX}"
    if len(set(asked.attempts)) < len(asked.attempts):
        yield (*at, "attempts"), "names an attempt twice"
    if AttemptClass.FIRST not in asked.attempts:
        yield (*at, "attempts"), "does not hold first, so that nothing could ever be sent"


def _override(override: model.Override) -> Iterator[Flaw]:
    at: Tokens = ("override",)
    yield from _approvers((*at, "approvers"), override.approvers)
    yield from _people((*at, "people"), override.people, override.approvers)
    if override.above is None:
        if override.people_above != model.Override().people_above:
            yield (*at, "people_above"), "says nothing without above"
        return
    yield from _limit((*at, "above"), override.above)
    yield from _people((*at, "people_above"), override.people_above, override.approvers)
    if override.people_above < override.people:
        yield (*at, "people_above"), f"is fewer than the {override.people} asked below {override.above:g}"


def _breakers(breakers: tuple[Breaker, ...]) -> Iterator[Flaw]:
    for i, breaker in enumerate(breakers):
        at = ("breakers", str(i))
        yield from _name((*at, "name"), breaker.name)
        yield from _scope(at, breaker, breakers[:i])
        yield from _limit((*at, "unknown_exposure_max"), breaker.unknown_exposure_max)
    yield from _twice("breakers", "name", [breaker.name for breaker in breakers])


def _escalation(escalation: tuple[model.Escalation, ...]) -> Iterator[Flaw]:
    for i, entry in enumerate(escalation):
        at = ("escalation", str(i))
        yield from _scope(at, entry, escalation[:i])
        yield from _duration((*at, "after_seconds"), entry.after_seconds)
        yield from _duration((*at, "repeat_seconds"), entry.repeat_seconds)
        for key in ("to", "business_owner"):
            if getattr(entry, key):
                yield from _text((*at, key), getattr(entry, key), PATTERN_CHARS_MAX)


def _retention(retention: tuple[model.Retention, ...]) -> Iterator[Flaw]:
    for i, entry in enumerate(retention):
        at, bodies, receipts = ("retention", str(i)), entry.bodies_seconds, entry.receipts_seconds
        yield from _name((*at, "sensitivity"), entry.sensitivity)
        for key, kept in (("bodies_seconds", bodies), ("receipts_seconds", receipts)):
            if kept is not None:
                yield from _duration((*at, key), kept)
        if bodies is None and receipts is None:
            yield at, "says neither bodies nor receipts"
        if bodies is not None and receipts is not None and bodies > receipts:
            yield (*at, "bodies_seconds"), "are kept for longer than the receipts they belong to"
    yield from _twice("retention", "sensitivity", [entry.sensitivity for entry in retention])


def _scope(
    at: Tokens, entry: Breaker | model.Escalation, before: Sequence[Breaker | model.Escalation]
) -> Iterator[Flaw]:
    """What it speaks of, and that something of it is left by those before it: the first that matches decides."""
    yield from _patterns((*at, "actions"), entry.actions)
    yield from _patterns((*at, "accounts"), entry.accounts)
    for i, earlier in enumerate(before):
        if model.covers(earlier.actions, entry.actions) and model.covers(earlier.accounts, entry.accounts):
            yield at, f"is never reached: {at[0]}.{i} speaks of all of it before"
            return


def _unreached(rules: tuple[Rule, ...]) -> Iterator[Flaw]:
    for i, rule in enumerate(rules):
        earlier = next((other for other in rules[:i] if model.shadows(other.when, rule.when)), None)
        if earlier is not None:
            yield ("rules", str(i)), f"rule {rule.name!r} is never reached: rule {earlier.name!r} speaks of all of it"


def _twice(where: str, key: str, names: list[str]) -> Iterator[Flaw]:
    for i, name in enumerate(names):
        if name in names[:i]:
            yield (where, str(i), key), f"{name!r} stands twice (first at {where}.{names.index(name)})"


def _people(at: Tokens, people: int, approvers: tuple[str, ...]) -> Iterator[Flaw]:
    if not 1 <= people <= PEOPLE_MAX:
        yield at, f"is {people}; from 1 to {PEOPLE_MAX} people are wanted"
    elif approvers and people > len(distinct(approvers)):
        yield at, f"is {people}, and {len(distinct(approvers))} may approve: {', '.join(approvers)}"


def _approvers(at: Tokens, approvers: tuple[str, ...]) -> Iterator[Flaw]:
    yield from _few(at, approvers)
    for i, name in enumerate(approvers):
        yield from _name((*at, str(i)), name)
        if is_agent(name):
            yield (*at, str(i)), f"{name!r} is an agent, and an agent decides nothing"
        elif problem := deceptive(name):
            yield (*at, str(i)), f"{name!a} passes for another name: {problem}"
        for other in approvers[:i]:
            if name == other:
                yield (*at, str(i)), f"{name!r} stands twice"
            elif same(name, other):
                yield (*at, str(i)), f"{name!r} and {other!r} are one person"


def _patterns(at: Tokens, patterns: tuple[str, ...]) -> Iterator[Flaw]:
    if not patterns:
        yield at, "names nothing, so that nothing would match; leave it out where anything may"
    yield from _few(at, patterns)
    for i, pattern in enumerate(patterns):
        found = sorted(model.FOREIGN & set(pattern))
        if found:
            yield (
                (*at, str(i)),
                f"holds {' '.join(found)}; only * is special here, and stands for any run of characters",
            )
        yield from _text((*at, str(i)), pattern, PATTERN_CHARS_MAX)


def _name(at: Tokens, name: str) -> Iterator[Flaw]:
    return _text(at, name, NAME_CHARS_MAX)


def _text(at: Tokens, text: str, most: int) -> Iterator[Flaw]:
    if not 1 <= len(text) <= most or not text.isprintable() or text != text.strip():
        yield at, f"must be 1 to {most} characters that print, without blanks around them"


def _limit(at: Tokens, value: float) -> Iterator[Flaw]:
    if not 0 < value < float("inf"):
        yield at, f"is {value:g}; a limit is finite and greater than 0"


def _readable(at: Tokens, said: Duration | None) -> Iterator[Flaw]:
    if said is not None and seconds(said) is None:
        yield at, f"is {said!r}; a duration is like 90s, 15m, 24h or 30d, or a number of seconds"


def _duration(at: Tokens, found: float) -> Iterator[Flaw]:
    if not 0 < found <= SECONDS_MAX:  # written so that NaN is none
        yield at, f"is {found:g} s; a duration is greater than 0, and at most {SECONDS_MAX / 86_400:g}d"
