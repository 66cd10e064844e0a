"""The policy in force for one ledger: read once, kept by band of value, and never mistaken for none."""

from __future__ import annotations

import contextlib
import sqlite3

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain import policy
from counterfoil.domain.action import Action
from counterfoil.domain.command import Adopt
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import InvariantBroken, NotDeclared
from counterfoil.domain.policy import Otherwise, Override, Policy, Rule, When, digest, digest_of, encode
from counterfoil.domain.terms import NO_POLICY, Required
from counterfoil.runtime import policies
from counterfoil.runtime.governance import Governance
from counterfoil.store.sqlite import SqliteStore

LARGE = Rule(name="large", when=When(actions=("refund",), above=500.0), approval=Required())
SHOP = Policy(
    name="shop", rules=(LARGE,), otherwise=Otherwise.ALLOW, override=Override(people=1, above=1_000.0, people_above=2)
)
FREE = Policy(name="free", rules=(), otherwise=Otherwise.ALLOW)


def action(name="refund"):
    """A registered action's data."""
    return Action(
        name=name, effect=name, account="acct", contract=contracts.load("function.plain"), contract_digest="ct1:0"
    )  # fmt: skip


REFUND = action()


@pytest.fixture
def store(tmp_path):
    """A book of this test's own."""
    with contextlib.closing(SqliteStore(tmp_path / "receipts.db")) as opened:
        yield opened


def adopt(store, policy):
    """Put a policy in force."""
    seen, _ = policies.in_force(store)
    return policies.adopt(store, policy, Decider(by="dana", reason="r", how="test", seen=seen), replaces="")


def counted(monkeypatch):
    """How often a policy is really asked."""
    calls = []
    real = policy.terms_of
    monkeypatch.setattr(
        policy, "terms_of", lambda *given, **named: calls.append(named["value"]) or real(*given, **named)
    )
    return calls


def test_without_a_policy_nothing_is_asked(store):
    """One and the same terms for all, and the number 0."""
    governed = Governance(store)
    assert governed.terms(REFUND, 9e9, value_declared=False) is NO_POLICY
    assert (governed.number, governed.policy) == (0, None)


def test_terms_are_kept_where_nothing_depends_on_the_value(store, monkeypatch):
    """An action that no amount is named for is asked once, whatever its operations are worth."""
    adopt(store, msgspec.structs.replace(SHOP, override=Override()))
    calls, governed, other = counted(monkeypatch), Governance(store), action("other")
    assert len({id(governed.terms(other, float(value), value_declared=True)) for value in range(9)}) == 1
    assert calls == [0.0]


def test_terms_are_kept_between_two_amounts(store, monkeypatch):
    """Each band is asked once, a value on a limit belongs below it, and the rule is the right one for every value."""
    adopt(store, SHOP)
    calls, governed = counted(monkeypatch), Governance(store)
    expected = {1.0: ("", 1), 500.0: ("", 1), 500.5: ("large", 1), 1_000.0: ("large", 1), 1_000.5: ("large", 2)}
    for _ in range(2):
        for value, said in expected.items():
            terms = governed.terms(REFUND, value, value_declared=True)
            assert (terms.rule, terms.override_people, terms.policy) == (*said, 1), value
    assert calls == [1.0, 500.5, 1_000.5]


def test_what_is_no_number_is_judged_each_time_and_kept_for_none(store):
    """It is above every limit, before and after a small value."""
    adopt(store, SHOP)
    governed = Governance(store)
    for value, rule in ((float("nan"), "large"), (1.0, ""), (float("nan"), "large"), (1.0, "")):
        assert governed.terms(REFUND, value, value_declared=True).rule == rule


def test_an_undeclared_value_is_refused_each_time(store):
    """The error is not forgotten after the first call, nor by a call that declares one."""
    adopt(store, SHOP)
    governed = Governance(store)
    for _ in range(2):
        with pytest.raises(NotDeclared):
            governed.terms(REFUND, 1.0, value_declared=False)
        governed.terms(REFUND, 1.0, value_declared=True)


def test_what_a_policy_before_refused_is_judged_by_the_one_in_force(store):
    """No claim comes of an undeclared value, so that the refusal itself looks for another policy; none is one."""
    adopt(store, SHOP)
    governed = Governance(store)
    with pytest.raises(NotDeclared, match="'shop'"):
        governed.terms(REFUND, 1.0, value_declared=False)
    adopt(store, FREE)
    assert governed.terms(REFUND, 1.0, value_declared=False).policy == 2
    adopt(store, SHOP)
    governed.refresh()
    adopt(store, msgspec.structs.replace(SHOP, name="shut"))
    with pytest.raises(NotDeclared, match="'shut'"):
        governed.terms(REFUND, 1.0, value_declared=False)


def test_an_action_of_the_same_name_is_asked_anew(store):
    """What was kept belongs to the action it was asked for: another account is another question."""
    adopt(store, msgspec.structs.replace(SHOP, rules=(Rule(name="r", when=When(accounts=("acct",)), approval=None),)))
    governed = Governance(store)
    assert governed.terms(REFUND, 1.0, value_declared=True).rule == "r"
    elsewhere = msgspec.structs.replace(REFUND, account="other")
    assert governed.terms(elsewhere, 1.0, value_declared=True).rule == ""


def test_another_policy_is_seen_when_it_is_read_again(store):
    """Until then the one that was read stands; the store refuses a claim under it by its number."""
    governed = Governance(store)
    assert governed.number == 0
    adopt(store, SHOP)
    assert governed.terms(REFUND, 501.0, value_declared=True) is NO_POLICY
    assert governed.refresh() == 1
    terms = governed.terms(REFUND, 501.0, value_declared=True)
    assert (terms.rule, terms.digest) == ("large", digest(SHOP))
    adopt(store, FREE)
    assert governed.refresh() == 2
    assert (governed.policy, governed.terms(REFUND, 501.0, value_declared=True).rule) == (FREE, "")


def test_reading_again_keeps_what_still_holds(store, monkeypatch):
    """The same number is the same policy: nothing is asked twice."""
    adopt(store, SHOP)
    calls, governed = counted(monkeypatch), Governance(store)
    for _ in range(3):
        governed.terms(REFUND, 1.0, value_declared=True)
        governed.refresh()
    assert calls == [1.0]


def test_a_policy_that_cannot_be_read_is_never_none(store):
    """What newer code wrote is an error at every call: it never reads as a ledger without a policy."""
    stored = encode(FREE).replace(b'"name"', b'"more"')
    store.adopt(Adopt(seen=0, digest=digest_of(stored), policy=stored, record=b"{}"))
    governed = Governance(store)
    for _ in range(2):
        with pytest.raises(InvariantBroken, match="policy 1 cannot be read"):
            governed.terms(REFUND, 1.0, value_declared=True)


def test_the_one_before_stands_where_the_next_cannot_be_read(store, tmp_path):
    """Reading again says what is wrong, and leaves what was known."""
    adopt(store, SHOP)
    governed = Governance(store)
    assert governed.number == 1
    adopt(store, FREE)
    with contextlib.closing(sqlite3.connect(tmp_path / "receipts.db")) as db:
        db.execute("DROP TRIGGER policy_is_final")
        db.execute("UPDATE policy SET policy = X'7B7D' WHERE n = 2")
        db.commit()
    with pytest.raises(InvariantBroken, match="policy 2 is not the one"):
        governed.refresh()
    assert governed.number == 1
