"""What a person found out: evidence with their name on it, on what they saw, and once."""

from __future__ import annotations

from tests.crash.asking import MARA, faults
from tests.crash.stepping import NOON, claimed, draw, ends, observed, ruled

from counterfoil import contracts
from counterfoil.domain.care import assign
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.decision import Decider, changed_since
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Finding, Outcome, Source
from counterfoil.plans.finding import find

KEY = contracts.load("lab.key")
FOUND = Evidence(
    source=Source.OPERATOR, finding=Finding.SUCCEEDED, attempt=1, rule="operator", effect="pay",
    facts={"by": MARA, "seen": "statement of 3 March"},
)  # fmt: skip


def unknown():
    """One attempt of which nobody knows what became."""
    return observed(claimed(), Finding.UNKNOWN)


def finding(history, seen=None):
    """The plan, and what it wants written."""
    plan = find("op_1", FOUND, KEY, seen=history.operation.seq if seen is None else seen, draw=draw())
    amend = next(plan)
    assert isinstance(amend, Amend)
    return plan, amend


def test_a_finding_is_evidence():
    """It settles the outcome, names what was seen in a body of its own, and can be kept beside a store that is gone."""
    plan, amend = finding(unknown())
    after = ruled(unknown(), amend.rule, NOON + 5)
    assert ends(plan, Amended(history=after)) == ()
    assert (after.operation.outcome, after.operation.settled_by) == (Outcome.SUCCEEDED, "succeeded:operator")
    assert (after.events[-1].record, after.events[-1].body) == (amend.record, amend.body)
    assert b"statement of 3 March" in amend.body
    assert faults(after) == []


def test_a_finding_on_an_older_version_is_declined():
    """Something was written since: whoever found it looks at that first, and is told so."""
    stale = unknown()
    plan, amend = finding(stale)
    now = ruled(stale, assign(Decider(by=MARA, reason="hers", seen=2), "treasury"))
    refused = amend.rule(now, NOON + 5)
    assert refused.because == (changed_since(2, 3),)
    assert ends(plan, refused) == (changed_since(2, 3),)


def test_the_same_finding_twice_is_one():
    """Its answer was lost and it is written again: recorded is recorded, and no reason to decline."""
    plan, amend = finding(unknown())
    after = ruled(unknown(), amend.rule, NOON + 5)
    again = amend.rule(after, NOON + 6)
    assert isinstance(again, Declined)
    assert ends(plan, again) == ()
