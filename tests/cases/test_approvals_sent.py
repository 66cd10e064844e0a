"""Field reports 43, 44, 46, 49 and 82 once more, by what really arrived at a provider in a process of its own."""

from __future__ import annotations

import threading

import pytest
from tests.cases.people import DANA, MARA, asks
from tests.cases.stage import SECONDS, guard

from counterfoil.domain.approval import proposed_of
from counterfoil.domain.errors import KeyConflict, NotDecided
from counterfoil.domain.event import EventKind
from counterfoil.domain.words import Outcome, Permission, Standing
from counterfoil.runtime.queue import read
from counterfoil.runtime.worker import Worker


def at_once(*steps):
    """Take all steps from one starting line; return what each came to, or the refusal it met."""
    gate, told = threading.Barrier(len(steps)), []

    def take(step):
        gate.wait(SECONDS)
        try:
            told.append(step())
        except NotDecided as error:
            told.append(error)

    threads = [threading.Thread(target=take, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(told) == len(steps)
    return told


def test_r43_what_was_approved_and_not_run_is_not_said_to_have_run(lab, book):
    """The model's second thought waits for people; its first keeps an approval that nothing has used."""
    pay = guard(asks(ledger := book()), lab.url)
    first = pay({"order": "r43-a", "amount": 10})
    ledger.decisions.approve(first.id, **MARA)
    second = pay({"order": "r43-b", "amount": 900})
    assert (second.permission, second.standing) == (Permission.PENDING, Standing.PENDING)
    assert (lab.sends(first.id), lab.sends(second.id)) == (0, 0)
    stands = first.refresh()
    assert (stands.outcome, stands.operation.attempts) == (Outcome.UNOBSERVED, 0)
    assert EventKind.BEGUN not in {event.kind for event in ledger.history(first.id).events}
    assert pay({"order": "r43-a", "amount": 10}).outcome is Outcome.SUCCEEDED
    assert (lab.sends(first.id), lab.sends(second.id)) == (1, 0)


def test_r44_other_clauses_ask_anew(lab, book, brief):
    """The same bytes under a changed contract wait for people again, and nothing arrives until they have answered."""
    ledger = asks(book())
    payload = {"order": "r44-contract", "amount": 10}
    asked = guard(ledger, lab.url)(payload)
    ledger.decisions.approve(asked.id, **MARA)
    pay = guard(book(), lab.url, brief("key", send_deadline_seconds=9))
    told = pay(payload)
    assert (told.id, told.permission, told.operation.attempts) == (asked.id, Permission.PENDING, 0)
    (entry,) = read(ledger)[0]
    assert entry.asked is not None
    assert (entry.asked.approved_by, lab.sends(asked.id)) == ((), 0)
    asked_last = proposed_of(ledger.history(asked.id).events[-1])
    assert "contract changed" in asked_last.because
    ledger.decisions.approve(asked.id, **DANA)
    assert pay(payload).outcome is Outcome.SUCCEEDED
    assert (lab.sends(asked.id), len(lab.effects(asked.id))) == (1, 1)


@pytest.mark.parametrize("elsewhere", ["host", "account"])
def test_r44_the_host_and_the_account_are_bound(lab, book, elsewhere):
    """What was approved for one host and one account goes to no other, whatever the key; nothing arrives at either."""
    payload = {"order": f"r44-{elsewhere}", "amount": 10}
    ledger = asks(book())
    asked = guard(ledger, lab.url)(payload)
    ledger.decisions.approve(asked.id, **MARA)
    host = lab.url.replace("127.0.0.1", "localhost")
    moved = guard(book(), host) if elsewhere == "host" else guard(book(), lab.url, account="acct_other")
    with pytest.raises(KeyConflict):
        moved(payload)
    assert (lab.sends(asked.id), lab.sends(payload)) == (0, 0)
    assert ledger.get(asked.id).operation.step == "dispatch"


def test_r46_two_answers_and_twelve_resumes_at_once_are_one_send(lab, book):
    """One person's answer stands and the other is told; however many resume, one request arrives."""
    pay = guard(asks(ledger := book()), lab.url)
    asked = pay({"order": "r46", "amount": 10})
    approve, seen = ledger.decisions.approve, asked.operation.seq
    told = at_once(
        lambda: approve(asked.id, seen=seen, **MARA).permission, lambda: approve(asked.id, seen=seen, **DANA).permission
    )
    assert sum(one is Permission.AUTHORIZED for one in told) == 1
    assert ["it changed since it was seen" in str(one) for one in told if isinstance(one, NotDecided)] == [True]
    resumed = at_once(*[lambda: pay({"order": "r46", "amount": 10})] * 12)
    assert {receipt.id for receipt in resumed} == {asked.id}
    assert [receipt.standing for receipt in resumed].count(Standing.NEW) == 1
    with pytest.raises(NotDecided):
        ledger.decisions.deny(asked.id, **DANA)
    assert (lab.sends(asked.id), len(lab.effects(asked.id))) == (1, 1)


def test_r49_r82_two_workers_send_what_was_approved_once(lab, book):
    """Nobody resumes: it is seen as approved and not sent, two workers find it at once, and one request arrives."""
    ledger = asks(book())
    asked = guard(ledger, lab.url)({"order": "r49", "amount": 10})
    ledger.decisions.approve(asked.id, **MARA)
    (entry,) = read(ledger)[0]
    assert (entry.operation.step, entry.outcome, entry.exposed) == ("dispatch", Outcome.UNOBSERVED, 0.0)
    assert entry.age > 0
    workers = []
    for _ in range(2):
        guard(other := book(), lab.url)
        workers.append(Worker(other))
    at_once(*(worker.sweep for worker in workers))
    assert (lab.sends(asked.id), len(lab.effects(asked.id))) == (1, 1)
    assert read(ledger)[0] == []
    assert guard(book(), lab.url)({"order": "r49", "amount": 10}).standing is Standing.EXISTING
    assert lab.sends(asked.id) == 1
