"""No entry that takes `by` passes an agent, however its name is spelled: the entries are found, not listed."""

from __future__ import annotations

import inspect
from functools import partial

import pytest
from tests.cases.people import DANA, Tool, asks

import counterfoil
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import BadValue, NotDecided
from counterfoil.domain.policy import Otherwise, Policy, Rule, When
from counterfoil.domain.terms import Required
from counterfoil.runtime import policies
from counterfoil.runtime.decisions import Decisions
from counterfoil.runtime.feeding import Feeding
from counterfoil.runtime.ledger import Ledger

AGENTS = ("agent:q", "AGENT:q", "agent :q", "Agent: Q", "user:agent:q", "agent:q (uid 0)", "\u0430gent:q")
"""The last begins with a Cyrillic letter."""
SAID = {
    "basis": "not_sent", "channel": "support", "evidence": {"id": "x"}, "outcome": "rejected", "owner": "night shift",
    "reason": "it failed", "to": "lead", "until": 2e9, "content": b"{}", "status": 200, "layout": None,
}  # fmt: skip
"""What an entry needs beside the operation and whose word it is, by the name of the parameter."""


def entries():
    """Every public method of a ledger, of its decisions and of what is handed in to it, that takes `by`."""
    for where in OF:
        for name, method in inspect.getmembers(where, inspect.isfunction):
            if not name.startswith("_") and "by" in inspect.signature(method).parameters:
                yield where, name, method


@pytest.fixture
def ledger(tmp_path):
    """A book whose one operation is unknown."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:desk") as opened:
        yield opened


def test_every_entry_is_found():
    """What the next test is about is not empty, and holds the two that once let an agent in."""
    assert {name for _, name, _ in entries()} >= {
        "resolve",
        "attempt",
        "approve",
        "override",
        "erase",
        "retain",
        "webhook",
    }


OF = {Ledger: lambda book: book, Decisions: lambda book: book.decisions, Feeding: lambda book: book.evidence}
HOUSES = ("House", "user:house", " HOUSE (uid 0)")
"""`house` itself is what `retain` says where a policy decides, and nobody else's name."""


@pytest.mark.parametrize("agent", AGENTS + HOUSES)
@pytest.mark.parametrize("entry", list(entries()), ids=lambda entry: entry[1])
def test_neither_an_agent_nor_the_house_decides(ledger, entry, agent):
    """CF-109, and nothing is on record."""
    where, name, method = entry
    lost = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError()).call("o1")
    of = OF[where](ledger)
    needs = [
        p.name for p in inspect.signature(method).parameters.values()
        if p.default is p.empty and p.name not in ("self", "operation", "by")
    ]  # fmt: skip
    first = (lost.id,) if "operation" in inspect.signature(method).parameters else ()
    with pytest.raises(BadValue, match="by is ") as refused:
        getattr(of, name)(*first, by=agent, **{need: SAID[need] for need in needs})
    assert refused.value.code == "CF-109"
    assert ledger.get(lost.id).operation.seq == lost.operation.seq


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_adopts_no_policy(ledger, agent):
    """A policy is a person's too."""
    policy = policies.in_force(asks(ledger).store)[1]
    with pytest.raises(BadValue, match="by is "):
        policies.adopt(ledger.store, policy, Decider(by=agent, reason="r", seen=1), replaces="")
    assert ledger.store.policy()[0] == 1


def test_an_agents_ledger_names_a_person_for_another_attempt(ledger):
    """Without `by` it is the ledger's own actor that asks, and that is an agent."""
    lost = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError()).call("o1")
    with pytest.raises(BadValue, match="an agent decides nothing"):
        ledger.attempt(lost.id)


@pytest.mark.parametrize("again", ["dana", "user:dana", "Dana", " dana", "DANA (uid 7)"])
def test_one_person_counts_once(ledger, again):
    """Whatever the spelling, two people are two; what is recorded is the one form."""
    rule = Rule(name="ask", when=When(), approval=Required(people=2))
    both = Policy(name="two", rules=(rule,), otherwise=Otherwise.REFUSE)
    policies.adopt(ledger.store, both, Decider(by="lea", reason="r", seen=0), replaces="")
    pay = Tool(ledger, "pay")
    asked = pay.call("o1")
    ledger.decisions.approve(asked.id, **DANA)
    with pytest.raises(NotDecided, match="user:dana has approved it already"):
        ledger.decisions.approve(asked.id, by=again, reason="r")
    assert b'"by":"user:dana"' in ledger.history(asked.id).events[-1].record
    pay.call("o1")
    assert pay.calls == []


@pytest.mark.parametrize(("actor", "by"), [("user:bob", "bob"), ("bob", "USER: Bob"), ("user:Bob (uid 3)", " bob")])
def test_nobody_approves_their_own_request(tmp_path, actor, by):
    """Whatever the spelling."""
    with counterfoil.open(tmp_path / "own.db", actor=actor) as ledger:
        asked = Tool(asks(ledger), "pay").call("o1")
        with pytest.raises(NotDecided, match="user:bob asked for it"):
            ledger.decisions.approve(asked.id, by=by, reason="r")


@pytest.mark.parametrize("name", ["d\u0430na", "dana\u200b", "dan\u0251", "\uff44ana"])
def test_nobody_passes_for_another(ledger, tmp_path, name):
    """Neither as who decides, nor as who asks, nor as whose it is."""
    lost = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError()).call("o1")
    for refused in (
        partial(ledger.decisions.assign, lost.id, "lea", by=name, reason="r"),
        partial(ledger.decisions.assign, lost.id, name, by="lea", reason="r"),
        partial(counterfoil.open, tmp_path / "other.db", actor=name),
    ):
        with pytest.raises(BadValue):
            refused()
