"""Looking after an unresolved operation: put off, looked into, given to somebody, passed up; no outcome comes of it."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import MARA, NOOR, approved, asked, claim, faults, who
from tests.crash.keeping import settled
from tests.crash.stepping import NOON, action, claimed, declined, held, observed, ruled

from counterfoil import contracts
from counterfoil.domain import looking
from counterfoil.domain.care import (
    LOOKS_GRANTED_MAX,
    WAIT_SECONDS_MAX,
    assign,
    escalate,
    investigate,
    looks_granted,
    wait_until,
)
from counterfoil.domain.consent import deny
from counterfoil.domain.contract import AutomaticAttempts
from counterfoil.domain.decision import HOUSE
from counterfoil.domain.errors import BadValue
from counterfoil.domain.escalation import waits
from counterfoil.domain.event import Decided
from counterfoil.domain.override import abandon
from counterfoil.domain.words import Finding, Source

KEY, NOTHING = contracts.load("lab.key"), contracts.load("lab.nothing")
NOW = NOON + 5
OUTCOME = ("permission", "dispatch", "outcome", "disposition", "exposure", "unresolved", "settled_by", "attempts")


def unknown():
    """One attempt of which nobody knows what became."""
    return observed(claimed(), Finding.UNKNOWN)


def last(history):
    """The last decision on record."""
    return msgspec.json.decode(history.events[-1].record, type=Decided)


def row(history, **columns):
    return msgspec.structs.replace(history, operation=msgspec.structs.replace(history.operation, **columns))


def looked_into(history, *, looks=0, contract=KEY):
    """Somebody looks into it by another way."""
    return investigate(who(history), channel="support, ticket 7", whom=NOOR, looks=looks, contract=contract)


@pytest.mark.parametrize(
    "rule",
    [
        lambda h: wait_until(who(h), NOW + 60),
        lambda h: looked_into(h, looks=3),
        lambda h: assign(who(h), "treasury"),
        lambda h: escalate(who(h), to="duty"),
    ],
    ids=["wait", "investigate", "assign", "escalate"],
)
def test_no_outcome_comes_of_care(rule):
    """Whatever is done about it, what happened stays as unknown as it was, and the record holds."""
    before = unknown()
    after = ruled(before, rule(before), NOW)
    assert [getattr(after.operation, name) for name in OUTCOME] == [getattr(before.operation, name) for name in OUTCOME]
    assert faults(after) == []


# -- waiting ---------------------------------------------------------------------------------------------------------


def test_waiting_puts_the_next_step_off():
    """The same step, later; until when is on record."""
    after = ruled(unknown(), wait_until(who(unknown()), NOW + 60), NOW)
    assert (after.operation.step, after.operation.due_at) == ("look", NOW + 60)
    assert (last(after).decision, last(after).facts) == ("wait_until", {"until": NOW + 60})


@pytest.mark.parametrize(
    ("until", "why"),
    [
        (NOW, "that time has passed"),
        (NOW - 1, "that time has passed"),
        (NOW + WAIT_SECONDS_MAX + 1, "that is more than a year ahead"),
        (NOW + WAIT_SECONDS_MAX, ""),
        (NOW + 0.5, ""),
    ],
)
def test_a_wait_ends_ahead_and_within_a_year(until, why):
    """A moment that has passed is no wait, and more than a year is giving up under another name."""
    found = wait_until(who(unknown()), until)(unknown(), NOW)
    assert getattr(found, "because", ()) == ((why,) if why else ())


@pytest.mark.parametrize(
    ("history", "why"),
    [
        (settled(), "nothing of it is unresolved"),
        (asked(), "nothing of it is unresolved"),
        (claimed(), "its sender has not reported back yet"),
        (ruled(unknown(), abandon(who(unknown()))), "it was abandoned"),
    ],
    ids=["settled", "asked", "in hand", "abandoned"],
)
def test_what_is_not_waited_for(history, why):
    """What is done, what was not sent, what a sender still has in hand and what rests has no step to put off."""
    assert declined(history, wait_until(who(history), NOW + 60), NOW) == (why,)


# -- looking into ----------------------------------------------------------------------------------------------------


def test_looking_into_it_is_on_record():
    """By which way and by whom; without reads the operation stays as it is."""
    after = ruled(unknown(), looked_into(unknown(), contract=None), NOW)
    assert (last(after).decision, last(after).facts) == ("investigate", {"channel": "support, ticket 7", "whom": NOOR})
    assert (after.operation.step, after.operation.due_at) == (unknown().operation.step, unknown().operation.due_at)
    assert looks_granted(after.events) == 0


@pytest.mark.parametrize("looks", [-1, LOOKS_GRANTED_MAX + 1])
def test_reads_are_added_in_measure(looks):
    """No decision takes reads away or adds more than a provider should be asked."""
    with pytest.raises(BadValue, match="looks"):
        looked_into(unknown(), looks=looks)


@pytest.mark.parametrize("step", ["review", "replay"])
def test_added_reads_are_made_at_once(step):
    """What was for a person, or about to be replayed, is looked at again now; nothing is replayed before."""
    before = row(unknown(), step=step, due_at=NOON + 900, looks=5)
    after = ruled(before, looked_into(before, looks=2), NOW)
    assert (after.operation.step, after.operation.due_at) == ("look", NOW)
    assert looks_granted(after.events) == 2


@pytest.mark.parametrize(("before", "step"), [(unknown(), "look"), (claimed(), "recover")])
def test_added_reads_wait_for_what_is_under_way(before, step):
    """A look that is owed comes when it is due, and a sender in hand is not looked at."""
    after = ruled(before, looked_into(before, looks=2), NOW)
    assert (after.operation.step, after.operation.due_at) == (step, before.operation.due_at)


def test_added_reads_count_on_every_budget():
    """They are added up, paid like the others, and only they are made where the contract's own are spent."""
    after = row(ruled(unknown(), looked_into(unknown(), looks=2), NOW), looks=KEY.read_budget.looks_max + 1)
    both = ruled(after, looked_into(after, looks=1), NOW)
    assert looks_granted(both.events) == 3
    rule = looking.pay_look(KEY, 0, asked=True, by=MARA)
    paid = ruled(ruled(both, rule, NOW + 1), rule, NOW + 2)
    assert declined(paid, rule, NOW + 3) == ("the read budget is spent",)
    assert looks_granted(unknown().events) == 0


def test_added_reads_follow_one_another():
    """After a look that found nothing out the next of the added ones is owed, not a person and not a replay."""
    kept = msgspec.structs.replace(KEY, automatic_attempts=AutomaticAttempts())
    before = row(unknown(), step="review", looks=5)
    granted = ruled(before, looked_into(before, looks=2), NOW)
    looked = ruled(granted, looking.pay_look(kept, 0, asked=True, by=MARA), NOW + 1)
    silent = observed(looked, Finding.UNKNOWN, source=Source.LOOK, at=NOW + 2)
    assert silent.operation.step == "look"


@pytest.mark.parametrize(
    ("history", "contract", "why"),
    [
        (settled(), KEY, "nothing of it is unresolved"),
        (unknown(), None, "its contract knows no look"),
        (unknown(), NOTHING, "its contract knows no look"),
        (unknown(), msgspec.structs.replace(KEY, reconcile="forbidden"), "its contract knows no look"),
        (unknown(), msgspec.structs.replace(KEY, looks=()), "its contract knows no look"),
    ],
)
def test_what_is_not_looked_into(history, contract, why):
    """What is done needs no look, and reads are added only where the contract knows one and allows it."""
    assert declined(history, looked_into(history, looks=2, contract=contract)) == (why,)


# -- owners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [unknown(), asked(), settled(), held()])
def test_somebody_else_owns_it_from_now_on(history):
    """At any time, from whom to whom."""
    after = ruled(history, assign(who(history), "treasury"))
    assert after.operation.owner == "treasury"
    assert last(after).facts == {"from": "payments", "to": "treasury"}
    assert declined(after, assign(who(after), "treasury")) == ("treasury owns it already",)
    assert faults(after) == []


@pytest.mark.parametrize("history", [unknown(), asked(), approved()], ids=["unknown", "asked", "approved"])
def test_what_waits_is_passed_up(history):
    """Unresolved, asked, or approved and not sent; by a person, and by the house when its time has come."""
    after = ruled(history, escalate(who(history), to="duty"))
    assert (last(after).by, last(after).facts) == (MARA, {"to": "duty"})
    house = ruled(history, escalate(who(history, by=HOUSE), to="duty"))
    assert last(house).by == HOUSE
    assert faults(house) == []


def stayed():
    """Approved, tried, and proven not to have left: its caller sends it again, or somebody hears that nobody does."""
    history = approved()
    return observed(ruled(history, claim(history), NOON + 2), Finding.NOT_SENT, of=action(), at=NOON + 3)


@pytest.mark.parametrize("history", [unknown(), claimed(), asked(), approved(), stayed(), held()])
def test_whatever_waits_for_somebody_can_be_passed_up(history):
    """When its time has come the house says so, whichever step it waits at."""
    assert waits(history.operation)
    assert ruled(history, escalate(who(history, by=HOUSE), to="duty"), NOON + 4).operation == msgspec.structs.replace(
        history.operation, seq=history.operation.seq + 1, updated_at=NOON + 4
    )


@pytest.mark.parametrize("history", [settled(), ruled(asked(), deny(who(asked())))])
def test_what_waits_for_nobody_is_not_passed_up(history):
    """Settled or refused: there is nothing for anybody to do."""
    assert declined(history, escalate(who(history), to="duty")) == ("nothing of it is unresolved",)
