"""Settling what is unknown: by a look, a person's finding, a spooled answer, or an attempt with a basis."""

from __future__ import annotations

import json
import sqlite3
import threading
from functools import partial

import pytest
from tests.crash.world import STEP_SECONDS, World

from counterfoil.domain.audit import audit
from counterfoil.domain.canonical import parse
from counterfoil.domain.errors import BadValue, NoBasis, NoSuchOperation, NotRecorded, PayloadRefused, UnknownAction
from counterfoil.domain.payload import content
from counterfoil.domain.words import Discrepancy, Dispatch, Lifecycle, Outcome, Standing
from counterfoil.runtime.worker import Worker


@pytest.fixture
def worlds(tmp_path):
    """Make worlds with a ledger open on each; whatever was done with one must verify."""
    made = []

    def make(kind, *fates, **changes):
        world = World(tmp_path / f"w{len(made)}", kind, *fates, **changes)
        made.append(world.open())
        return world, made[-1]

    yield make
    for ledger in made:
        assert [found for history in ledger.store.histories() for found in audit(history)] == []
        ledger.close()


# -- looking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lab.key", "lab.lookup"])
def test_a_look_settles_a_lost_reply(worlds, kind):
    """UNKNOWN, then one read, then SUCCEEDED with the provider's own name for it; the same call then has the result."""
    world, ledger = worlds(kind, "reply_lost")
    lost = world.call(ledger)
    assert (lost.outcome, lost.lifecycle) == (Outcome.UNKNOWN, Lifecycle.OUTCOME_UNKNOWN)
    found = ledger.reconcile(lost.id)
    assert (found.outcome, found.operation.settled_by, found.operation.looks) == (
        Outcome.SUCCEEDED,
        "succeeded:look",
        1,
    )
    assert lost.outcome is Outcome.UNKNOWN
    assert lost.refresh().expect() == found.expect() == world.call(ledger).expect() == {"id": "ef_1", "state": "done"}
    assert len(world.truth.requests) == 1


def test_a_look_that_finds_nothing_leaves_it_unknown(worlds):
    """Nothing there is no proof without an assumed delivery time: unknown, with what is missing on record."""
    world, ledger = worlds("lab.lookup", "request_lost")
    lost = world.call(ledger)
    for looks in (1, 2):
        found = ledger.reconcile(lost.id)
        assert (found.outcome, found.lifecycle, found.operation.looks) == (
            Outcome.UNKNOWN, Lifecycle.RECONCILING, looks,
        )  # fmt: skip
    facts = parse(content(ledger.history(lost.id).events[-1].body))["facts"]
    assert any("longest_delivery" in sentence for sentence in facts["missing"])
    assert world.provider.sent == 1


def test_asking_stops_with_the_budget(worlds):
    """Five reads are the contract's budget for workers and people together; the sixth is refused with the reason."""
    world, ledger = worlds("lab.lookup", "request_lost")
    lost = world.call(ledger)
    for _ in range(5):
        ledger.reconcile(lost.id)
    refused = ledger.reconcile(lost.id)
    assert (refused.because, refused.operation.looks) == (("the read budget is spent",), 5)
    assert refused.lifecycle is Lifecycle.MANUAL_REVIEW


def test_what_is_settled_is_not_looked_at(worlds):
    """A receipt with its result, no read."""
    world, ledger = worlds("lab.key")
    done = world.call(ledger)
    again = ledger.reconcile(done.id)
    assert (again.operation.looks, again.expect(), again.because) == (0, done.expect(), ("the operation is resolved",))


@pytest.mark.parametrize("act", ["get", "reconcile", "work", "attempt", "history"])
def test_an_unknown_id_is_named(worlds, act):
    """No operation of this store has that id, whether it is a well-formed one or not."""
    _, ledger = worlds("lab.key")
    for operation in ("op_" + "0" * 26, "nonsense", ""):
        with pytest.raises(NoSuchOperation, match=repr(operation)):
            getattr(ledger, act)(operation, **({"by": "mara"} if act == "attempt" else {}))


def test_another_processs_action_is_unknown_here(worlds, tmp_path):
    """An operation whose action is not registered here is read and listed, and never acted on."""
    world, ledger = worlds("lab.lookup", "reply_lost")
    lost = world.call(ledger)
    ledger.registry.clear()
    assert ledger.get(lost.id).outcome is Outcome.UNKNOWN
    for act in (ledger.reconcile, ledger.work, partial(ledger.attempt, by="mara")):
        with pytest.raises(UnknownAction, match=r"lab\.lookup"):
            act(lost.id)
    assert Worker(ledger).sweep() == 0
    assert Worker(ledger).pending() == []


# -- further attempts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fate", "assumed", "why"),
    [
        ("lab.key", "answered", None, "the effect took place or was accepted"),
        ("lab.nothing", "reply_lost", None, "an attempt may have left"),
        ("lab.lookup", "request_lost", None, "absence is not proven for every attempt that may have left"),
    ],
)
def test_no_attempt_without_a_basis(worlds, kind, fate, assumed, why):
    """Nothing is dispatched on a guess; every basis that does not hold says why, and a wrong one is named."""
    world, ledger = worlds(kind, fate, longest_delivery=assumed)
    first = world.call(ledger)
    with pytest.raises(NoBasis) as caught:
        ledger.attempt(first.id, by="mara")
    assert why in caught.value.because or caught.value.because == ("the outcome is settled",)
    with pytest.raises(NoBasis):  # an override is nothing that a caller can bring along
        ledger.attempt(first.id, basis="operator_override", by="mara")
    with pytest.raises(BadValue, match="same_key_replay"):
        ledger.attempt(first.id, basis="because I say so", by="mara")
    assert len(world.truth.requests) == (0 if fate == "request_lost" else 1)


def test_a_same_key_replay_that_is_asked_for(worlds):
    """The provider repeats its answer; two requests, one effect, and the receipt names the basis."""
    world, ledger = worlds("lab.key", "reply_lost", "answered")
    lost = world.call(ledger)
    again = ledger.attempt(lost.id, basis="same_key_replay", by="mara")
    assert (again.standing, again.outcome, again.operation.attempts) == (Standing.NEW, Outcome.SUCCEEDED, 2)
    assert (again.operation.exposure, len(world.truth.effects)) == (0, 1)
    assert world.truth.requests == [lost.id] * 2
    begun = [json.loads(e.record) for e in ledger.history(lost.id).events if e.kind.value == "begun"]
    assert [b.get("basis") for b in begun] == [None, "same_key_replay"]


def test_proven_absence_lets_a_person_ask_again(worlds):
    """After the assumed delivery time a look that finds nothing is absence: rejected, and a basis for one more."""
    world, ledger = worlds("lab.lookup", "request_lost", "answered", longest_delivery=60.0)
    lost = world.call(ledger)
    world.now += 71.0
    absent = ledger.reconcile(lost.id)
    assert (absent.outcome, absent.lifecycle) == (Outcome.REJECTED, Lifecycle.SAFE_TO_RETRY)
    assert world.call(ledger).standing is Standing.EXISTING
    again = ledger.attempt(lost.id, by="mara")
    assert (again.outcome, again.operation.attempts, len(world.truth.effects)) == (Outcome.SUCCEEDED, 2, 1)


def test_a_rejection_is_answered_by_a_person(worlds):
    """The same call never sends again after a rejection; an attempt on that basis is somebody's decision."""
    world, ledger = worlds("lab.nothing", "refused", "answered")
    refused = world.call(ledger)
    assert (refused.outcome, world.call(ledger).standing) == (Outcome.REJECTED, Standing.EXISTING)
    assert Worker(ledger).sweep() == 0
    assert ledger.attempt(refused.id, by="mara").outcome is Outcome.SUCCEEDED
    with pytest.raises(NoBasis):
        ledger.attempt(refused.id, by="mara")
    assert len(world.truth.effects) == 1


def test_r08_a_rejection_of_the_second_does_not_settle_the_first(worlds):
    """Attempt 1 timed out, attempt 2 is refused: attempt 1 may have happened, so the outcome stays unknown."""
    world, ledger = worlds("lab.key", "request_lost", "refused")
    lost = world.call(ledger)
    again = ledger.attempt(lost.id, basis="same_key_replay", by="mara")
    assert (again.outcome, again.operation.exposure) == (Outcome.UNKNOWN, 1)


def test_connection_refused_on_the_second_does_not_settle_the_first(worlds):
    """F3: not_sent falls back to what the other attempts come to, and frees nothing."""
    world, ledger = worlds("lab.key", "request_lost", "connect_failed", "answered")
    lost = world.call(ledger)
    again = ledger.attempt(lost.id, basis="same_key_replay", by="mara")
    assert (again.outcome, again.operation.exposure, again.dispatch) == (Outcome.UNKNOWN, 1, Dispatch.COMPLETED)
    assert world.call(ledger).standing is Standing.UNRESOLVED
    assert len(world.truth.requests) == 0


def test_a_success_after_a_failed_connection_is_clean(worlds):
    """Connection refused, called again, done: succeeded, resolved, and nothing contradicts anything."""
    world, ledger = worlds("lab.key", "connect_failed", "answered")
    world.call(ledger)
    done = world.call(ledger)
    assert (done.outcome, done.discrepancy, done.operation.unresolved) == (Outcome.SUCCEEDED, Discrepancy.NONE, 0)


def test_business_that_has_moved_on_forbids_a_further_attempt(worlds):
    """The semantic check comes before every attempt, a person's and a worker's alike."""
    world, ledger = worlds("lab.key", "request_lost", "answered")
    lost = world.call(ledger)
    world.business_allows = False
    with pytest.raises(NoBasis, match="the order was cancelled"):
        ledger.attempt(lost.id, basis="same_key_replay", by="mara")
    world.rest(ledger)
    assert ledger.get(lost.id).lifecycle is Lifecycle.MANUAL_REVIEW
    assert world.truth.requests == []


# -- a person's finding ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["succeeded", "rejected", "accepted"])
def test_a_finding_is_evidence(worlds, outcome):
    """What a person saw is recorded with the fields it rests on, and settles what was unknown."""
    world, ledger = worlds("lab.nothing", "reply_lost")
    lost = world.call(ledger)
    found = ledger.resolve(
        lost.id, outcome, evidence={"id": "ef_1", "amount": 10}, by="ann", reason="statement", how="os user"
    )
    assert (found.outcome.value, found.operation.settled_by) == (outcome, f"{outcome}:operator")
    facts = parse(content(ledger.history(lost.id).events[-1].body))["facts"]
    assert facts == {
        "by": "user:ann", "how": "os user", "reason": "statement", "evidence": {"id": "ef_1", "amount": 10},
    }  # fmt: skip
    assert world.call(ledger).outcome is found.outcome


@pytest.mark.parametrize(
    ("outcome", "said", "why"),
    [
        ("unknown", {}, "a finding is one of"),
        ("failed", {}, "a finding is one of"),
        ("succeeded", {"evidence": {}}, "at least one field"),
        ("succeeded", {"by": ""}, "not blank"),
        ("succeeded", {"attempt": 0}, "1 to 1"),
        ("succeeded", {"attempt": 2}, "1 to 1"),
    ],
)
def test_a_finding_without_ground_is_refused(worlds, outcome, said, why):
    """No evidence, no name, no such attempt or no such word: nothing is recorded."""
    world, ledger = worlds("lab.nothing", "reply_lost")
    lost = world.call(ledger)
    with pytest.raises(BadValue, match=why):
        ledger.resolve(lost.id, outcome, **{"evidence": {"id": "x"}, "by": "ann", **said})
    assert ledger.get(lost.id).operation == lost.operation


@pytest.mark.parametrize(
    ("seen", "error"),
    [(float("nan"), PayloadRefused), ({1}, PayloadRefused), ("\ud800", BadValue), ("x" * 2_000_000, PayloadRefused)],
    ids=["nan", "set", "surrogate", "huge"],
)
def test_a_finding_that_cannot_be_kept_is_refused(worlds, seen, error):
    """What was seen is written down whole or not at all, and the error says where it cannot be."""
    world, ledger = worlds("lab.nothing", "reply_lost")
    lost = world.call(ledger)
    with pytest.raises(error):
        ledger.resolve(lost.id, "succeeded", evidence={"statement": seen}, by="ann")
    assert ledger.get(lost.id).operation == lost.operation


def test_a_wrong_finding_is_contradicted_not_overwritten(worlds):
    """An answer that comes after a mistaken "rejected" opens a discrepancy: it happened, and a person must look."""
    world, ledger = worlds("lab.lookup", "reply_lost")
    lost = world.call(ledger)
    ledger.resolve(lost.id, "rejected", evidence={"list": "nothing"}, by="bob")
    happened = ledger.resolve(lost.id, "succeeded", evidence={"id": "ef_1"}, by="ann")
    assert (happened.outcome, happened.discrepancy, happened.lifecycle) == (
        Outcome.SUCCEEDED, Discrepancy.OPEN, Lifecycle.MANUAL_REVIEW,
    )  # fmt: skip
    assert happened.operation.unresolved
    assert len(ledger.history(lost.id).events) == 4


@pytest.mark.parametrize(("said", "open_"), [("rejected", True), ("succeeded", False)])
def test_an_answer_finds_that_somebody_wrote_meanwhile(worlds, said, open_):
    """A finding recorded while the answer was on its way: the answer is appended to it, and contradicts it or not."""
    world, ledger = worlds("lab.nothing")
    send = world.provider.send

    def answer_late(order, flight):
        (operation,) = ledger.store.unresolved()
        ledger.resolve(operation.id, said, evidence={"seen": said}, by="ann")
        return send(order, flight)

    world.provider.send = answer_late
    done = world.call(ledger)
    assert (done.outcome, done.discrepancy is Discrepancy.OPEN) == (Outcome.SUCCEEDED, open_)
    assert [e.kind.value for e in ledger.history(done.id).events] == ["begun", "observed", "observed"]
    assert done.expect() == {"id": "ef_1", "state": "done"} if not open_ else done.operation.unresolved


def test_a_finding_may_speak_of_one_attempt(worlds):
    """Named for one attempt it leaves the other open."""
    world, ledger = worlds("lab.key", "request_lost")
    lost = world.call(ledger)
    ledger.attempt(lost.id, basis="same_key_replay", by="mara")
    one = ledger.resolve(lost.id, "rejected", evidence={"log": "refused"}, by="ann", attempt=2)
    assert (one.outcome, one.operation.exposure, one.standing) == (Outcome.UNKNOWN, 1, Standing.UNRESOLVED)
    both = ledger.resolve(lost.id, "rejected", evidence={"log": "refused"}, by="ann", attempt=1)
    assert (both.outcome, both.operation.exposure) == (Outcome.REJECTED, 0)


# -- the store that fails --------------------------------------------------------------------------------------------


def locked(ledger):
    """Another process's write transaction, as it would be: it holds the file until it is rolled back."""
    db = sqlite3.connect(ledger.store.path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    return db


def impatient(ledger, monkeypatch):
    """A ledger whose store gives up at once, so that a test need not wait for the real time-out."""
    monkeypatch.setattr("counterfoil.runtime.executor.INSIST_FIRST_SECONDS", 0.001)
    ledger.store.query("SELECT 1")
    with ledger.store._commit.lead:
        ledger.store._connection().execute("PRAGMA busy_timeout = 1")


def test_an_answer_the_store_cannot_take_is_spooled(worlds, monkeypatch):
    """Sent, answered and not recorded: the caller is told, the answer waits beside the store, and is taken later."""
    world, ledger = worlds("lab.nothing")
    impatient(ledger, monkeypatch)
    send, holders = world.provider.send, []

    def send_and_lock(order, flight):
        answer = send(order, flight)
        holders.append(locked(ledger))
        return answer

    monkeypatch.setattr(world.provider, "send", send_and_lock)
    with pytest.raises(NotRecorded) as caught:
        world.call(ledger)
    assert caught.value.spooled
    holders[0].rollback()
    holders[0].close()
    (lost,) = ledger.store.unresolved()
    assert ledger.get(lost.id).outcome is Outcome.UNKNOWN
    ledger.spool.put("op_" + "0" * 26, b"{}", None)  # of another store: it holds nothing up
    assert Worker(ledger).sweep() >= 1
    done = ledger.get(lost.id)
    assert (done.outcome, done.operation.settled_by) == (Outcome.SUCCEEDED, "succeeded:answer")
    assert done.expect() == {"id": "ef_1", "state": "done"}
    assert ledger.drain() == 0
    assert len(list(ledger.spool.waiting())) == 1


def test_a_claim_the_store_cannot_take_sends_nothing(worlds, monkeypatch):
    """A locked or full store refuses the call; nothing left and nothing is on record."""
    from counterfoil.domain.errors import StoreBusy

    world, ledger = worlds("lab.nothing")
    impatient(ledger, monkeypatch)
    db = locked(ledger)
    with pytest.raises(StoreBusy):
        world.call(ledger)
    db.rollback()
    db.close()
    assert (world.truth.requests, ledger.store.operations(limit=1)) == ([], [])
    assert world.call(ledger).outcome is Outcome.SUCCEEDED


# -- the worker ------------------------------------------------------------------------------------------------------


def test_the_worker_does_every_step_that_is_due(worlds):
    """A lost reply is looked up when its time has come, not before, and then nothing is left to do."""
    world, ledger = worlds("lab.key", "reply_lost")
    lost = world.call(ledger)
    worker = Worker(ledger)
    assert worker.sweep() == 0
    assert [o.id for o in worker.pending()] == [lost.id]
    world.now += STEP_SECONDS
    assert worker.sweep() == 1
    assert (ledger.get(lost.id).outcome, worker.pending()) == (Outcome.SUCCEEDED, [])


def test_one_poisoned_operation_holds_up_no_other(worlds):
    """Whatever an action's own code raises is reported, and the next operation has its turn."""
    world, ledger = worlds("lab.key", "request_lost")
    (registered,) = ledger.registry.values()
    first = ledger.call(registered.order({"amount": 1}, actor="a", scopes={}, key="poison"))
    second = ledger.call(registered.order({"amount": 2}, actor="a", scopes={}, key="fine"))
    look = world.provider.look
    world.truth.arrive(second.id, {"amount": 2})

    def poisoned(order):
        if order.names.provider_key == first.id:
            raise ZeroDivisionError("a defect of the adapter")
        return look(order)

    world.provider.look = poisoned
    world.now += STEP_SECONDS
    reports = []
    Worker(ledger, report=lambda operation, what: reports.append((operation, type(what).__name__))).sweep()
    assert (first.id, "ZeroDivisionError") in reports
    assert ledger.get(second.id).outcome is Outcome.SUCCEEDED


def test_a_worker_in_a_thread_ends_with_its_ledger(tmp_path):
    """`worker=True` recovers and looks while no caller waits; closing the ledger ends it."""
    import counterfoil

    seen = threading.Event()

    def look(question):
        seen.set()
        return {"complete": True, "items": []}

    from counterfoil import contracts

    contract = contracts.load("lab.lookup")
    with counterfoil.open(tmp_path / "receipts.db", worker=True) as ledger:

        def pay(amount):
            raise TimeoutError

        guarded = ledger.action(
            pay, key=lambda amount: "o-1", look=look, contract=contract, owner="payments", authoriser="payments-lead"
        )
        assert guarded(10).outcome is Outcome.UNKNOWN
        assert seen.wait(30)
    assert not any(thread.name == "counterfoil-worker" for thread in threading.enumerate())
