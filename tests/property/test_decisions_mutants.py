"""The machine has teeth: where a rule is off, the shortest way to what it prevents breaks what holds after a step."""

from __future__ import annotations

import sys

import msgspec
import pytest
from tests.property.decisions_model import Variant
from tests.property.decisions_world import ACTOR, Version
from tests.property.test_decisions_machine import Decisions

from counterfoil.domain import hold, override, rules
from counterfoil.domain.approval import decided_of
from counterfoil.domain.event import EventKind, attempts_of
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


def pushed(machine):
    """Approved and stayed, overridden and stayed."""
    machine.approve(0, ["user:ada"], 0, [("call", "not_sent")])
    machine.expose(3, ["user:ada"], 0, "override", [(OVERRIDE, "not_sent")])
    machine.what_may_be_sent_is_in_sight()


def set_back(machine):
    """What is older and settled is written to when the approval of the newer is over; the clock is set back."""
    machine.approve(0, ["user:ada"], 0, [DONE])
    machine.call("other", [], "answered")
    machine.approve(0, ["user:ada"], 0, [])
    machine.restart(3, 20, Version(), 3, [DONE])


def declared_anew(machine):
    """Another version of the code runs after an attempt that stayed; people are asked about it and approve."""
    machine.approve(0, ["user:ada"], 0, [("call", "not_sent")])
    machine.restart(0, 0, Version(code="cd1:b"), 0, [DONE])
    machine.approve(0, ["user:ada"], 0, [("work", "answered")])


def brought_back(machine):
    """Given up with two unknown attempts; a late rejection of the second brings it back, and it is overridden."""
    machine.approve(0, ["user:ada"], 0, [LOST])
    machine.expose(0, ["user:ada"], 0, "override", [(OVERRIDE, "request_lost")])
    machine.end(0, ["user:ben"], 0, "abandon", [])
    machine.learn(0, "late", "rejected", [])
    machine.expose(0, ["user:ada"], 0, "override", [(OVERRIDE, "answered")])


def step_of_the_last_attempt(patch):
    """Read what waits off the last attempt alone, in the rule and in the auditor."""
    from counterfoil.domain import audit, rules

    waits_for, expected = rules.waits_for, audit._Walk._waits_for

    def last(history, operation):
        attempts, _ = attempts_of(history.events)
        step = waits_for(history, operation)
        return step if step[0] != "call" or attempts[-1].approval else ("", 0.0)

    def theirs(walk):
        step = expected(walk)
        return step if step != "call" or walk.attempts[-1].approval else ""

    patch.setattr(rules, "waits_for", last)
    patch.setattr(audit._Walk, "_waits_for", theirs)


def time_not_kept(patch):
    """Go on after a restart from what the newest operation and the unresolved ones say."""
    patch.setattr("counterfoil.store.rows.KEEP_TIME", "UPDATE clock SET at = at + 0 * ? + 0 * ?")


def first_claim_is_for_ever(patch):
    """Hold the worker to the first claim, whatever people have approved since."""
    from counterfoil.domain import rules

    judge = rules._against_claim

    def against(history, begun, sought, basis):
        first = rules.first_begun(history.events) if sought.automatic else None
        changed = first is not None and (first.contract, first.code) != (begun.contract, begun.code)
        return (rules.CODE_CHANGED,) if changed else judge(history, begun, sought, basis)

    patch.setattr(rules, "_against_claim", against)


def abandoned_for_ever(patch):
    """Leave what news brought back abandoned, in the rule and in the auditor."""
    from counterfoil.domain import mandate, rules

    advance, news = rules.advance, mandate.Mandate.news

    def left(operation, *given, **named):
        moved = advance(operation, *given, **named)
        kept = msgspec.structs.replace(moved.operation, disposition=operation.disposition)
        return msgspec.structs.replace(moved, operation=kept)

    patch.setattr(rules, "advance", left)
    patch.setattr(mandate.Mandate, "news", lambda self, *, certain, back: news(self, certain=certain, back=False))


OWN = {
    step_of_the_last_attempt: pushed,
    time_not_kept: set_back,
    first_claim_is_for_ever: declared_anew,
    abandoned_for_ever: brought_back,
}
"""Rules that no mutant of the laboratory turns off, each with a way on which the machine sees that."""


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


@pytest.mark.parametrize("turn_off", OWN, ids=lambda turn_off: turn_off.__name__)
def test_the_machine_sees_what_approvals_were_worth_before(monkeypatch, turn_off):
    """Out of sight, good again, good for nothing, given up for ever: each is found, and each rule is on again."""
    walk(OWN[turn_off])
    turn_off(monkeypatch)
    with pytest.raises(AssertionError):
        walk(OWN[turn_off])
    monkeypatch.undo()
    walk(OWN[turn_off])


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
