"""Another process changes the policy: whoever runs already notices, also where no claim would tell them."""

from __future__ import annotations

import msgspec
import pytest
from tests.cases.people import HOUR, MARA, Tool, asks
from tests.cases.stage import later

import counterfoil
from counterfoil.domain.approval import decided_of
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import NotDecided, NotDeclared
from counterfoil.domain.event import EventKind
from counterfoil.domain.policy import Escalation, Otherwise, Policy, Rule, When
from counterfoil.domain.words import Outcome, Permission
from counterfoil.runtime import policies, queue
from counterfoil.runtime.worker import Worker

LARGE = Rule(name="large", when=When(above=100.0), approval=None, refuse="too much")
OF_AMOUNTS = Policy(name="amounts", rules=(LARGE,), otherwise=Otherwise.ALLOW)


@pytest.fixture
def path(tmp_path):
    """Where the receipts are."""
    return tmp_path / "receipts.db"


@pytest.fixture
def ledger(path):
    """The book of whoever runs already."""
    with counterfoil.open(path, actor="agent:desk") as opened:
        yield opened


@pytest.fixture
def other(path):
    """The book of whoever changes the policy: another connection, which shares nothing but the file."""
    with counterfoil.open(path, actor="agent:other") as opened:
        yield opened


def up(hours, to):
    """Pass what waits up after so long."""
    return (Escalation(after_seconds=hours * HOUR, repeat_seconds=hours * HOUR, to=to),)


def passed_up(ledger, operation):
    """To whom it was passed up so far."""
    said = (decided_of(e) for e in ledger.history(operation).events if e.kind is EventKind.DECIDED)
    return [d.facts["to"] for d in said if d.decision == "escalate"]


def test_another_time_of_escalation_holds_for_what_waits_already(ledger, other):
    """A sweep that has worked out when an operation is due works it out anew under another policy, sooner or later."""
    pay = Tool(asks(ledger, actions=("none",), escalation=up(10, "the lead")), "pay", TimeoutError())
    lost, worker = pay.call("o1"), Worker(ledger)
    worker.sweep()
    asks(other, actions=("none",), escalation=up(1, "the board"))
    later(ledger, 1.1 * HOUR)
    worker.sweep()
    assert passed_up(ledger, lost.id) == ["the board"]
    asks(other, actions=("none",), escalation=up(5, "the lead"))
    later(ledger, 3 * HOUR)
    worker.sweep()
    assert passed_up(ledger, lost.id) == ["the board"]
    later(ledger, 6.2 * HOUR)
    worker.sweep()
    assert passed_up(ledger, lost.id) == ["the board", "the lead"]


def adopt(ledger, policy):
    """Put a policy in force."""
    stands, before = policies.in_force(ledger.store)
    who = Decider(by="mara", reason="agreed", seen=stands)
    policies.adopt(ledger.store, policy, who, replaces=policies.model.digest(before) if before else "")


def test_what_the_policy_before_could_not_judge_goes_under_the_next(ledger, other):
    """A call whose amount nobody declared is refused under one that speaks of amounts, and no longer than that."""
    adopt(ledger, OF_AMOUNTS)
    pay = Tool(ledger)
    with pytest.raises(NotDeclared):
        pay.call("o1")
    asks(other, actions=("none",))
    assert pay.call("o1").outcome is Outcome.SUCCEEDED


def test_a_question_of_an_earlier_policy_is_not_answered_any_more(ledger, other):
    """Whoever approves is told at once that it counts no longer; the same call asks under the policy in force."""
    pay = Tool(asks(ledger))
    asked = pay.call("o1")
    adopt(other, msgspec.structs.replace(policies.in_force(ledger.store)[1], name="another"))
    with pytest.raises(NotDecided, match="in force no longer"):
        other.decisions.approve(asked.id, **MARA)
    (entry,), _ = queue.read(ledger)
    assert entry.stale
    assert pay.call("o1").permission is Permission.PENDING
    (entry,), _ = queue.read(ledger)
    assert not entry.stale
    other.decisions.approve(asked.id, **MARA)
    Worker(ledger).sweep()
    assert (ledger.get(asked.id).outcome, len(pay.calls)) == (Outcome.SUCCEEDED, 1)


def test_what_was_approved_before_is_not_stuck_behind_what_cannot_be_judged(ledger, other):
    """The worker, too, sends what it could not judge once it can; its own process was never started again."""
    pay = Tool(asks(ledger))
    asked = pay.call("o1")
    other.decisions.approve(asked.id, **MARA)
    adopt(other, OF_AMOUNTS)
    met = []
    worker = Worker(ledger, report=lambda _, what: met.append(type(what).__name__))
    worker.sweep()
    assert (met, pay.calls) == (["NotDeclared"], [])
    asks(other)
    later(ledger, 60.0)
    worker.sweep()
    assert (ledger.get(asked.id).outcome, len(pay.calls)) == (Outcome.SUCCEEDED, 1)
