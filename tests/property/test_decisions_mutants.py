"""The machine has teeth: where a rule is off, the shortest way to what it prevents breaks what holds after a step."""

from __future__ import annotations

import sys

import pytest
from tests.property.decisions_model import Variant
from tests.property.decisions_world import ACTOR
from tests.property.test_decisions_machine import Decisions

from counterfoil.domain import hold, override, rules
from counterfoil.domain.approval import decided_of
from counterfoil.domain.event import EventKind
from counterfoil.domain.words import Basis
from counterfoil.lab.sabotage import MUTANTS
from counterfoil.runtime.executor import Executor
from counterfoil.runtime.worker import Worker
from counterfoil.store import transaction

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


def walk(sequence, variant=ONE, fate="answered"):
    """Ask, go one way, and see whether everything holds."""
    machine = Decisions()
    try:
        machine.begin("lab.lookup", variant, fate)
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


# -- holds -----------------------------------------------------------------------------------------------------------

FREE, TWO = Variant("nobody is asked"), Variant("two let it go", override_people=2)
SWEEP = ("work", "answered")


def approved_and_held(machine):
    """Its twin is unknown while people allow it, and then it is found to have succeeded."""
    machine.approve(0, ["user:ada"], 0, [LOST])
    machine.call("second", [], "answered")
    machine.approve(0, ["user:ada"], 0, [SWEEP])
    machine.learn(0, "resolve", "answered", [SWEEP])


def released_twice(machine):
    """Two let it go beside the first; beside the third, they decide anew."""
    machine.call("second", [], "answered")
    machine.expose(0, ["user:ada", "user:ben"], 0, "release", [])
    machine.learn(0, "resolve", "rejected", [])
    machine.call("third", [], "reply_lost")
    machine.expose(0, ["user:ada", "user:ben"], 0, "release", [DONE])


def released_before(machine):
    """One let it go, and two must by now."""
    machine.call("second", [], "answered")
    machine.expose(0, ["user:ada"], 0, "release", [])
    machine.adopt(TWO, 3, [DONE])


def released_and_swept(machine):
    """People let go what they had allowed: the worker sends nothing of it."""
    machine.approve(0, ["user:ada"], 0, [LOST])
    machine.call("second", [], "answered")
    machine.approve(0, ["user:ada"], 0, [])
    machine.expose(0, ["user:ben"], 0, "release", [SWEEP])


def send_when_it_ends(patch):
    """Leave what is held to the worker."""
    patch.setattr(hold, "goes_back", lambda operation, holder: False)
    patch.setattr(transaction, "DISPATCH", "never")
    patch.setattr(Worker, "_hand_back", lambda self, operation: 0)


def count_on(patch):
    """Count whoever lifted the hold before."""

    def deciders(events, verb):
        said = (decided_of(e) for e in events if e.kind is EventKind.DECIDED)
        return tuple(one for one in said if one.decision == verb.value)

    patch.setattr(override, "_deciders", deciders)


def let_it_stand(patch):
    """Let a release stand as it was decided."""
    patch.setattr(rules, "may_go_beside", lambda events, terms: override.released_beside(events))


def release_for_the_worker(patch):
    """Leave the step of what is released as it was, and let nobody notice that it is held."""
    send_when_it_ends(patch)
    patch.setattr(override, "CALL", "dispatch")


HOLDS = {
    "sent when its hold ends": ("was sent by work", send_when_it_ends, approved_and_held, ONE, "answered"),
    "a second release counts the first": ("has decided it already", count_on, released_twice, TWO, "reply_lost"),
    "a release is not judged again": ("was sent by call", let_it_stand, released_before, FREE, "reply_lost"),
    "sent by its release": ("was sent by work", release_for_the_worker, released_and_swept, ONE, "answered"),
}
"""By what is off: what is objected to, how to turn it off, and the shortest way to see that."""


@pytest.mark.parametrize("off", HOLDS)
def test_the_machine_sees_a_hold_that_is_none(monkeypatch, off):
    """What is sent, or refused, then is objected to at once, by a model that knows nothing of steps and columns."""
    objection, turn_off, *sequence = HOLDS[off]
    walk(*sequence)
    turn_off(monkeypatch)
    with pytest.raises(AssertionError, match=objection):
        walk(*sequence)
    monkeypatch.undo()
    walk(*sequence)
