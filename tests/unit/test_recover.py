"""The recover and work plans by hand: what nobody reports on is unknown, and only proof of death makes it quiet."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import WIRE, approved, asked, claim, faults, wanted, who, yes
from tests.crash.stepping import (
    NOON,
    PAYLOAD,
    SECONDS,
    action,
    claimed,
    declined,
    draw,
    ends,
    erased,
    held,
    observed,
    order,
    ruled,
    steady,
)  # fmt: skip

from counterfoil.domain.answer import Silent
from counterfoil.domain.command import Amended, Declined
from counterfoil.domain.consent import revoke
from counterfoil.domain.event import Decided, attempts_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.looking import NOT_DUE
from counterfoil.domain.terms import Required
from counterfoil.domain.words import AttemptClass, Basis, Dispatch, Finding, Outcome, Permission, Standing
from counterfoil.plans.effects import Form, Hand, Look, Now, Send, Uptime, Validate
from counterfoil.plans.recover import order_of, recover, work

DEADLINE = NOON + SECONDS


def row(history, **columns):
    return msgspec.structs.replace(history, operation=msgspec.structs.replace(history.operation, **columns))


def unknown(**said):
    return observed(claimed(), Finding.UNKNOWN, **said)


def recovered(history, hand, now=None):
    """The plan's evidence and what it returns, with a worker in that hand at that time; None: nothing was recorded."""
    plan = recover(history, action(), draw(2))
    assert isinstance(next(plan), Hand)
    try:
        effect = plan.send(hand)
        if isinstance(effect, Now):
            effect = plan.send(now)
        if isinstance(effect, Uptime):
            effect = plan.send(steady(NOON + 30))
    except StopIteration as stop:
        return None, stop.value
    after = ruled(history, effect.rule, NOON + 30)
    return attempts_of(after.events)[0][-1], ends(plan, Amended(history=after))


@pytest.mark.parametrize(
    ("hand", "now", "quiesced"),
    [("dead", None, True), *((hand, DEADLINE + 1, False) for hand in ("alive", "unknown", "anything else"))],
)
def test_what_nobody_reports_on_is_unknown(hand, now, quiesced):
    """A dead worker, or any after its deadline: unknown, and quiet only where it is dead.

    A worker that lives may have been told that its claim failed: it never reports, and nobody else can tell.
    """
    attempt, after = recovered(claimed(), hand, now)
    assert (attempt.finding, attempt.quiesced) == (Finding.UNKNOWN, quiesced)
    assert (after.operation.outcome, after.operation.exposure) == (Outcome.UNKNOWN, 1)


@pytest.mark.parametrize(("hand", "now"), [("alive", DEADLINE), ("alive", NOON), ("unknown", DEADLINE)])
def test_what_may_still_report_is_left_alone(hand, now):
    """Whoever is not proven dead is given until its deadline."""
    history = claimed()
    assert recovered(history, hand, now) == (None, history)


def test_only_proof_of_death_adds_to_an_unknown():
    """Unknown is on record already: a lapsed deadline adds nothing, a dead worker makes it quiet."""
    loose = unknown(quiesced=False)
    assert recovered(loose, "unknown") == (None, loose)
    assert recovered(loose, "alive") == (None, loose)
    attempt, after = recovered(loose, "dead")
    assert (attempt.finding, attempt.quiesced) == (Finding.UNKNOWN, True)
    assert after.operation.dispatch is Dispatch.COMPLETED


@pytest.mark.parametrize(
    "history",
    [unknown(), observed(claimed(), Finding.SUCCEEDED, effect="pay"), held()],
    ids=["quiet", "settled", "held"],
)
def test_there_is_nothing_to_recover(history):
    """What is quiet, settled or was never attempted asks for nobody's hand."""
    assert ends(recover(history, action(), draw(2))) == history


def test_recovering_at_once_with_somebody_else():
    """Two recoveries write one word each at most; the one that comes second goes on with what stands there."""
    plan = recover(claimed(), action(), draw(2))
    next(plan)
    assert isinstance(plan.send("dead"), Uptime)
    plan.send(steady(NOON + 30))
    assert ends(plan, Declined(because=("recorded already",), history=unknown())) == unknown()
    plan = recover(claimed(), action(), draw(2))
    next(plan)
    assert isinstance(plan.send("dead"), Uptime)
    plan.send(steady(NOON + 30))
    assert ends(plan, Declined(because=("recorded already",), history=None)) == claimed()


def test_a_worker_that_reports_meanwhile_is_not_called_dead():
    """Between the look for its hand and the record it may have reported: nothing is written over what it said."""
    plan = recover(claimed(), action(), draw(2))
    next(plan)
    assert isinstance(plan.send("dead"), Uptime)
    effect = plan.send(steady(NOON + 30))
    settled = observed(claimed(), Finding.SUCCEEDED, effect="pay")
    assert declined(settled, effect.rule) == ("its worker has reported back",)
    assert declined(unknown(), effect.rule) == ("its worker has reported back",)
    assert attempts_of(ruled(unknown(quiesced=False), effect.rule).events)[0][-1].quiesced


# -- work ------------------------------------------------------------------------------------------------------------


def test_a_look_that_is_due_is_made():
    """Recovered and unknown: the worker pays a look and makes it."""
    history = row(unknown(), due_at=NOON)
    plan = work(history, order(action()), draw(2), by="w")
    paid = ruled(history, next(plan).rule, NOON + 60)
    assert isinstance(plan.send(Amended(history=paid)), Look)
    amend = plan.send((Silent(may_have_left=True, reason="reset"),))
    ended = ends(plan, Amended(history=ruled(paid, amend.rule, NOON + 61)))
    assert (ended.standing, ended.operation.step) == (Standing.UNRESOLVED, "look")


def test_a_look_that_is_not_due_waits():
    """Nothing is passed on because it is early."""
    history = row(unknown(), due_at=NOON + 900)
    plan = work(history, order(action()), draw(2), by="w")
    why = declined(history, next(plan).rule)
    assert why == (NOT_DUE,)
    assert ends(plan, Declined(because=why, history=history)).operation.step == "look"


@pytest.mark.parametrize(("looks", "after"), [(5, "replay"), (6, "replay")])
def test_a_spent_budget_passes_on(looks, after):
    """Looks that were paid and died in the making are spent: the replay is next, with the reason on record."""
    history = row(unknown(), due_at=NOON, looks=looks)
    plan = work(history, order(action()), draw(2), by="w")
    amend = plan.send(None)
    amend = plan.send(Declined(because=declined(history, amend.rule), history=history))
    passed = ruled(history, amend.rule)
    ended = ends(plan, Amended(history=passed))
    assert (ended.operation.step, ended.operation.outcome) == (after, Outcome.UNKNOWN)
    assert msgspec.json.decode(passed.events[-1].record, type=Decided).reason == "the read budget is spent"


def test_a_look_nobody_can_make_is_for_a_person():
    """With its payload erased there is nothing to compare with: no read is paid, and somebody is asked."""
    history = erased(unknown(of=action("lab.lookup")))
    plan = work(history, order(action("lab.lookup")), draw(2), by="w")
    amend = next(plan)
    assert ends(plan, Amended(history=ruled(history, amend.rule))).operation.step == "review"


def to_replay(history=None):
    history = history or row(unknown(), step="replay", due_at=NOON)
    plan = work(history, order(action()), draw(2), by="w")
    return history, plan, next(plan)


def test_a_granted_replay_is_one_further_attempt():
    """The worker claims on the basis of the same key and sends the frozen payload; whatever comes back is recorded."""
    history, plan, amend = to_replay()
    again = ruled(history, amend.rule, NOON + 60)
    send = plan.send(Amended(history=again))
    assert isinstance(send, Send)
    assert (send.attempt, send.order.provider_key, send.order.payload) == (2, "op_1", PAYLOAD)
    assert msgspec.json.decode(again.events[-1].record)["basis"] == Basis.SAME_KEY_REPLAY
    settle = plan.send(Silent(may_have_left=True, reason="reset"))
    assert msgspec.json.decode(settle.record, type=Evidence).attempt == 2
    plan.close()


def test_a_refused_replay_is_for_a_person():
    """No basis holds: review, with every reason on record, and nothing is sent."""
    history, plan, _ = to_replay()
    amend = plan.send(Declined(because=("the time is over",), history=history))
    ended = ends(plan, Amended(history=ruled(history, amend.rule)))
    assert (ended.operation.step, ended.because) == ("review", ("the time is over",))


def test_a_replay_somebody_else_claimed_is_in_hand():
    """What another worker claimed meanwhile is not taken from it."""
    history, plan, amend = to_replay()
    theirs = ruled(history, amend.rule, NOON + 60)
    amend = plan.send(Declined(because=("an attempt may have left",), history=theirs))
    why = declined(theirs, amend.rule)
    ended = ends(plan, Declined(because=why, history=theirs))
    assert (why, ended.operation.step) == (("nothing to hand over",), "recover")
    _, plan, _ = to_replay()
    plan.send(Declined(because=("x",), history=theirs))
    assert ends(plan, Declined(because=why, history=None)).operation == theirs.operation


def test_a_replay_is_checked_like_every_attempt():
    """Business that has moved on refuses the worker too, and a person is asked."""
    of = action(checked=True)
    history = row(unknown(), step="replay", due_at=NOON)
    plan = work(history, order_of(history, of), draw(2), by="w")
    assert isinstance(next(plan), Validate)
    amend = plan.send("cancelled")
    assert ends(plan, Amended(history=ruled(history, amend.rule))).because == ("cancelled",)


@pytest.mark.parametrize(
    ("history", "standing"),
    [
        (row(unknown(), step="review"), Standing.UNRESOLVED),
        (observed(claimed(), Finding.SUCCEEDED, effect="pay", result=1), Standing.EXISTING),
    ],
)
def test_there_is_nothing_to_do(history, standing):
    """What is with a person or settled is answered as it stands."""
    ended = ends(work(history, order(action()), draw(2), by="w"))
    assert (ended.standing, ended.operation) == (standing, history.operation)


def test_nothing_is_taken_from_the_present():
    """Payload, destination, key and identity of a stored operation are those it was frozen with."""
    moved = action(destination="https://elsewhere.example", account="other")
    for history in (claimed(), held()):
        made = order_of(history, moved)
        assert made.intent == order().intent
        assert made.arguments is None
    assert order_of(erased(held()), moved).intent.payload == b""


# -- what people are asked -------------------------------------------------------------------------------------------


def test_what_was_approved_is_sent_by_the_worker():
    """Its proposer has left: the worker claims it once, under the approval, with the frozen payload."""
    history = approved()
    plan = work(history, wanted(), draw(2), by="w")
    assert isinstance(next(plan), Now)
    assert isinstance(plan.send(NOON + 2), Form)
    amend = plan.send(WIRE)
    after = ruled(history, amend.rule, NOON + 2)
    send = plan.send(Amended(history=after))
    assert isinstance(send, Send)
    assert send.order.payload == PAYLOAD
    assert declined(after, amend.rule) == ("this attempt is claimed already",)


def test_what_was_taken_back_meanwhile_is_not_sent():
    """Revoked between the worker's reading and its claim: nothing is written and no byte leaves."""
    history = approved()
    plan = work(history, wanted(), draw(2), by="w")
    next(plan)
    plan.send(NOON + 2)
    amend = plan.send(WIRE)
    revoked = ruled(history, revoke(who(history)), NOON + 2)
    refused = amend.rule(revoked, NOON + 3)
    ended = ends(plan, msgspec.structs.replace(refused, history=revoked))
    assert "permission is revoked" in ended.because
    assert ended.standing is Standing.EXISTING


def test_the_worker_records_that_nobody_answered():
    """A question whose time is over is expired on record, and nothing is sent."""
    history = asked()
    plan = work(history, wanted(), draw(2), by="w")
    after = ruled(history, next(plan).rule, NOON + 101)
    ended = ends(plan, Amended(history=after))
    assert (ended.operation.permission, ended.standing) == (Permission.EXPIRED, Standing.EXISTING)


def test_the_end_of_an_approval_comes_before_anything_else():
    """Nobody sent it in time, because a check refused or an equal held it: its end is on record all the same."""
    history = approved()
    plan = work(history, wanted(action(checked=True)), draw(2), by="w")
    assert isinstance(next(plan), Now)
    after = ruled(history, plan.send(NOON + 102).rule, NOON + 102)
    ended = ends(plan, Amended(history=after))
    assert (ended.operation.permission, ended.operation.step) == (Permission.EXPIRED, "")


def test_the_worker_records_that_nobody_called_again():
    """Approved and stayed, and its time is over: it waits for its caller no longer."""
    stayed = observed(ruled(approved(), claim(approved()), NOON + 2), Finding.NOT_SENT, at=NOON + 3)
    assert stayed.operation.step == "call"
    plan = work(stayed, wanted(), draw(3), by="w")
    amend = next(plan)
    assert declined(stayed, amend.rule, NOON + 101) == ("its permission has not ended",)
    after = ruled(stayed, amend.rule, NOON + 102)
    assert ends(plan, Amended(history=after)).operation.permission is Permission.EXPIRED
    assert faults(after) == []


def test_an_answer_that_came_first_is_left_alone():
    """Answered between the worker's reading and its record: nothing has ended."""
    plan = work(asked(), wanted(), draw(2), by="w")
    refused = next(plan).rule(approved(), NOON + 2)
    assert isinstance(refused, Declined)
    assert ends(plan, refused).standing is Standing.PENDING


def test_what_moved_is_approved_for_the_place_it_goes_to():
    """Another destination is another question; what is approved, formed, claimed and sent names the same place."""
    moved = wanted(action(destination="https://moved.example"))
    history = approved()
    for asks, at in ((True, NOON + 2), (False, NOON + 4)):
        made = msgspec.structs.replace(order_of(history, moved.action), terms=moved.terms)
        plan = work(history, made, draw(2), by="w")
        next(plan)
        assert plan.send(at).order.destination == "https://moved.example"
        amend = plan.send("wi1:moved")
        after = ruled(history, amend.rule, at)
        if asks:
            assert msgspec.json.decode(after.events[-1].record)["because"] == ["destination changed", "wire changed"]
            history = ruled(after, yes(after), NOON + 3)
    assert plan.send(Amended(history=after)).order.destination == "https://moved.example"
    assert faults(after) == []


def test_what_may_have_left_is_not_moved():
    """The same key protects at the place it was sent to: a replay goes there, as it was approved, or nowhere."""
    required = Required(seconds=1e6, attempts=tuple(AttemptClass), uses=2)
    made = wanted(required=required)
    history = approved(made)
    history = observed(ruled(history, claim(history, made), NOON + 2), Finding.UNKNOWN, of=action(), at=NOON + 3)
    moved = action(destination="https://moved.example")
    again = msgspec.structs.replace(order_of(history, moved), terms=made.terms)
    plan = work(row(history, step="replay"), again, draw(3), by="w")
    assert next(plan).order.destination == "https://api.example"
    after = ruled(history, plan.send(WIRE).rule, NOON + 4)
    assert plan.send(Amended(history=after)).order.destination == "https://api.example"
    assert faults(after) == []
