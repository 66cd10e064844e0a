"""Which request meets which fault: rules as data, counted the same way by the provider and by the proxy.

A plan is a JSON list of rules. A rule names a behaviour, what it applies to, and when it is due::

    [{"route": "key", "behaviour": "lose_reply", "every": 3},
     {"route": "*", "behaviour": "slow", "seconds": 0.2, "probability": 0.1, "seed": 7, "times": 5}]

Each rule counts the requests it applies to; the first rule that is due wins. Without `every`, `nth` or `probability`
a rule is always due.
"""

from __future__ import annotations

import argparse
import json
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RULES_MAX = 64
"""A plan is written by hand; more rules than this is a generated mistake."""

SECONDS_MAX = 3600.0
"""No laboratory run lasts an hour, so no fault needs to."""

BYTES_MAX = 1 << 30
"""Far above any message here: a cut after more bytes than this is never seen."""

ANY = "*"


class PlanWrong(ValueError):
    """The fault plan cannot be followed; the plan before it, if any, stays in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What one faulty thing can be told to do."""

    scope: str
    """The field that says what a rule applies to: `route` or `method`."""
    behaviours: Mapping[str, str]
    """Every behaviour, and the occasion on which it can show: `send`, `look`, `connection`, ..."""
    scopes: frozenset[str] | None = None
    """The words the scope may take besides `*`; None where any word may occur."""
    unscoped: frozenset[str] = frozenset()
    """Occasions that come before any scope is known: a rule for them cannot name one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One behaviour, what it applies to and when it is due."""

    behaviour: str
    scope: str = ANY
    every: int | None = None
    nth: frozenset[int] = frozenset()
    probability: float | None = None
    seed: int = 0
    times: int | None = None
    """How often it may win at most."""
    seconds: float | None = None
    """How long a delay or a held connection lasts; None leaves it to the behaviour."""
    bytes: int | None = None
    """After how many bytes a cut falls; None leaves it to the behaviour."""


@dataclass(slots=True)
class _Turns:
    """How often one rule was asked and how often it won."""

    rule: Rule
    seen: int = 0
    won: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.rule.seed)

    def due(self) -> bool:
        self.seen += 1
        rule = self.rule
        drawn = self.chance.random()  # drawn every time, so that a seed means the same requests whatever else happens
        if rule.times is not None and self.won >= rule.times:
            return False
        if rule.every is not None:
            return self.seen % rule.every == 0
        if rule.nth:
            return self.seen in rule.nth
        return rule.probability is None or drawn < rule.probability


class FaultPlan:
    """The rules in force and their counts; safe to ask from any thread."""

    def __init__(self, vocabulary: Vocabulary, rules: object = ()) -> None:
        self._vocabulary = vocabulary
        self._lock = threading.Lock()
        self._turns: list[_Turns] = []
        self.replace(rules)

    def replace(self, rules: object) -> int:
        """Put other rules in force, all counts at zero, and return how many there are.

        Raises:
            PlanWrong: a rule is malformed; nothing has changed.
        """
        turns = [_Turns(rule) for rule in parse(self._vocabulary, rules)]
        with self._lock:
            self._turns = turns
        return len(turns)

    def choose(self, occasion: str, scope: str) -> Rule | None:
        """Count one request with every rule that applies to it and return the first rule that is due."""
        with self._lock:
            asked = [turns for turns in self._turns if self._applies(turns.rule, occasion, scope)]
            due = [turns for turns in asked if turns.due()]
            if not due:
                return None
            due[0].won += 1
            return due[0].rule

    def counts(self) -> list[dict[str, Any]]:
        """Say how often each rule was asked and how often it won, in the order of the plan."""
        with self._lock:
            return [{"behaviour": t.rule.behaviour, "seen": t.seen, "won": t.won} for t in self._turns]

    def _applies(self, rule: Rule, occasion: str, scope: str) -> bool:
        return self._vocabulary.behaviours[rule.behaviour] == occasion and rule.scope in (ANY, scope)


def parse(vocabulary: Vocabulary, rules: object) -> list[Rule]:
    """Check a plan whole.

    Raises:
        PlanWrong: naming the rule and the field.
    """
    if not isinstance(rules, Sequence) or isinstance(rules, str) or len(rules) > RULES_MAX:
        raise PlanWrong(f"a plan is a list of at most {RULES_MAX} rules")
    return [_rule(vocabulary, number, fields) for number, fields in enumerate(rules, start=1)]


def _rule(vocabulary: Vocabulary, number: int, fields: object) -> Rule:
    if not isinstance(fields, Mapping):
        raise PlanWrong(f"rule {number} is not an object")
    checks = {**_FIELDS, "behaviour": _behaviour(vocabulary), vocabulary.scope: _scope(vocabulary)}
    for name, value in fields.items():
        if name not in checks:
            raise PlanWrong(f"rule {number}: no field is called {name!r}; known are {', '.join(sorted(checks))}")
        wanted, check = checks[name]
        if not check(value):
            raise PlanWrong(f"rule {number}: {name!r} must be {wanted}, not {value!r}")
    if "behaviour" not in fields:
        raise PlanWrong(f"rule {number} names no behaviour")
    if len({"every", "nth", "probability"} & set(fields)) > 1:
        raise PlanWrong(f"rule {number}: 'every', 'nth' and 'probability' exclude each other")
    if fields.get(vocabulary.scope, ANY) != ANY and vocabulary.behaviours[fields["behaviour"]] in vocabulary.unscoped:
        raise PlanWrong(f"rule {number}: {fields['behaviour']!r} shows before any {vocabulary.scope} is known")
    if "probability" in fields and "seed" not in fields:
        raise PlanWrong(f"rule {number}: a probability needs a 'seed', or no run could be repeated")
    known = {("scope" if name == vocabulary.scope else name): value for name, value in fields.items()}
    return Rule(**{**known, "nth": frozenset(known.get("nth", ()))})


def _whole(value: object, least: int, most: float = float("inf")) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _number(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


_FIELDS: Mapping[str, tuple[str, Callable[[Any], object]]] = {
    "every": ("a whole number above zero", lambda value: _whole(value, 1)),
    "nth": ("a list of whole numbers above zero", lambda v: isinstance(v, list) and all(_whole(n, 1) for n in v) and v),
    "probability": ("a number from 0 to 1", lambda value: _number(value, 1)),
    "seed": ("a whole number", lambda value: _whole(value, -(1 << 63), 1 << 63)),
    "times": ("a whole number above zero", lambda value: _whole(value, 1)),
    "seconds": (f"a number from 0 to {SECONDS_MAX:g}", lambda value: _number(value, SECONDS_MAX)),
    "bytes": (f"a whole number from 0 to {BYTES_MAX}", lambda value: _whole(value, 0, BYTES_MAX)),
}


def _behaviour(vocabulary: Vocabulary) -> tuple[str, Any]:
    names = vocabulary.behaviours
    return f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names


def _scope(vocabulary: Vocabulary) -> tuple[str, Any]:
    words = vocabulary.scopes
    if words is None:
        return "a word", lambda value: isinstance(value, str) and value
    return f"one of {', '.join([ANY, *sorted(words)])}", lambda value: isinstance(value, str) and value in {ANY, *words}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Let a command line take a plan: a file, single rules, or both."""
    parser.add_argument("--plan", type=Path, metavar="FILE", help="a JSON list of fault rules")
    parser.add_argument("--rule", action="append", default=[], metavar="JSON", help="one more fault rule (repeatable)")


def from_arguments(vocabulary: Vocabulary, arguments: argparse.Namespace) -> FaultPlan:
    """Build the plan that a command line asked for.

    Raises:
        PlanWrong: the file or a rule is not JSON, or not a rule.
        OSError: the file cannot be read.
    """
    try:
        listed = json.loads(arguments.plan.read_text("utf-8")) if arguments.plan else []
        single = [json.loads(rule) for rule in arguments.rule]
    except ValueError as wrong:
        raise PlanWrong(f"the fault plan is not JSON: {wrong}") from wrong
    if not isinstance(listed, list):
        raise PlanWrong("the fault plan is not a JSON list")
    return FaultPlan(vocabulary, [*listed, *single])
