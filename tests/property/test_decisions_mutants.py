"""The machine has teeth: where a rule is off, the shortest way to what it prevents breaks what holds after a step."""

from __future__ import annotations

import sys

import pytest
from tests.property.decisions_model import Variant
from tests.property.decisions_world import ACTOR
from tests.property.test_decisions_machine import Decisions

from counterfoil.domain.words import Basis
from counterfoil.lab.sabotage import MUTANTS
from counterfoil.runtime.executor import Executor

ONE = Variant("one person", people=1)
OTHER = Variant("one of two", people=1, approvers=frozenset({"user:ada", "user:ben"}))
OVERRIDE = Basis.OPERATOR_OVERRIDE
LOST, DONE = ("call", "request_lost"), ("call", "answered")


def bound(machine):
    machine.approve(0, ["user:ada"], 0, [])
    machine.adopt(OTHER, 0, [DONE])


def ended(machine):
    machine.approve(0, ["user:ada"], 0, [])
    machine.clock(3, 0, [DONE])


def requester(machine):
    machine.approve(0, [ACTOR], 0, [DONE])


def abandoned(machine):
    machine.approve(0, ["user:ada"], 0, [LOST])
    machine.decide("override", machine.one(0).id, "user:ada")
    machine.end(0, ["user:ben"], 0, "abandon", [(OVERRIDE, "answered")])


def reused(machine):
    machine.approve(0, ["user:ada"], 0, [LOST])
    machine.decide("override", machine.one(0).id, "user:ada")
    machine.try_to_send("first", [(OVERRIDE, "request_lost"), (OVERRIDE, "answered")])


def repeated(machine):
    machine.approve(0, ["user:ada"], 0, [LOST])


SEQUENCES = {
    "approval_not_bound": bound,
    "expiry_ignored": ended,
    "approver_is_requester": requester,
    "abandon_does_not_block": abandoned,
    "override_reusable": reused,
    "retry_on_timeout": repeated,
}
"""By mutant; `approval_before_claim` needs two at once, which the laboratory's cases have."""
REPLACED_IN = ("counterfoil.domain.", "counterfoil.plans.")
"""Where mutants replace things, beside the executor."""


def kept(monkeypatch):
    """Have everything that a mutant may replace put back after the test."""
    places = [module for name, module in sys.modules.items() if name.startswith(REPLACED_IN)]
    for place in (*places, Executor):
        for name, value in list(vars(place).items()):
            if not name.startswith("__"):
                monkeypatch.setattr(place, name, value)


def walk(sequence):
    """Ask, go one way, and see whether everything holds."""
    machine = Decisions()
    try:
        machine.begin("lab.lookup", ONE, "answered")
        sequence(machine)
        machine.nothing_went_without_authority()
        machine.every_record_holds()
    finally:
        machine.teardown()


@pytest.mark.parametrize("mutant", SEQUENCES)
def test_the_machine_sees_a_rule_that_is_off(monkeypatch, mutant):
    """Each sequence is sound under the rule and is not without it: luck has no part in it."""
    walk(SEQUENCES[mutant])
    kept(monkeypatch)
    MUTANTS[mutant]()
    with pytest.raises(AssertionError):
        walk(SEQUENCES[mutant])
    monkeypatch.undo()
    walk(SEQUENCES[mutant])  # and the rule is on again: no other test may meet the mutant
