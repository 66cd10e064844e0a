"""When a rule is due, and which plans are refused."""

from __future__ import annotations

import pytest

from counterfoil.lab.faults import RULES_MAX, FaultPlan, PlanWrong, Vocabulary, parse

WORDS = Vocabulary(
    scope="route", scopes=frozenset({"a", "b"}), behaviours={"lose": "send", "slow": "send", "blind": "look"}
)


def won(plan, requests, *, occasion="send", scope="a"):
    """The behaviours that so many requests meet."""
    chosen = [plan.choose(occasion, scope) for _ in range(requests)]
    return [rule.behaviour if rule else None for rule in chosen]


@pytest.mark.parametrize(
    ("when", "due"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7]),
        ({"every": 3}, [3, 6]),
        ({"every": 1}, [1, 2, 3, 4, 5, 6, 7]),
        ({"nth": [1, 4]}, [1, 4]),
        ({"times": 2}, [1, 2]),
        ({"every": 2, "times": 2}, [2, 4]),
        ({"nth": [2, 3, 7], "times": 2}, [2, 3]),
        ({"probability": 0, "seed": 1}, []),
        ({"probability": 1, "seed": 1}, [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_a_rule_is_due_when_it_says(when, due):
    """`every`, `nth` and `probability` count requests, `times` counts wins."""
    met = won(FaultPlan(WORDS, [{"behaviour": "lose", **when}]), 7)
    assert [number for number, behaviour in enumerate(met, start=1) if behaviour] == due


def test_a_seed_repeats_a_run():
    """The same seed meets the same requests, another seed others, and a share near the probability."""
    rule = {"behaviour": "lose", "probability": 0.3}
    first, again = (won(FaultPlan(WORDS, [{**rule, "seed": 7}]), 1000) for _ in range(2))
    assert first == again
    assert first != won(FaultPlan(WORDS, [{**rule, "seed": 8}]), 1000)
    assert 200 < sum(1 for behaviour in first if behaviour) < 400


def test_the_first_rule_that_is_due_wins():
    """Order decides, every rule counts every request that applies to it, and only a win is a turn taken."""
    plan = FaultPlan(WORDS, [{"behaviour": "lose", "every": 2}, {"behaviour": "slow", "times": 2}])
    assert won(plan, 5) == ["slow", "lose", "slow", "lose", None]
    assert plan.counts() == [
        {"behaviour": "lose", "seen": 5, "won": 2},
        {"behaviour": "slow", "seen": 5, "won": 2},
    ]


def test_a_rule_applies_to_its_scope_and_occasion_only():
    """Other routes, and looks where the behaviour is one of sends, are not counted."""
    plan = FaultPlan(WORDS, [{"route": "a", "behaviour": "lose", "nth": [2]}])
    assert won(plan, 3, scope="b") == [None] * 3
    assert won(plan, 3, occasion="look") == [None] * 3
    assert won(plan, 3) == [None, "lose", None]


def test_a_new_plan_counts_from_zero():
    """Replacing a plan forgets the counts of the one before."""
    rules = [{"behaviour": "lose", "nth": [2]}]
    plan = FaultPlan(WORDS, rules)
    assert won(plan, 2) == [None, "lose"]
    assert plan.replace(rules) == 1
    assert won(plan, 2) == [None, "lose"]


@pytest.mark.parametrize(
    ("rules", "word"),
    [
        ({"behaviour": "lose"}, "list"),
        ("lose", "list"),
        (None, "list"),
        ([{"behaviour": "lose"}] * (RULES_MAX + 1), "at most"),
        (["lose"], "rule 1 is not an object"),
        ([{}], "names no behaviour"),
        ([{"behaviour": "lose"}, {"behaviour": "dance"}], "rule 2: 'behaviour' must be one of lose, slow, blind"),
        ([{"behaviour": ["lose"]}], "must be one of"),
        ([{"behaviour": "lose", "evry": 3}], "no field is called 'evry'"),
        ([{"behaviour": "lose", "method": "PUT"}], "no field is called 'method'"),
        ([{"behaviour": "lose", "scope": "a"}], "no field is called 'scope'"),
        ([{"behaviour": "lose", "route": "c"}], "one of *, a, b"),
        ([{"behaviour": "lose", "route": ["a"]}], "one of *, a, b"),
        ([{"behaviour": "lose", "every": 0}], "above zero"),
        ([{"behaviour": "lose", "every": -1}], "above zero"),
        ([{"behaviour": "lose", "every": True}], "above zero"),
        ([{"behaviour": "lose", "every": 1.5}], "above zero"),
        ([{"behaviour": "lose", "every": None}], "above zero"),
        ([{"behaviour": "lose", "nth": []}], "list of whole numbers"),
        ([{"behaviour": "lose", "nth": [0]}], "list of whole numbers"),
        ([{"behaviour": "lose", "nth": 3}], "list of whole numbers"),
        ([{"behaviour": "lose", "times": 0}], "above zero"),
        ([{"behaviour": "lose", "probability": 1.1, "seed": 1}], "from 0 to 1"),
        ([{"behaviour": "lose", "probability": float("nan"), "seed": 1}], "from 0 to 1"),
        ([{"behaviour": "lose", "probability": 0.5}], "needs a 'seed'"),
        ([{"behaviour": "lose", "seconds": -1}], "from 0 to 3600"),
        ([{"behaviour": "lose", "seconds": 3601}], "from 0 to 3600"),
        ([{"behaviour": "lose", "bytes": -1}], "whole number from 0"),
        ([{"behaviour": "lose", "every": 2, "nth": [1]}], "exclude each other"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused(rules, word):
    """The refusal names the rule and the field."""
    with pytest.raises(PlanWrong) as refused:
        parse(WORDS, rules)
    assert word in str(refused.value)


def test_a_rule_that_could_never_apply_is_refused():
    """A connection is spoilt before its method is known: a rule that names one would wait for ever."""
    words = Vocabulary(scope="method", behaviours={"refuse": "connection"}, unscoped=frozenset({"connection"}))
    assert parse(words, [{"method": "*", "behaviour": "refuse"}])
    with pytest.raises(PlanWrong, match="'refuse' shows before any method is known"):
        parse(words, [{"method": "PUT", "behaviour": "refuse"}])


def test_a_scope_without_a_list_takes_any_word():
    """Where any word may occur only its form is checked."""
    words = Vocabulary(scope="method", behaviours={"lose": "request"})
    assert parse(words, [{"method": "PUT", "behaviour": "lose"}])[0].scope == "PUT"
    with pytest.raises(PlanWrong):
        parse(words, [{"method": "", "behaviour": "lose"}])
