"""A sender names its write before it finishes it: what that moves, who may ask by it, and what the answer proves."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.crash.stepping import NOON, action, claimed, declined, draw, ends, observed, order, ruled

from counterfoil import contracts
from counterfoil.domain import noted as noted_rules
from counterfoil.domain import rules
from counterfoil.domain.action import Action
from counterfoil.domain.answer import Replied
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amended, Amendment, Declined, NewEvent
from counterfoil.domain.contract import By, Contract
from counterfoil.domain.event import EventKind, attempts_of, encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.reading import ReadingKind, read, seek
from counterfoil.domain.rejudge import rejudge
from counterfoil.domain.soundness import check
from counterfoil.domain.template import Names
from counterfoil.domain.words import Coverage, Dispatch, Finding, Outcome, Source
from counterfoil.plans.effects import Flight, Look
from counterfoil.plans.noting import note
from counterfoil.plans.reconcile import reconcile

SQL: Contract = contracts.load("postgresql.statement")
OF: Action = action(SQL)
NAME = "7.00000001.55"
GONE = Replied(status=404, body=b"{}")
U = Finding.UNKNOWN


def named(external_id=NAME, *, attempt=1):
    """What a sender notes of its write."""
    return Evidence(source=Source.SENDER, finding=U, attempt=attempt, rule="house.noted", external_id=external_id)


def noted(history, external_id=NAME, *, token="w.1", attempt=1, at=NOON + 1):
    """The history after a sender named its write."""
    return ruled(history, noted_rules.note(token, encode(named(external_id, attempt=attempt))), at)


def shown(status, name=NAME):
    """What the server says of a transaction."""
    return Replied(status=200, body=json.dumps({"xid": name, "status": status}).encode())


# -- noting ------------------------------------------------------------------------------------------------------------


def test_a_name_moves_nothing_and_is_kept():
    """One event more; the attempt is as unreported as before, and goes by that name."""
    before = claimed(order(OF))
    after = noted(before)
    assert after.operation == msgspec.structs.replace(before.operation, seq=2, updated_at=NOON + 1)
    (attempt,), _ = attempts_of(after.events)
    assert (attempt.finding, attempt.quiesced, attempt.external_id) == (None, False, NAME)
    assert audit(after) == audit(before)


def test_the_first_name_stays():
    """A write has one name; a second one replaces nothing."""
    (attempt,), _ = attempts_of(noted(noted(claimed(order(OF))), "8.00000001.1", at=NOON + 2).events)
    assert attempt.external_id == NAME


@pytest.mark.parametrize("finding", [U, Finding.NOT_SENT, Finding.REJECTED])
def test_an_attempt_that_was_reported_on_is_nobodys_to_finish(finding):
    """Its sender was given up meanwhile: it may not finish what others have gone on from."""
    history = observed(claimed(order(OF)), finding, of=OF)
    assert declined(history, noted_rules.note("w.1", b"{}")) == ("nobody waits for this attempt any more",)


def test_a_sender_speaks_for_its_own_attempt():
    """Another token is another attempt's, or nobody's."""
    assert declined(claimed(order(OF)), noted_rules.note("w.9", b"{}")) == ("nobody waits for this attempt any more",)


def test_a_sender_that_is_late_finishes_nothing():
    """By the store's clock: what counts from the deadline would be wrong about a write after it."""
    late = NOON + SQL.send_deadline_seconds
    assert declined(claimed(order(OF)), noted_rules.note("w.1", b"{}"), late) == ("its sender must have ended by now",)


def test_the_plan_says_whether_the_name_is_durable():
    """Only then may the write be finished."""
    history = claimed(order(OF))
    plan = note("op_1", 1, "w.1", NAME)
    amend = next(plan)
    assert ends(plan, Amended(history=ruled(history, amend.rule))) is True
    refused = note("op_1", 1, "w.1", NAME)
    next(refused)
    assert ends(refused, Declined(because=("no",))) is False


def test_a_flight_that_nobody_carries_notes_nothing():
    """Without whoever makes it durable, the answer is no."""
    flight, heard = Flight(), []
    assert flight.note(NAME) is False
    flight.noter = lambda name: heard.append(name) is None
    assert (flight.note(NAME), heard) == (True, [NAME])


def test_a_name_proves_nothing():
    """A sender's own word cannot settle what it was about to do."""
    claim = named()
    forged = msgspec.structs.replace(claim, finding=Finding.SUCCEEDED, effect="pay")
    history = ruled(claimed(order(OF)), noted_rules.note("w.1", encode(forged)))
    assert any("the sender does not say what happened" in found.problem for found in audit(history))


# -- looking by the name -----------------------------------------------------------------------------------------------


def to_look(history, at=NOON + 60):
    """A plan that has paid for its look, the look, and the history with the payment."""
    plan = reconcile(history, OF, draw(2), asked=True, by="ann")
    paid = ruled(history, next(plan).rule, at)
    look = plan.send(Amended(history=paid))
    assert isinstance(look, Look)
    return plan, look, paid


def settled(plan, paid, *answers):
    """The history once the look is recorded."""
    return ruled(paid, plan.send(answers).rule, NOON + 61)


@pytest.mark.parametrize(
    ("status", "finding", "outcome"),
    [
        ("committed", Finding.SUCCEEDED, Outcome.SUCCEEDED),
        ("aborted", Finding.REJECTED, Outcome.REJECTED),
        ("in progress", U, Outcome.UNKNOWN),
        (None, U, Outcome.UNKNOWN),
        ("of another timeline", U, Outcome.UNKNOWN),
    ],
)
def test_what_the_server_says_of_the_name_settles_its_attempt(status, finding, outcome):
    """Committed succeeded, aborted is rejected, all else settles nothing; judged anew, it still holds."""
    plan, look, paid = to_look(observed(noted(claimed(order(OF))), U, of=OF))
    assert look.order.names.external_id == NAME
    after = settled(plan, paid, shown(status), GONE)
    (attempt,), _ = attempts_of(after.events)
    assert (attempt.finding, after.operation.outcome) == (finding, outcome)
    assert [one.broken for one in rejudge(after, OF)] == ([""] if finding is not U else [])


def test_without_a_control_nothing_is_settled():
    """A server that knows an id it never gave out knows nothing."""
    plan, _, paid = to_look(observed(noted(claimed(order(OF))), U, of=OF))
    assert settled(plan, paid, shown("aborted"), shown("aborted")).operation.outcome is Outcome.UNKNOWN


def test_a_name_speaks_for_its_own_attempt():
    """Of two attempts the open one is asked for by its own name, and nothing is said of the other."""
    first = observed(noted(claimed(order(OF))), Finding.REJECTED, of=OF)
    begun = msgspec.json.decode(first.events[0].record)
    begun["attempt"] |= {"number": 2, "token": "w.2"}
    second = msgspec.structs.replace(first.operation, attempts=2, dispatch=Dispatch.STARTED, unresolved=1, exposure=1)
    again = Amendment(operation=second, events=(NewEvent(kind=EventKind.BEGUN, record=msgspec.json.encode(begun)),))
    history = ruled(first, lambda *_: again)
    history = observed(noted(history, "7.00000001.66", token="w.2", attempt=2), U, of=OF, attempt=2)
    plan, look, paid = to_look(history)
    assert look.order.names.external_id == "7.00000001.66"
    attempts, _ = attempts_of(settled(plan, paid, shown("committed", "7.00000001.66"), GONE).events)
    assert [a.finding for a in attempts] == [Finding.REJECTED, Finding.SUCCEEDED]


def test_a_rewritten_verdict_on_a_name_is_found_out():
    """Whoever makes `rejected` of what was in progress is contradicted by what is kept of the look."""
    plan, _, paid = to_look(observed(noted(claimed(order(OF))), U, of=OF))
    amend = plan.send((shown("in progress"), GONE))
    said = msgspec.json.decode(amend.record, type=Evidence)
    forged = msgspec.structs.replace(said, finding=Finding.REJECTED, rule="looks[0].ended")
    history = ruled(paid, rules.observe(forged, encode(forged), amend.body, SQL))
    [one] = rejudge(history, OF)
    assert "/status is not a state" in one.broken


def test_a_name_of_our_own_needs_nothing_to_compare_and_another_does():
    """Only where the contract says that our sender noted it; else one weak field is never enough."""
    names = Names(provider_key="op_1", external_id=NAME, negative="cf-absent-1")
    sought = seek(SQL, account="shop", payload=b"{}", names=names)
    look = SQL.looks[0]
    plain = msgspec.structs.replace(look, match=msgspec.structs.replace(look.match, noted=False))
    kinds = [read(one, (shown("committed"), GONE), sought, SQL.terminal).kind for one in (look, plain)]
    assert kinds == [ReadingKind.FOUND, ReadingKind.CANDIDATE]
    kinds = [read(one, (shown("aborted"), GONE), sought, SQL.terminal).kind for one in (look, plain)]
    assert kinds == [ReadingKind.ENDED, ReadingKind.CANDIDATE]


@pytest.mark.parametrize("by", [By.KEY, By.LIST, By.CLIENT_REFERENCE])
def test_only_what_is_asked_by_its_own_id_is_ours_by_that_name_alone(by):
    """What a search shows speaks of what it found, never of what was sent."""
    look = msgspec.structs.replace(SQL.looks[0], by=by)
    found = check(msgspec.structs.replace(SQL, looks=(look,)))
    assert any("only what is asked by its own id" in one.problem for one in found)
    assert check(SQL) == ()


def test_a_look_by_id_covers_its_attempt():
    """And no other: what one transaction came to says nothing of another."""
    plan, *_ = to_look(observed(noted(claimed(order(OF))), U, of=OF))
    evidence = msgspec.json.decode(plan.send((shown("aborted"), GONE)).record, type=Evidence)
    assert evidence.coverage is Coverage.ATTEMPT
