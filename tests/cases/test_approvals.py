"""Field reports 43 to 51, and parts of 8 and 82: approvals, by what the function behind them was really called with."""

from __future__ import annotations

import threading
import time

import pytest
from tests.cases.people import DANA, HOUR, MARA, Tool, asks
from tests.cases.stage import later

import counterfoil
from counterfoil.domain.errors import KeyConflict, NoBasis, NotDecided
from counterfoil.domain.words import Outcome, Permission, Standing
from counterfoil.runtime.worker import Worker


def test_r08_a_forced_second_attempt_is_two_peoples_decision(book):
    """One person's word, or the requester's, sends nothing again; two people's sends once and proves nothing."""
    ledger = asks(book(), actions=("nothing.else",), people=2)
    pay = Tool(ledger, "pay", TimeoutError())
    lost = pay.call("r8")
    with pytest.raises(counterfoil.CallerError, match="an agent decides nothing"):
        ledger.decisions.override(lost.id, by=ledger.actor, reason="again")
    ledger.decisions.override(lost.id, **MARA)
    with pytest.raises(NoBasis, match=r"\d of 2 people"):
        ledger.attempt(lost.id, basis="operator_override", by="mara")
    ledger.decisions.override(lost.id, **DANA)
    sent = ledger.attempt(lost.id, basis="operator_override", by="mara")
    assert (len(pay.calls), sent.outcome, sent.operation.exposure) == (2, Outcome.SUCCEEDED, 1)


def test_r43_an_approval_is_bound_to_what_it_was_given_for(book):
    """Other arguments, or another tool, find no approval in place of the first; another call id changes nothing."""
    ledger = asks(book())
    pay, send = Tool(ledger), Tool(ledger, "send")
    asked = pay.call("r43", 100)
    ledger.decisions.approve(asked.id, **MARA)
    assert pay.call("r43-b", 900).permission is Permission.PENDING
    assert send.call("r43", 100).permission is Permission.PENDING
    with pytest.raises(KeyConflict):
        pay.call("r43", 900)
    assert (pay.calls, send.calls) == ([], [])
    assert pay.call.with_key("r43", tool_call_id="call_2")("r43", 100).outcome is Outcome.SUCCEEDED
    assert pay.calls == [("r43", 100, "")]


def test_r44_every_part_of_a_call_is_bound(book):
    """What is built anew after the check, argument for argument, is another question; nothing of it runs."""
    ledger = asks(book())
    pay = Tool(ledger)
    asked = pay.call("r44", 10, "curl A")
    ledger.decisions.approve(asked.id, **MARA)
    for changed in (("r44", 10, "curl B"), ("r44", 11, "curl A"), ("r44", 10, "sh -c 'curl A'")):
        with pytest.raises(KeyConflict):
            pay.call(*changed)
    assert pay.calls == []


def test_r45_a_sibling_that_is_done_answers_from_its_receipt(book):
    """A node that runs again while another call waits for people sends its finished mail once."""
    ledger = asks(book(), actions=("pay",))
    pay, mail = Tool(ledger), Tool(ledger, "mail")
    for _ in range(3):
        assert mail.call("r45-mail").outcome is Outcome.SUCCEEDED
        waiting = pay.call("r45")
    assert (len(mail.calls), pay.calls) == (1, [])
    ledger.decisions.approve(waiting.id, **MARA)
    assert [pay.call("r45").standing for _ in range(3)] == [Standing.NEW, Standing.EXISTING, Standing.EXISTING]
    assert len(pay.calls) == 1


def test_r46_an_answer_is_given_once(book):
    """Approve and deny of one version at once: one stands, the other is told; a second resume is the receipt."""
    ledger = asks(book())
    pay = Tool(ledger)
    asked = pay.call("r46")
    seen, told, gate = asked.operation.seq, [], threading.Barrier(2)

    def decide(how, who):
        gate.wait(10)
        try:
            how(asked.id, seen=seen, **who)
            told.append("taken")
        except NotDecided as error:
            told.append(str(error))

    both = ((ledger.decisions.approve, MARA), (ledger.decisions.deny, DANA))
    people = [threading.Thread(target=decide, args=pair) for pair in both]
    for person in people:
        person.start()
    for person in people:
        person.join(10)
    assert told.count("taken") == 1
    assert any("it changed since it was seen" in said for said in told)
    allowed = asked.refresh().permission is Permission.AUTHORIZED
    assert [pay.call("r46").standing for _ in range(2)][1] is Standing.EXISTING
    assert len(pay.calls) == allowed


def test_r47_nobody_answering_is_expiry(book):
    """No reviewer and no setting: it is not sent, and the record says that it ran out, by nobody's decision."""
    ledger = asks(book())
    pay = Tool(ledger)
    asked = pay.call("r47")
    later(ledger, HOUR + 1)
    assert asked.refresh().permission is Permission.EXPIRED
    with pytest.raises(NotDecided, match="nobody answered in time"):
        ledger.decisions.approve(asked.id, **MARA)
    Worker(ledger).sweep()
    assert ledger.get(asked.id).operation.permission is Permission.EXPIRED
    assert (pay.calls, ledger.history(asked.id).events[-1].record.count(b'"by":"house"')) == ([], 1)


def test_r48_a_wait_that_ends_changes_nothing(book):
    """The caller gives up after a moment; the approval that comes later is as good."""
    ledger = asks(book())
    pay = Tool(ledger)
    asked = pay.call("r48")
    began = time.monotonic()
    assert asked.wait(0.05).permission is Permission.PENDING
    assert time.monotonic() - began < HOUR
    assert ledger.get(asked.id).operation.seq == asked.operation.seq
    ledger.decisions.approve(asked.id, **MARA)
    assert pay.call("r48").outcome is Outcome.SUCCEEDED


def test_r49_r82_approved_and_not_sent_is_seen_and_sent_once(book):
    """The run that asked is gone: what was approved waits in sight, and the worker sends it; a retry is the receipt."""
    ledger = asks(book())
    pay = Tool(ledger)
    asked = pay.call("r49")
    ledger.decisions.approve(asked.id, **MARA)
    waiting = ledger.store.waiting()
    assert [(o.id, o.step, o.outcome) for o in waiting] == [(asked.id, "dispatch", Outcome.UNOBSERVED)]
    worker = Worker(ledger)
    worker.sweep()
    worker.sweep()
    assert (len(pay.calls), ledger.store.waiting()) == (1, [])
    again = pay.call("r49")
    assert (again.standing, again.expect(), len(pay.calls)) == (Standing.EXISTING, {"id": "r49"}, 1)
    with pytest.raises(NotDecided):
        ledger.decisions.approve(asked.id, **DANA)


def test_r50_an_approval_that_is_left_over_runs_out(book):
    """Two calls of one tool are approved and one is made; the other fires by nothing a day later."""
    ledger = asks(book())
    pay = Tool(ledger)
    first, second = pay.call("r50-a"), pay.call("r50-b")
    for asked in (first, second):
        ledger.decisions.approve(asked.id, **MARA)
    pay.call("r50-a")
    later(ledger, 24 * HOUR)
    Worker(ledger).sweep()
    assert ledger.get(second.id).permission is Permission.EXPIRED
    assert pay.call("r50-b").permission is Permission.PENDING  # asked anew, and by its caller
    assert pay.calls == [("r50-a", 10, "")]


def test_r51_no_window_lets_an_approval_be_used_twice(book):
    """The same arguments again in the same minute: the receipt under the same key, a question under another."""
    ledger = asks(book())
    pay = Tool(ledger, siblings="independent")
    asked = pay.call("r51")
    ledger.decisions.approve(asked.id, **MARA)
    pay.call("r51")
    assert pay.call("r51").standing is Standing.EXISTING
    assert pay.call.with_key("r51-second")("r51").permission is Permission.PENDING
    assert len(pay.calls) == 1
