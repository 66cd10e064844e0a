"""Policies as data: the first rule that speaks of an operation decides alone, and nothing passes silently."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from counterfoil.domain import policy as model
from counterfoil.domain.action import Consequence
from counterfoil.domain.errors import NotDeclared
from counterfoil.domain.event import Decided, encode
from counterfoil.domain.policy import Escalation, OnRecord, Otherwise, Override, Policy, Retention, Rule, When
from counterfoil.domain.policy_chain import audit_policies, link
from counterfoil.domain.terms import Breaker, OneShot, Required, Terms

TWO = Required(people=2, approvers=("dana", "mara", "jo"))
LARGE = Rule(name="large", when=When(actions=("refund*",), above=500.0), approval=TWO, one_shot=OneShot.YES)
SMALL = Rule(name="small", when=When(actions=("refund*",)), approval=None)
NO = Rule(name="no", when=When(actions=("payroll.*",)), approval=None, refuse="not here")
SHOP = Policy(name="shop", rules=(LARGE, SMALL, NO), otherwise=Otherwise.REFUSE)


def ask(policy, action="refund", *, value=1.0, declared=True, tenant="default", account="acct", consequence="some"):
    """What a policy says of one operation."""
    return model.terms_of(
        policy, 7, tenant=tenant, action=action, account=account, value=value, value_declared=declared,
        consequence=Consequence(consequence),
    )  # fmt: skip


def make(*rules, otherwise=Otherwise.ALLOW, **fields):
    """A policy of these rules."""
    return Policy(name="p", rules=rules, otherwise=otherwise, **fields)


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "rule"), [(499.0, "small"), (500.0, "small"), (500.01, "large"), (1e300, "large")])
def test_the_first_rule_that_speaks_of_it_decides(value, rule):
    """An amount is above a limit only when it is greater; the rule after that is then asked."""
    terms = ask(SHOP, value=value)
    assert (terms.rule, terms.policy, terms.digest) == (rule, 7, model.digest(SHOP))
    assert terms.required == (TWO if rule == "large" else None)
    assert terms.one_shot is (OneShot.YES if rule == "large" else OneShot.NO)
    assert terms.refused == ""


def test_a_rule_that_comes_first_decides_even_where_a_later_one_is_stricter():
    """The order is the author's: nothing is merged."""
    assert ask(make(SMALL, LARGE), value=9_000.0).rule == "small"
    assert ask(make(LARGE, SMALL), value=9_000.0).rule == "large"


@pytest.mark.parametrize(
    ("when", "speaks"),
    [
        (When(), True),
        (When(tenants=("shop",)), True),
        (When(tenants=("other",)), False),
        (When(actions=("pay", "refund")), True),
        (When(actions=("pay",)), False),
        (When(accounts=("acct_*",)), True),
        (When(accounts=("acct",)), False),
    ],
)
def test_tenant_action_and_account_must_all_match(when, speaks):
    """A rule speaks of an operation only where each of its lists does."""
    policy = make(Rule(name="r", when=when, approval=None))
    assert ask(policy, tenant="shop", account="acct_1").rule == ("r" if speaks else "")


def test_a_refusal_says_why():
    """The rule's own words are the reason."""
    terms = ask(SHOP, "payroll.run")
    assert (terms.rule, terms.refused, terms.required) == ("no", "not here", None)


def test_what_no_rule_speaks_of_is_as_otherwise_says():
    """There is no default: allow passes, refuse says so."""
    assert ask(make(LARGE), "other") == Terms(policy=7, digest=model.digest(make(LARGE)))
    refused = ask(SHOP, "other")
    assert (refused.rule, refused.refused) == ("", "no rule of policy 'shop' allows it")


def test_an_amount_that_nobody_declared_is_never_small():
    """A rule with an amount meets an action without one: an error that names both, and no silent pass."""
    with pytest.raises(NotDeclared, match=r"'refund' declares no value at risk: rule 'large' of policy 'shop'.*500"):
        ask(SHOP, declared=False)
    assert ask(make(SMALL, LARGE), declared=False).rule == "small"
    assert ask(SHOP, "payroll.run", declared=False).rule == "no"


def test_a_value_that_is_no_number_is_above_every_limit():
    """What cannot be compared is not known to be small."""
    assert ask(SHOP, value=float("nan")).rule == "large"


# -- no consequence ----------------------------------------------------------------------------------------------------


def test_without_consequence_it_passes_without_ceremony():
    """No approval, no breaker, no one-shot and no `otherwise`; nothing is at risk, so that no amount is asked for."""
    breaker = Breaker(name="b", unknown_exposure_max=1.0)
    policy = msgspec.structs.replace(SHOP, breakers=(breaker,))
    for action in ("refund", "other"):
        terms = ask(policy, action, declared=False, consequence="none")
        assert terms == Terms(policy=7, digest=model.digest(policy)), action
    assert ask(policy).breaker == breaker


def test_a_named_refusal_holds_for_a_read_too():
    """Who writes that something is refused means it."""
    assert ask(SHOP, "payroll.show", consequence="none").refused == "not here"
    above = make(msgspec.structs.replace(NO, when=When(above=1.0)))
    assert ask(above, consequence="none", value=5.0).refused == ""


# -- overrides ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "declared", "people"), [(100.0, True, 1), (100.5, True, 3), (1.0, False, 3), (float("nan"), True, 3)]
)
def test_more_people_override_above_an_amount(value, declared, people):
    """Above it, and where no amount is declared, the larger number is asked."""
    override = Override(people=1, above=100.0, people_above=3, approvers=("dana",))
    terms = ask(make(override=override), value=value, declared=declared)
    assert (terms.override_people, terms.override_by) == (people, ("dana",))


def test_without_an_amount_the_number_is_the_same_for_all():
    """`people_above` says nothing alone."""
    assert ask(make(override=Override(people=2)), value=1e9).override_people == 2
    assert ask(make(), declared=False).override_people == 1


# -- what depends on the value -----------------------------------------------------------------------------------------


def test_terms_depend_on_the_value_only_where_an_amount_is_named():
    """The amounts of the rules that speak of an action, and the override's, in order and each once."""
    where = {"tenant": "default", "action": "refund", "account": "acct"}
    assert model.depends_on_value(SHOP, **where)
    assert not model.depends_on_value(SHOP, **{**where, "action": "payroll.run"})
    policy = make(LARGE, msgspec.structs.replace(LARGE, when=When(above=20.0)), override=Override(above=500.0))
    assert model.thresholds(policy, **where) == (20.0, 500.0)
    assert model.thresholds(make(SMALL), **where) == ()
    assert model.depends_on_value(make(SMALL, override=Override(above=3.0)), **where)


# -- breakers, escalation, retention -----------------------------------------------------------------------------------


def test_the_first_breaker_that_counts_it_is_the_one():
    """By action and account; none stops what none counts."""
    one = Breaker(name="one", actions=("refund*",), accounts=("a",), unknown_exposure_max=1.0)
    two = Breaker(name="two", actions=("refund*",), unknown_exposure_max=2.0)
    policy = make(breakers=(one, two))
    assert model.breaker_of(policy, "refund", "a") == one
    assert model.breaker_of(policy, "refund", "b") == two
    assert model.breaker_of(policy, "pay", "a") is None


def test_escalation_has_a_documented_default():
    """Four hours and again, to nobody named, with and without a policy; else the first that speaks of it."""
    default = Escalation(after_seconds=4 * 3600.0, repeat_seconds=4 * 3600.0, to="")
    one = Escalation(actions=("refund*",), accounts=("a",), after_seconds=60.0, to="oncall")
    policy = make(escalation=(one, Escalation(actions=("refund*",), to="later")))
    assert model.escalation_of(None, "refund", "a") == default
    assert model.escalation_of(policy, "pay", "a") == default
    assert model.escalation_of(policy, "refund", "a") == one
    assert model.escalation_of(policy, "refund", "b").to == "later"


def test_retention_is_by_class_and_nothing_is_implied():
    """A class nobody decided about is kept."""
    kept = Retention(sensitivity="personal", bodies_seconds=1.0)
    policy = make(retention=(kept,))
    assert model.retention_of(policy, "personal") == kept
    assert model.retention_of(policy, "public") is None
    assert model.retention_of(None, "personal") is None


# -- patterns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("refund", "refund", True),
        ("refund", "refund2", False),
        ("", "", True),
        ("", "x", False),
        ("*", "", True),
        ("*", "anything\n", True),
        ("refund*", "refund", True),
        ("refund*", "a.refund", False),
        ("*refund", "a.refund", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c", False),
        ("a*b*b*c", "a-b-c", False),
        ("a**c", "ac", True),
        ("REFUND", "refund", False),
        (".", "x", False),
    ],
)
def test_a_star_is_any_run_of_characters(pattern, text, expected):
    """Nothing else is special: no dot, no case, no class."""
    assert model.matches(pattern, text) is expected


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (("*",), ("a", "b*"), True),
        (("a*",), ("ab*",), True),
        (("ab*",), ("a*",), False),
        (("a*", "b*"), ("ax", "b"), True),
        (("a",), ("a", "b"), False),
        (("*a*",), ("xa*",), True),
    ],
)
def test_a_pattern_covers_another(wide, narrow, expected):
    """A star is covered by a star only."""
    assert model.covers(wide, narrow) is expected


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (When(), When(actions=("a",), above=5.0), True),
        (When(above=5.0), When(above=5.0), True),
        (When(above=5.0), When(above=6.0), True),
        (When(above=6.0), When(above=5.0), False),
        (When(above=5.0), When(), False),
        (When(tenants=("x",)), When(), False),
        (When(actions=("x",)), When(), False),
        (When(accounts=("x",)), When(), False),
    ],
)
def test_a_rule_is_shadowed_by_one_that_says_all_of_it_before(earlier, later, expected):
    """Tenants, actions, accounts and the amount: a later rule that adds nothing is never reached."""
    assert model.shadows(earlier, later) is expected


# -- the stored form ---------------------------------------------------------------------------------------------------


def test_a_policy_survives_its_stored_form():
    """What is read is what was written, word for word; the digest names exactly these bytes."""
    policy = msgspec.structs.replace(
        SHOP, override=Override(above=5.0), breakers=(Breaker(name="b", unknown_exposure_max=9.0),),
        escalation=(Escalation(to="x"),), retention=(Retention(sensitivity="s", receipts_seconds=1.0),),
    )  # fmt: skip
    stored = model.encode(policy)
    assert model.decode(stored) == policy
    assert model.digest(policy) == "pl1:" + hashlib.sha256(stored).hexdigest()


def test_every_change_has_another_digest():
    """Each field counts, the order of the rules too."""
    changed = [
        msgspec.structs.replace(SHOP, name="other"),
        msgspec.structs.replace(SHOP, otherwise=Otherwise.ALLOW),
        msgspec.structs.replace(SHOP, rules=(SMALL, LARGE, NO)),
        msgspec.structs.replace(SHOP, override=Override(people=2)),
    ]
    assert len({model.digest(policy) for policy in [SHOP, *changed]}) == 5


def test_what_this_version_does_not_know_is_not_read():
    """A field of newer code is never ignored."""
    newer = msgspec.json.decode(model.encode(SHOP)) | {"more": 1}
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        model.decode(msgspec.json.encode(newer))


# -- the chain ---------------------------------------------------------------------------------------------------------


def chained(*policies):
    """Policies as they stand on record, one after the other."""
    rows, head = [], b""
    for n, policy in enumerate(policies, start=1):
        named = model.digest(policy)
        record = encode(Decided(decision="change_policy", by="dana", facts={"digest": named}))
        head = link(head, n, float(n), record)
        rows.append(OnRecord(n=n, digest=named, at=float(n), record=record, policy=model.encode(policy), hash=head))
    return rows


def laws(rows):
    """What is wrong, by policy and law."""
    return [(found.operation, found.law.value) for found in audit_policies(rows)]


def test_an_honest_chain_is_whole():
    """None, one or two: nothing is wrong."""
    for count in range(3):
        assert laws(chained(*[SHOP, make(SMALL)][:count])) == []


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("at", 2.5, ("policy 2", "chain")),
        ("hash", b"x", ("policy 2", "chain")),
        ("record", b"{}", ("policy 2", "record")),
        ("policy", b"{}", ("policy 2", "record")),
        ("policy", model.encode(SHOP), ("policy 2", "chain")),
        ("digest", "pl1:0", ("policy 2", "chain")),
        ("n", 3, ("policy 3", "chain")),
    ],
)
def test_an_edit_without_recomputation_is_found(field, value, expected):
    """Moment, hash, record, content, digest and number: each is covered."""
    rows = chained(make(LARGE), make(SMALL))
    rows[1] = msgspec.structs.replace(rows[1], **{field: value})
    assert expected in laws(rows)


def test_a_policy_that_was_taken_out_is_missed():
    """The next one does not follow the one before."""
    assert laws(chained(SHOP, make(SMALL), make(LARGE))[1:])[0] == ("policy 2", "chain")
