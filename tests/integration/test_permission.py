"""Permission and decisions on a whole ledger: what sends, what does not, and what only people change."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest
from tests.cases.people import DANA, HOUR, MARA, WHO, Tool, asks
from tests.cases.stage import later

import counterfoil
from counterfoil.domain.approval import decided_of
from counterfoil.domain.audit import audit
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import BreakerOpen, NoBasis, NotDecided, NotDeclared, NotPermitted
from counterfoil.domain.event import EventKind
from counterfoil.domain.policy import Escalation, Otherwise, Policy, Rule, When
from counterfoil.domain.terms import Breaker, OneShot
from counterfoil.domain.words import Disposition, Outcome, Permission, Standing
from counterfoil.runtime import policies
from counterfoil.runtime.worker import Worker


@pytest.fixture
def ledger(tmp_path):
    """A book whose every receipt holds when the test is over."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:desk") as opened:
        yield opened
        assert [wrong for history in opened.store.histories() for wrong in audit(history)] == []


def decisions_on(ledger, operation):
    """What was decided, by the words on record."""
    events = ledger.history(operation).events
    return [decided_of(event).decision for event in events if event.kind is EventKind.DECIDED]


def test_what_is_no_evidence_changes_nothing(ledger):
    """A model's apology, another call id, a wait, an assignment, an abandonment: outcome and eligibility stay."""
    pay = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError())
    lost = pay.call("o1")
    pay.call.with_key("o1", apology="it failed, please try again", call="call_9")("o1")
    decide = ledger.decisions
    decide.assign(lost.id, "night-shift", **MARA)
    decide.investigate(lost.id, channel="the provider's support", **MARA)
    decide.escalate(lost.id, to="the lead", **MARA)
    decide.wait_until(lost.id, ledger.store.now() + HOUR, **MARA)
    decide.abandon(lost.id, **MARA)
    stands = ledger.get(lost.id)
    assert (stands.outcome, stands.disposition) == (Outcome.UNKNOWN, Disposition.ABANDONED)
    assert stands.for_model()["retry"] == "blocked"
    assert pay.call("o1").standing is Standing.UNRESOLVED
    Worker(ledger).sweep()
    with pytest.raises(NoBasis, match="abandoned"):
        ledger.attempt(lost.id, basis="not_sent", by="mara")
    with pytest.raises(NotDecided, match="abandoned"):
        decide.override(lost.id, **MARA)
    assert len(pay.calls) == 1


def test_a_cancelled_caller_leaves_the_question(tmp_path):
    """Cancellation of whoever waits is no answer; the approval that comes later is used once."""
    calls = []

    async def run():
        with counterfoil.open(tmp_path / "receipts.db", actor="agent:desk") as ledger:
            asks(ledger)

            @ledger.action(key=lambda order: order, **WHO)
            async def pay(order):
                calls.append(order)
                return {"id": order}

            asked = await pay("o1")
            waiting = asyncio.create_task(asyncio.to_thread(asked.wait, 0.2))
            await asyncio.sleep(0)
            waiting.cancel()
            assert ledger.get(asked.id).permission is Permission.PENDING
            ledger.decisions.approve(asked.id, **MARA)
            return (await pay("o1")).outcome, (await pay("o1")).standing

    assert asyncio.run(run()) == (Outcome.SUCCEEDED, Standing.EXISTING)
    assert calls == ["o1"]


def test_a_group_that_closes_around_a_send_proves_nothing(tmp_path):
    """A sibling fails, the group cancels the call that was on its way: unknown, blocked, and sent once for ever."""
    calls = []

    async def run(ledger):
        begun = asyncio.Event()

        @ledger.action(key=lambda order: order, **WHO)
        async def pay(order):
            calls.append(order)
            begun.set()
            await asyncio.Event().wait()

        async def fails():
            await begun.wait()
            raise ValueError("the run is over")

        async def both():
            async with asyncio.TaskGroup() as group:
                group.create_task(pay("o1"))
                group.create_task(fails())

        with pytest.raises(ExceptionGroup, match="unhandled errors"):
            await both()
        return await pay("o1")

    with counterfoil.open(tmp_path / "receipts.db", actor="agent:desk") as ledger:
        told = asyncio.run(run(asks(ledger, actions=("none",))))
        assert (told.standing, told.outcome) == (Standing.UNRESOLVED, Outcome.UNKNOWN)
        assert told.for_model()["retry"] == "blocked"
        Worker(ledger).sweep()
        assert calls == ["o1"]
        assert audit(ledger.history(told.id)) == ()


def test_a_restart_changes_nothing(tmp_path):
    """What was asked, denied, revoked, abandoned or unknown is the same to the process after: nothing of it is sent."""

    def opened():
        return counterfoil.open(tmp_path / "receipts.db", actor="agent:desk")

    with opened() as ledger:
        pay, send = Tool(asks(ledger, actions=("pay",))), Tool(ledger, "send", TimeoutError(), TimeoutError())
        asked = {word: pay.call(word) for word in ("pending", "denied", "revoked")}
        lost = {word: send.call(word) for word in ("unknown", "abandoned")}
        ledger.decisions.deny(asked["denied"].id, **MARA)
        ledger.decisions.approve(asked["revoked"].id, **MARA)
        ledger.decisions.revoke(asked["revoked"].id, **DANA)
        ledger.decisions.abandon(lost["abandoned"].id, **MARA)
        before = {r.id: (r.refresh().operation, r.refresh().for_model()) for r in (asked | lost).values()}
    with opened() as ledger:
        tools = Tool(ledger), Tool(ledger, "send")
        Worker(ledger).sweep()
        for tool, words in zip(tools, (asked, lost), strict=True):
            for word in words:
                tool.call(word)
        assert {name: (r := ledger.get(name)) and (r.operation, r.for_model()) for name in before} == before
        assert [tool.calls for tool in tools] == [[], []]


def test_an_absolute_one_shot_is_overridden_by_nobody(ledger):
    """Nobody's decision repeats it or runs beside it, until the policy itself is changed on the record."""
    pay = Tool(asks(ledger, actions=("none",), one_shot=OneShot.ABSOLUTE), "pay", TimeoutError())
    lost = pay.call("o1")
    with pytest.raises(NotDecided, match="whatever a person decides"):
        ledger.decisions.override(lost.id, **MARA)
    asks(ledger, actions=("none",))
    ledger.governance.refresh()
    ledger.decisions.override(lost.id, **MARA)
    assert ledger.attempt(lost.id, basis="operator_override", by="mara").outcome is Outcome.SUCCEEDED
    assert len(pay.calls) == 2


def test_a_hold_is_lifted_by_settlement_or_release_and_sends_nothing(ledger):
    """The release sends nothing, nor does a worker after it; the caller who asks again is judged anew."""
    pay = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError(), effect_by=("/amount",))
    first, held = pay.call("o1"), pay.call("o2")
    ledger.decisions.abandon(first.id, **MARA)
    assert (held.standing, pay.call("o2").standing) == (Standing.HELD, Standing.HELD)
    ledger.decisions.release(held.id, **DANA)
    Worker(ledger).sweep()
    assert len(pay.calls) == 1
    assert pay.call("o2").outcome is Outcome.SUCCEEDED
    third = pay.call("o3")
    assert third.standing is Standing.HELD
    ledger.resolve(first.id, "rejected", evidence={"ticket": "T-1"}, by="mara", reason="seen")
    assert pay.call("o3").outcome is Outcome.SUCCEEDED


def test_a_decision_is_judged_by_the_policy_in_force(ledger, tmp_path):
    """Another process has made it absolute: this one, which has read the policy before, lifts and repeats nothing."""
    pay = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError(), effect_by=("/amount",))
    lost, held = pay.call("o1"), pay.call("o2")
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:reader") as other:
        asks(other, actions=("none",), one_shot=OneShot.ABSOLUTE)
    for decide, one in ((ledger.decisions.release, held), (ledger.decisions.override, lost)):
        with pytest.raises(NotDecided, match="whatever a person decides"):
            decide(one.id, **DANA)
    assert pay.call("o2").standing is Standing.HELD
    assert len(pay.calls) == 1


def test_what_was_released_goes_beside_nothing_under_an_absolute_one_shot(ledger):
    """The policy became absolute after the release: the caller who asks again is judged by what is in force now."""
    pay = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError(), effect_by=("/amount",))
    first, held = pay.call("o1"), pay.call("o2")
    ledger.decisions.release(held.id, **DANA)
    asks(ledger, actions=("none",), one_shot=OneShot.ABSOLUTE)
    assert pay.call("o2").standing is Standing.HELD
    assert len(pay.calls) == 1
    ledger.resolve(first.id, "rejected", evidence={"ticket": "T-1"}, by="mara", reason="seen")
    assert pay.call("o2").outcome is Outcome.SUCCEEDED


def test_a_refusal_ends_with_the_policy_that_refused(ledger, tmp_path):
    """Another process has adopted one that allows it: the next call here goes, without a restart."""
    pay = Tool(ledger)
    policy(ledger, Rule(name="all", when=When(), approval=None, refuse="not this week"))
    with pytest.raises(NotPermitted, match="not this week"):
        pay.call("o1")
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:reader") as other:
        policy(other, Rule(name="all", when=When(), approval=None))
    assert pay.call("o1").outcome is Outcome.SUCCEEDED


def policy(ledger, *rules):
    """Put these rules in force."""
    who = Decider(by="mara", reason="agreed", seen=policies.in_force(ledger.store)[0])
    policies.adopt(ledger.store, Policy(name="shop", rules=rules, otherwise=Otherwise.ALLOW), who, replaces="")


PROPOSER = """
import sys
sys.path.insert(0, sys.argv[2])
import shop
asked = shop.pay("o1")
if sys.argv[1] == "approves":
    shop.ledger.decisions.approve(asked.id, by="mara", reason="checked with the customer")
print(asked.id, flush=True)
sys.stdin.readline()
"""
SHOP = """
from pathlib import Path
import counterfoil
here = Path(__file__).parent
ledger = counterfoil.open(here / "receipts.db", actor="agent:desk")

@ledger.action(account="acct", owner="payments", authoriser="lead", key=lambda order, **_: order)
def pay(order):
    with open(here / "sent", "a") as sent:
        sent.write(order + "\\n")
    return {"id": order}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("dies", "revoked"), [("asking", False), ("asking", True), ("approves", False)])
def test_the_worker_sends_what_was_approved_after_its_proposer_died(tmp_path, dies, revoked):
    """SIGKILL after the question, or after the yes is durable: once, by whoever works; taken back, not at all."""
    (tmp_path / "shop.py").write_text(SHOP)
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:reader") as ledger:
        asks(ledger, actions=("pay",))
    command = [sys.executable, "-c", PROPOSER, dies, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proposer:
        operation = proposer.stdout.readline().strip()
        proposer.send_signal(signal.SIGKILL)
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:reader") as ledger:
        if dies == "asking":
            ledger.decisions.approve(operation, **MARA)
        assert (ledger.get(operation).permission, (tmp_path / "sent").exists()) == (Permission.AUTHORIZED, False)
        if revoked:
            ledger.decisions.revoke(operation, **DANA)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import shop\n"
        "from counterfoil.runtime.worker import Worker\n"
        "Worker(shop.ledger).sweep(); Worker(shop.ledger).sweep(); shop.ledger.close()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    sent = (tmp_path / "sent").read_text().split() if (tmp_path / "sent").exists() else []
    assert sent == ([] if revoked else ["o1"])
    with counterfoil.open(tmp_path / "receipts.db") as ledger:
        assert ledger.get(operation).outcome is (Outcome.UNOBSERVED if revoked else Outcome.SUCCEEDED)
        assert audit(ledger.history(operation)) == ()


@pytest.mark.parametrize("basis", ["operator_override", "same_key_replay"])
def test_a_basis_for_another_attempt_sends_no_first_one(ledger, basis):
    """An approved operation that was never sent goes under its approval, and not under what is named instead of it."""
    pay = Tool(asks(ledger))
    asked = pay.call("o1")
    ledger.decisions.approve(asked.id, **MARA)
    with pytest.raises(NoBasis, match="nothing was attempted yet"):
        ledger.attempt(asked.id, basis=basis, by="dana")
    assert pay.calls == []
    assert ledger.attempt(asked.id, by="dana").outcome is Outcome.SUCCEEDED


def test_a_breaker_stops_what_is_new_until_something_is_settled(ledger):
    """Nothing new goes while too much is unknown; what is begun is still answered, and settled."""
    limit = Breaker(name="psp", unknown_exposure_max=15.0)
    ends = [TimeoutError(), TimeoutError()]
    pay = Tool(
        asks(ledger, actions=("none",), breakers=(limit,)), "pay", *ends, value=lambda order, amount, note: amount
    )
    lost = [pay.call("o1", 10), pay.call("o2", 11)]
    with pytest.raises(BreakerOpen, match=r"21\.00 of at most 15\.00"):
        pay.call("o3", 1)
    assert pay.call("o1", 10).standing is Standing.UNRESOLVED
    ledger.resolve(lost[1].id, "succeeded", evidence={"id": "re_2"}, by="mara", reason="seen at the provider")
    assert pay.call("o3", 1).outcome is Outcome.SUCCEEDED
    assert len(pay.calls) == 3


def test_what_waits_is_passed_up_again_and_again(ledger):
    """An unsettled operation is escalated when its time comes and after each period; a wait starts the clock anew."""
    up = Escalation(after_seconds=HOUR, repeat_seconds=HOUR, to="the lead")
    pay = Tool(asks(ledger, actions=("none",), escalation=(up,)), "pay", TimeoutError())
    lost, worker = pay.call("o1"), Worker(ledger)
    worker.sweep()
    assert "escalate" not in decisions_on(ledger, lost.id)
    for passed in (1, 2):
        later(ledger, passed * (HOUR + 60))
        worker.sweep()
        worker.sweep()
        assert decisions_on(ledger, lost.id).count("escalate") == passed
    ledger.decisions.wait_until(lost.id, ledger.store.now() + 5 * HOUR, **MARA)
    later(ledger, 5 * HOUR)
    worker.sweep()
    assert decisions_on(ledger, lost.id).count("escalate") == 2
    later(ledger, 8.5 * HOUR)  # an hour after the end of the wait, which began two hours in
    worker.sweep()
    assert decisions_on(ledger, lost.id).count("escalate") == 3


@pytest.mark.filterwarnings("ignore:.*no owner")
def test_what_nobody_owns_is_passed_up_as_such(ledger):
    """Without an owner it says so each time, until somebody has taken it and settled it."""
    up = Escalation(after_seconds=HOUR, repeat_seconds=HOUR, to="the lead")

    def pay(order):
        raise TimeoutError

    asks(ledger, actions=("none",), escalation=(up,))
    lost, worker = ledger.action(pay, key=lambda order: order, account="acct")("o1"), Worker(ledger)
    for passed in (1, 2):
        later(ledger, passed * (HOUR + 60))
        worker.sweep()
    ledger.decisions.assign(lost.id, "mara", **MARA)
    later(ledger, 4 * HOUR)
    worker.sweep()
    events = [decided_of(e) for e in ledger.history(lost.id).events if e.kind is EventKind.DECIDED]
    said = [(d.facts["to"], d.reason.partition(", ")[2]) for d in events if d.decision == "escalate"]
    assert said == [("the lead", "owned by nobody")] * 2 + [("the lead", "owned by mara")]
    ledger.resolve(lost.id, "rejected", evidence={"ticket": "T-1"}, by="mara", reason="seen")
    later(ledger, 9 * HOUR)
    worker.sweep()
    assert decisions_on(ledger, lost.id).count("escalate") == len(said)


def test_production_refuses_what_nobody_owns(tmp_path):
    """A developer is warned; a deployment is refused before anything can be called."""
    with counterfoil.open(tmp_path / "receipts.db", production=True) as ledger:
        with pytest.raises(NotDeclared, match="no owner and no authoriser"):
            ledger.action(print, name="pay", key="k")
        assert ledger.registry == {}


def test_code_that_changed_is_approved_anew_and_sent_by_the_worker(tmp_path):
    """Approved, not sent, deployed anew: people are asked about the new code, and its worker sends it once."""
    path, calls = tmp_path / "receipts.db", []

    def before(order):
        raise counterfoil.NotSent("no connection")

    def after(order):
        calls.append(order)
        return {"id": order}

    for function, sweeps in ((before, 1), (after, 3)):
        with counterfoil.open(path, actor="agent:desk") as ledger:
            pay = asks(ledger).action(function, name="pay", key=lambda order: order, **WHO)
            asked = pay("o1")
            assert asked.permission is Permission.PENDING
            ledger.decisions.approve(asked.id, **MARA)
            for _ in range(sweeps):
                Worker(ledger).sweep()
            assert [wrong for history in ledger.store.histories() for wrong in audit(history)] == []
    assert calls == ["o1"]


def test_an_end_is_recorded_although_a_check_keeps_it_from_going(ledger):
    """Put off because its check refuses, and over before it is tried again: the next sweep says so, on record."""
    clock = [ledger.store.now()]
    ledger.store._clock = lambda: clock[0]
    refused = ["closed on Sundays"]

    def check(order, **_):
        if refused and clock[0] > started:
            raise ValueError(refused[0])

    started = clock[0]
    pay = Tool(asks(ledger), "pay", check=check)
    asked = pay.call("o1")
    ledger.decisions.approve(asked.id, **MARA)
    worker = Worker(ledger)
    for seconds in (HOUR - 1, HOUR + 1):
        clock[0] = started + seconds
        worker.sweep()
    refused.clear()
    assert ledger.get(asked.id).permission is Permission.EXPIRED
    assert decisions_on(ledger, asked.id) == ["approve", "expire"]
    assert pay.calls == []
