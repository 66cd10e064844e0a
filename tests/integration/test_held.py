"""Operations that are held on a whole ledger: nobody sends one but its caller, whatever comes of its twin."""

from __future__ import annotations

import pytest
from tests.cases.people import DANA, HOUR, MARA, Tool, asks
from tests.cases.stage import later

import counterfoil
from counterfoil.domain.answer import Returned
from counterfoil.domain.audit import audit
from counterfoil.domain.errors import NoBasis, NotDecided
from counterfoil.domain.event import EventKind
from counterfoil.domain.payload import SALT_BYTES
from counterfoil.domain.terms import Breaker, OneShot
from counterfoil.domain.words import Outcome, Permission, Standing
from counterfoil.plans import observing
from counterfoil.runtime import queue
from counterfoil.runtime.worker import Worker

LEA = {"by": "lea", "reason": "another order"}
FOUND = {"evidence": {"ticket": "T-1"}, "by": "mara", "reason": "seen at the provider"}


@pytest.fixture
def ledger(tmp_path):
    """A book whose every receipt holds when the test is over."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:desk") as opened:
        yield opened
        assert [wrong for history in opened.store.histories() for wrong in audit(history)] == []


def tools(ledger, *ends, **declared):
    """A tool that asks nobody and one that asks somebody, for one effect; the first ends as it is told."""
    first = Tool(ledger, "send", *ends, effect="payout", effect_by=("/amount",))
    return first, Tool(ledger, "pay", effect="payout", effect_by=("/amount",), **declared)


def swept(ledger, times=2):
    """Let the worker take whatever it takes."""
    for _ in range(times):
        Worker(ledger).sweep()


def kinds(ledger, operation):
    """What is on record of it."""
    return [event.kind for event in ledger.history(operation).events]


def way_of_the_approval(ledger, pay, lost):
    """Approved while its twin is unknown: nobody has tried to send it yet."""
    return ledger.decisions.approve(pay.call("p1").id, **DANA)


def way_of_the_worker(ledger, pay, lost):
    """Approved before its twin came: the worker is the first to try."""
    asked = pay.call("p1", 11)
    ledger.decisions.approve(asked.id, **DANA)
    lost.call("s2", 11)
    swept(ledger)
    return asked


def way_of_its_caller(ledger, pay, lost):
    """Its caller is the first to try."""
    asked = pay.call("p1", 11)
    ledger.decisions.approve(asked.id, **DANA)
    lost.call("s2", 11)
    assert pay.call("p1", 11).standing is Standing.HELD
    return asked


def way_of_whoever_asks(ledger, pay, lost):
    """Somebody asks for it by name."""
    asked = pay.call("p1", 11)
    ledger.decisions.approve(asked.id, **DANA)
    lost.call("s2", 11)
    with pytest.raises(NoBasis, match="of the same effect is unresolved"):
        ledger.attempt(asked.id, by="lea")
    return asked


WAYS = [way_of_the_approval, way_of_the_worker, way_of_its_caller, way_of_whoever_asks]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("outcome", ["succeeded", "rejected"])
def test_an_approved_operation_is_not_sent_by_the_end_of_its_hold(ledger, way, outcome):
    """Its twin is settled, well or not: the worker sends nothing, its caller asks again and is judged anew."""
    asks(ledger, actions=("pay",))
    lost, pay = tools(ledger, TimeoutError(), TimeoutError())
    lost.call("s1")
    held = way(ledger, pay, lost)
    stands = ledger.get(held.id).operation
    assert (stands.step, stands.permission) == ("call", Permission.AUTHORIZED)
    assert stands.held_by in {o.id for o in ledger.store.unresolved()}
    for twin in ledger.store.unresolved():
        ledger.resolve(twin.id, outcome, **FOUND)
    swept(ledger)
    assert pay.calls == []
    assert ledger.get(held.id).operation.step == "call"
    amount = 10 if way is way_of_the_approval else 11
    assert pay.call("p1", amount).outcome is Outcome.SUCCEEDED
    swept(ledger)
    assert len(pay.calls) == 1


def test_a_check_that_refuses_hides_no_hold(ledger):
    """Its own check refuses it for as long as its twin is unknown: what ends both sends nothing."""
    asks(ledger, actions=("pay",))
    refuses = []
    lost, pay = tools(ledger, TimeoutError(), check=lambda **_: "one is open" if refuses else None)
    asked = pay.call("p1")
    ledger.decisions.approve(asked.id, **DANA)
    first = lost.call("s1")
    refuses.append(first)
    swept(ledger)
    assert ledger.get(asked.id).operation.held_by == first.id
    refuses.clear()
    ledger.resolve(first.id, "succeeded", **FOUND)
    later(ledger, 60)
    swept(ledger)
    assert pay.calls == []


@pytest.mark.parametrize("tries", ["worker", "caller"])
def test_a_breaker_that_is_open_hides_no_hold(ledger, tries):
    """The twin that holds it is what opened the breaker, and both end at once: what was tried before sends nothing."""
    asks(ledger, actions=("pay",), breakers=(Breaker(name="all", unknown_exposure_max=1.0),))
    lost, pay = tools(ledger, TimeoutError())
    asked = pay.call("p1")
    ledger.decisions.approve(asked.id, **DANA)
    first = lost.call("s1")
    later(ledger, 60)
    if tries == "worker":
        ledger.work(asked.id)
    else:
        assert pay.call("p1").standing is Standing.HELD
    assert ledger.get(asked.id).operation.held_by == first.id
    ledger.resolve(first.id, "succeeded", **FOUND)
    swept(ledger)
    assert pay.calls == []


def test_a_sweep_that_learns_of_its_twin_sends_nothing(ledger):
    """The answer of the holder waits beside the store: what it held when the sweep began is its caller's."""
    asks(ledger, actions=("pay",))
    lost, pay = tools(ledger, TimeoutError())
    asked = pay.call("p1")
    ledger.decisions.approve(asked.id, **DANA)
    first = lost.call("s1")
    said = observing.sealed(observing.judged(lost.call.action, Returned(value={"id": "late"}), 1), b"s" * SALT_BYTES)
    ledger.spool.put(first.id, said.line, said.body)
    swept(ledger, times=1)
    assert (ledger.get(first.id).outcome, pay.calls) == (Outcome.SUCCEEDED, [])
    assert ledger.get(asked.id).operation.step == "call"
    swept(ledger)
    assert pay.calls == []


def test_who_holds_it_is_recorded_once(ledger):
    """However often its caller asks: one event for each that holds it."""
    asks(ledger, actions=("pay",))
    lost, pay = tools(ledger, TimeoutError())
    lost.call("s1")
    held = way_of_the_approval(ledger, pay, lost)
    for _ in range(3):
        told = pay.call("p1")
        assert (told.standing, told.for_model()["retry"]) == (Standing.HELD, "blocked")
        swept(ledger)
    assert kinds(ledger, held.id).count(EventKind.HELD) == 1


def test_the_approval_of_what_is_held_ends(ledger):
    """Its caller never comes: the worker records that it ended, and it reads so before that."""
    asks(ledger, actions=("pay",))
    lost, pay = tools(ledger, TimeoutError())
    lost.call("s1")
    held = way_of_the_approval(ledger, pay, lost)
    later(ledger, HOUR + 60)
    assert ledger.get(held.id).permission is Permission.EXPIRED
    swept(ledger)
    stands = ledger.get(held.id).operation
    assert (stands.permission, stands.step, stands.held_by) == (Permission.EXPIRED, "", "")
    assert pay.call("p1").standing is Standing.PENDING
    assert pay.calls == []


# -- release -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_what_is_approved_and_held_is_released(ledger, way):
    """By whom the policy says; nothing is sent by it, nor by the worker, and its caller's call goes beside the twin."""
    asks(ledger, actions=("pay",))
    lost, pay = tools(ledger, TimeoutError(), TimeoutError())
    lost.call("s1")
    held = way(ledger, pay, lost)
    ledger.decisions.release(held.id, **LEA)
    with pytest.raises(NotDecided, match="nothing holds it"):
        ledger.decisions.release(held.id, **MARA)
    swept(ledger)
    assert pay.calls == []
    amount = 10 if way is way_of_the_approval else 11
    assert pay.call("p1", amount).outcome is Outcome.SUCCEEDED
    assert len(pay.calls) == 1


def released(ledger, *people, **policy):
    """A call that people let go beside the one that held it; and the tool, the holder, and the call."""
    pay = Tool(asks(ledger, actions=("none",), **policy), "pay", TimeoutError(), effect_by=("/amount",))
    first, held = pay.call("o1"), pay.call("o2")
    for by in people:
        ledger.decisions.release(held.id, **by)
    return pay, first, held


def test_a_release_lifts_one_hold(ledger):
    """Settled, and held by another one that came since: two decide anew, and the same two may."""
    pay, first, held = released(ledger, DANA, MARA, people=2)
    ledger.resolve(first.id, "rejected", **FOUND)
    pay.ends[:] = [TimeoutError()]
    second = pay.call("o3")
    assert (second.outcome, pay.call("o2").standing) == (Outcome.UNKNOWN, Standing.HELD)
    assert ledger.get(held.id).operation.held_by == second.id
    ledger.decisions.release(held.id, **DANA)
    assert pay.call("o2").standing is Standing.HELD
    ledger.decisions.release(held.id, **MARA)
    swept(ledger)
    assert len(pay.calls) == 2
    assert pay.call("o2").outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("stricter", [{"people": 2}, {"approvers": ("mara",)}], ids=["two people", "others"])
def test_a_release_is_judged_by_the_policy_in_force(ledger, tmp_path, stricter):
    """Another process has adopted a stricter one since: the claim, the queue and whoever decides go by that one."""
    pay, first, held = released(ledger, DANA)
    assert [w.held_by for w in queue.read(ledger)[0] if w.operation.id == held.id] == [()]
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:reader") as other:
        asks(other, actions=("none",), **stricter)
    assert pay.call("o2").standing is Standing.HELD
    assert len(pay.calls) == 1
    assert [w.held_by for w in queue.read(ledger)[0] if w.operation.id == held.id] == [(first.id,)]
    for by in (MARA, DANA) if "people" in stricter else (MARA,):
        ledger.decisions.release(held.id, **by)
    assert pay.call("o2").outcome is Outcome.SUCCEEDED


def test_what_was_released_is_held_again_under_an_absolute_one_shot(ledger):
    """The queue says what the claim would: nothing goes beside anything, whoever lifted a hold before."""
    _, first, held = released(ledger, DANA)
    asks(ledger, actions=("none",), one_shot=OneShot.ABSOLUTE)
    assert [w.held_by for w in queue.read(ledger)[0] if w.operation.id == held.id] == [(first.id,)]
