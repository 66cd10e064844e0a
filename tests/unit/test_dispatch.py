"""The dispatch plan by hand: what is yielded in which order, and what every reply and interruption comes to."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.stepping import (
    NOON,
    PAYLOAD,
    SECONDS,
    action,
    claim_of,
    claimed,
    draw,
    ends,
    erased,
    held,
    observed,
    order,
    ruled,
    steady,
)  # fmt: skip

from counterfoil.domain import canonical
from counterfoil.domain.answer import Replied, Returned, Silent
from counterfoil.domain.command import (
    Amend,
    Amended,
    Claim,
    Collision,
    Conflict,
    Declined,
    Existing,
    NewlyHeld,
    Settle,
    Settled,
    Stale,
)  # fmt: skip
from counterfoil.domain.errors import (
    CheckRefused,
    InvariantBroken,
    KeyConflict,
    NoSuchOperation,
    NotRecorded,
    StoreBusy,
)  # fmt: skip
from counterfoil.domain.event import EventKind
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.payload import RESULT_BYTES_MAX
from counterfoil.domain.words import Basis, Dispatch, Finding, Outcome, Standing
from counterfoil.plans.claims import ClaimForm
from counterfoil.plans.dispatch import DRAWS_MAX, dispatch, further, may_dispatch
from counterfoil.plans.effects import Find, Redraw, Send, Validate
from counterfoil.plans.late import late

DONE = Replied(status=201, body=b'{"id":"ef_1","state":"done"}')
INTERRUPTIONS = [KeyboardInterrupt, SystemExit, type("CancelledLike", (BaseException,), {})]


def to_send(made=None):
    """A plan that has claimed, and its send."""
    plan = dispatch(made or order(), draw())
    claim = next(plan)
    assert isinstance(claim, Claim)
    effect = plan.send(claim_of(claimed(made)))
    assert isinstance(effect, Send)
    return plan, effect


def settled(plan, settle, at=NOON + 2):
    """What the plan returns once its settlement is durable."""
    assert isinstance(settle, Settle)
    return ends(plan, Settled(at=at, head=b"h"))


def evidence_in(command):
    return msgspec.json.decode(command.record, type=Evidence)


# -- the ordinary way ------------------------------------------------------------------------------------------------


def test_claim_then_send_then_record():
    """Three effects: the receipt is durable before the one send, and its answer is recorded after it."""
    made = order(arguments=("own",))
    plan, send = to_send(made)
    assert (send.operation, send.attempt, send.token, send.deadline) == ("op_1", 1, "w.1", NOON + SECONDS)
    assert (send.order.payload, send.order.provider_key, send.arguments) == (PAYLOAD, "op_1", ("own",))
    settle = plan.send(DONE)
    assert evidence_in(settle).finding is Finding.SUCCEEDED
    ended = settled(plan, settle)
    assert (ended.standing, ended.operation.outcome, ended.result) == (
        Standing.NEW, Outcome.SUCCEEDED, {"id": "ef_1", "state": "done"},
    )  # fmt: skip
    assert (ended.operation.seq, ended.operation.updated_at, ended.operation.due_at) == (2, NOON + 2, 0.0)


@pytest.mark.parametrize(
    ("says", "finding", "contradicts"), [(10, Finding.SUCCEEDED, False), (2, Finding.UNKNOWN, True)]
)
def test_an_answer_is_compared_with_what_was_sent(says, finding, contradicts):
    """Also one that comes when nobody waits any more."""
    made = action("lab.key")
    rule = msgspec.structs.replace(made.contract.answers[0], match={"/amount": "/n"})
    comparing = msgspec.structs.replace(made, contract=msgspec.structs.replace(made.contract, answers=(rule,)))
    answer = Replied(status=201, body=b'{"state":"done","n":%d}' % says)
    plan, send = to_send(order(comparing))
    recorded = evidence_in(plan.send(answer))
    assert (recorded.finding, recorded.contradicts) == (finding, contradicts)
    plan = late("op_1", comparing, 1, answer, draw(), send.order.payload)
    next(plan)
    amend = plan.send(steady(NOON))
    assert (evidence_in(amend).finding, evidence_in(amend).contradicts) == (finding, contradicts)


def test_what_a_replay_returns_is_what_the_first_call_returns():
    """The action's declared part of the result; what is too large to keep is its own call's alone."""
    plan, _ = to_send(order(action("function.plain", result=("/id",))))
    ended = settled(plan, plan.send(Returned(value={"id": 1, "rest": "x" * 100_000})))
    assert (ended.result, ended.kept) == ({"id": 1}, True)
    plan, _ = to_send(order(action("function.plain")))
    ended = settled(plan, plan.send(Returned(value={"rest": "x" * 100_000})))
    assert (ended.result, ended.kept) == ({"rest": "x" * 100_000}, False)
    plan, send = to_send(order(action("function.plain")))
    send.flight.returned = {1, 2}
    ended = settled(plan, plan.send(Returned(value=None, kept=False)))
    assert (ended.result, ended.kept) == ({1, 2}, False)


@pytest.mark.parametrize("value", [{"id": "re_1"}, {"rest": "x" * RESULT_BYTES_MAX}, 7])
def test_what_returned_is_recorded_alike_with_and_without_a_form(value):
    """The form is haste alone: the same settlement, the same end, and a stale one is judged anew the same way."""
    plain = order(action("function.plain"))
    answer = Returned(value=value, text=canonical.canonical(value) if isinstance(value, dict) else None)

    def told(made):
        plan, _ = to_send(made)
        settle = plan.send(answer)
        stale, _ = to_send(made)
        stale.send(answer)
        amend = stale.send(Stale())
        history = ruled(claimed(made), amend.rule)
        return settle, settled(plan, settle), history, ends(stale, Amended(history=history))

    assert told(msgspec.structs.replace(plain, form=ClaimForm(plain))) == told(plain)


def test_silence_is_unknown_and_due_for_a_look():
    """A lost answer is recorded as unknown; the next look is due when the contract says."""
    plan, _ = to_send()
    ended = settled(plan, plan.send(Silent(may_have_left=True, reason="reset")), NOON + 2)
    assert (ended.operation.outcome, ended.operation.step) == (Outcome.UNKNOWN, "look")
    assert ended.operation.due_at == pytest.approx(NOON + 2 + 0.2 * 1.1, rel=0, abs=1e-3)


# -- the semantic check ----------------------------------------------------------------------------------------------


def checked():
    return order(action(checked=True))


def test_the_check_comes_before_the_claim():
    """What it allows is claimed; nothing is written before it."""
    plan = dispatch(checked(), draw())
    assert isinstance(next(plan), Validate)
    assert isinstance(plan.send(None), Claim)


def test_a_refused_new_intent_is_never_recorded():
    """With a key nobody used, the refusal is the caller's and nothing was written."""
    plan = dispatch(checked(), draw())
    next(plan)
    assert isinstance(plan.send("cancelled"), Find)
    with pytest.raises(CheckRefused, match="cancelled"):
        plan.send(None)


def test_a_refusal_does_not_hide_an_existing_operation():
    """A key that was used before answers with what stands there, whatever the check says now."""
    plan = dispatch(checked(), draw())
    next(plan)
    plan.send("cancelled")
    history = observed(claimed(), Finding.SUCCEEDED, effect="pay", result={"id": 1})
    ended = ends(plan, history)
    assert (ended.standing, ended.because, ended.result) == (Standing.EXISTING, ("cancelled",), {"id": 1})


# -- the store's other answers ---------------------------------------------------------------------------------------


def test_another_intent_under_the_key_is_a_conflict():
    """The same key with other arguments is the caller's mistake; nothing is sent."""
    plan = dispatch(order(), draw())
    next(plan)
    with pytest.raises(KeyConflict, match="op_7"):
        plan.send(Conflict(operation="op_7", stored="cf1:x"))


def test_a_held_operation_is_not_sent():
    """Another of the same effect is unresolved: this one is proposed, and its caller is told by whom it is held."""
    plan = dispatch(order(), draw())
    next(plan)
    ended = ends(plan, NewlyHeld(history=held()))
    assert (ended.standing, ended.operation.held_by) == (Standing.HELD, "op_9")


def test_a_drawn_number_may_be_taken():
    """Another process drew it in the same millisecond: ids are drawn anew, and what is claimed carries them."""
    plan = dispatch(order(), draw())
    next(plan)
    assert isinstance(plan.send(Collision()), Redraw)
    claim = plan.send(draw(2))
    assert (claim.n, claim.id) == (2, "op_2")
    send = plan.send(claim_of(claimed(number=2)))
    assert (send.operation, send.order.provider_key, send.token) == ("op_2", "op_2", "w.1")


def test_drawing_anew_has_an_end():
    """A claim the store goes on refusing is a broken invariant, not a loop."""
    plan = dispatch(order(), draw())
    next(plan)
    for number in range(DRAWS_MAX):
        assert isinstance(plan.send(Collision()), Redraw)
        assert isinstance(plan.send(draw(2 + number)), Claim)
    with pytest.raises(InvariantBroken):
        plan.send(Collision())


@pytest.mark.parametrize(
    ("history", "standing"),
    [
        (claimed(), Standing.UNRESOLVED),
        (observed(claimed(), Finding.UNKNOWN), Standing.UNRESOLVED),
        (observed(claimed(), Finding.SUCCEEDED, effect="pay"), Standing.EXISTING),
        (observed(claimed(), Finding.REJECTED), Standing.EXISTING),
    ],
    ids=["in flight", "unknown", "succeeded", "rejected"],
)
def test_a_used_key_answers_and_sends_nothing(history, standing):
    """Whatever stands there is the answer, as long as anything may have left."""
    plan = dispatch(order(), draw(2))
    next(plan)
    ended = ends(plan, Existing(history=history))
    assert (ended.standing, ended.operation) == (standing, history.operation)


# -- calling again ---------------------------------------------------------------------------------------------------


def called_again(history, made=None):
    """A plan whose key was used before, at its next effect."""
    plan = dispatch(made or order(), draw(2))
    next(plan)
    return plan, plan.send(Existing(history=history))


def test_after_not_sent_the_same_call_dispatches_again():
    """It claims under the write lock and sends the frozen payload under the first provider key."""
    history = observed(claimed(), Finding.NOT_SENT)
    assert may_dispatch(history.operation)
    plan, amend = called_again(history, order(arguments=("own",)))
    again = ruled(history, amend.rule, NOON + 60)
    send = plan.send(Amended(history=again))
    assert (send.operation, send.attempt, send.order.provider_key) == ("op_1", 2, "op_1")
    assert (send.order.payload, send.arguments) == (PAYLOAD, ("own",))
    ended = settled(plan, plan.send(DONE))
    assert (ended.standing, ended.operation.outcome, ended.operation.attempts) == (Standing.NEW, Outcome.SUCCEEDED, 2)


def test_a_released_operation_is_sent_as_it_was_proposed():
    """What was held is claimed as the first attempt, with the payload frozen when it was proposed."""
    plan, amend = called_again(held())
    send = plan.send(Amended(history=ruled(held(), amend.rule, NOON + 60)))
    assert (send.attempt, send.order.payload, send.order.provider_key) == (1, PAYLOAD, "op_1")


def test_what_differs_immaterially_is_recorded_and_never_sent():
    """The values that came are kept; what goes out is what was frozen, and the caller's own arguments do not."""
    made = order(payload=b'{"amount":10,"note":"b"}', arguments=("other",))
    plan, amend = called_again(observed(claimed(), Finding.SUCCEEDED, effect="pay"), made)
    assert ruled(claimed(), amend.rule).events[-1].kind is EventKind.REPEATED
    assert ends(plan, Declined(because=(), history=None)).standing is Standing.EXISTING

    history = observed(claimed(), Finding.NOT_SENT)
    plan, amend = called_again(history, made)
    noted = ruled(history, amend.rule)
    amend = plan.send(Amended(history=noted))
    send = plan.send(Amended(history=ruled(noted, amend.rule, NOON + 60)))
    assert (send.order.payload, send.arguments) == (PAYLOAD, None)


def test_of_an_erased_payload_no_difference_is_told():
    """What is gone cannot be compared with; nothing is noted and nothing sent."""
    plan = dispatch(order(payload=b'{"other":1}'), draw(2))
    next(plan)
    history = erased(observed(claimed(), Finding.SUCCEEDED, effect="pay"))
    assert ends(plan, Existing(history=history)).standing is Standing.EXISTING


def test_an_erased_payload_is_never_sent():
    """Of what was erased no attempt is claimed, whatever the caller brings again: its digest is all that is left."""
    history = erased(observed(claimed(), Finding.NOT_SENT))
    plan, amend = called_again(history)
    reply = amend.rule(history, NOON + 60)
    assert reply == Declined(because=("its payload was erased",))
    ended = ends(plan, msgspec.structs.replace(reply, history=history))
    assert (ended.standing, ended.because) == (Standing.EXISTING, ("its payload was erased",))


@pytest.mark.parametrize(
    ("because", "standing"),
    [(("an attempt may have left",), Standing.EXISTING), (("op_9 of the same effect is unresolved",), Standing.HELD)],
)
def test_a_declined_claim_sends_nothing(because, standing):
    """Somebody else was first, or holds the effect: the answer is what stands there, with the reason."""
    history = observed(claimed(), Finding.NOT_SENT)
    plan, _ = called_again(history)
    ended = ends(plan, Declined(because=because, history=history))
    assert (ended.standing, ended.because) == (standing, because)


def test_a_further_attempt_is_checked_first():
    """The business may have moved on: a refusal sends nothing and says why; what it allows tries the bases in turn."""
    history = observed(claimed(), Finding.UNKNOWN)
    plan = further(checked(), draw(2), history, bases=(Basis.NOT_SENT, Basis.SAME_KEY_REPLAY))
    assert isinstance(next(plan), Validate)
    ended = ends(plan, "cancelled")
    assert (ended.standing, ended.because) == (Standing.UNRESOLVED, ("cancelled",))

    plan = further(checked(), draw(2), history, bases=(Basis.NOT_SENT, Basis.SAME_KEY_REPLAY))
    next(plan)
    amend = plan.send(None)
    amend = plan.send(Declined(because=("an attempt may have left",), history=history))
    send = plan.send(Amended(history=ruled(history, amend.rule, NOON + 60)))
    assert isinstance(send, Send)
    assert settled(plan, plan.send(DONE)).standing is Standing.NEW


def test_every_refused_basis_says_why():
    """The reasons of all bases are told, each once, and nothing is sent."""
    history = observed(claimed(), Finding.UNKNOWN)
    plan = further(order(), draw(2), history, bases=(Basis.NOT_SENT, Basis.ABSENCE_PROVEN))
    next(plan)
    plan.send(Declined(because=("one", "both"), history=history))
    ended = ends(plan, Declined(because=("both", "two"), history=None))
    assert (ended.because, ended.standing) == (("one", "both", "two"), Standing.UNRESOLVED)


# -- interruptions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interruption", INTERRUPTIONS)
@pytest.mark.parametrize(("left", "finding"), [(True, Finding.UNKNOWN), (False, Finding.NOT_SENT)])
def test_an_interrupted_send_records_what_is_known_and_raises_it_again(interruption, left, finding):
    """Unknown where a byte may have left, not_sent where provably none did; then the interruption goes on."""
    plan, send = to_send()
    send.flight.may_have_left = left
    settle = plan.throw(interruption())
    evidence = evidence_in(settle)
    assert (evidence.finding, evidence.quiesced) == (finding, True)
    assert evidence.reason == f"interrupted_{interruption.__name__.lower()}"
    with pytest.raises(interruption):
        plan.send(Settled(at=NOON + 2, head=b"h"))


def test_a_send_that_goes_on_without_its_caller_is_unknown():
    """Detached is never not_sent, even before its first byte, and never quiesced: its answer comes late."""
    plan, send = to_send()
    send.flight.detached = True
    evidence = evidence_in(plan.throw(KeyboardInterrupt()))
    assert (evidence.finding, evidence.quiesced) == (Finding.UNKNOWN, False)


def test_an_answer_in_the_moment_of_the_interruption_is_kept():
    """What had come back already is recorded, not the interruption."""
    plan, send = to_send()
    send.flight.may_have_left, send.flight.answer = True, DONE
    assert evidence_in(plan.throw(KeyboardInterrupt())).finding is Finding.SUCCEEDED


@pytest.mark.parametrize("trouble", [StoreBusy("busy"), NotRecorded("op_1", spooled=True)])
def test_the_interruption_goes_on_although_the_store_does_not(trouble):
    """A store that cannot take the record does not replace Ctrl+C: the attempt reads as unknown."""
    plan, _ = to_send()
    plan.throw(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        plan.throw(trouble)


def test_an_adapter_that_breaks_its_promise_is_unknown():
    """An exception out of a send is no answer: recorded as unknown and raised again."""
    plan, send = to_send()
    send.flight.may_have_left = True
    assert evidence_in(plan.throw(ValueError("secret"))).reason == "interrupted_valueerror"
    with pytest.raises(ValueError, match="secret"):
        plan.send(Settled(at=NOON + 2, head=b"h"))


@pytest.mark.parametrize("interruption", INTERRUPTIONS)
def test_an_interrupted_claim_is_withdrawn(interruption):
    """It may stand and nothing has left: it is written down as not_sent, and the interruption goes on."""
    plan = dispatch(order(), draw())
    next(plan)
    amend = plan.throw(interruption())
    assert (amend.operation, ruled(claimed(), amend.rule).operation.dispatch) == ("op_1", Dispatch.NOT_STARTED)
    with pytest.raises(interruption):
        plan.send(Amended(history=claimed()))


@pytest.mark.parametrize("trouble", [NoSuchOperation("op_1"), StoreBusy("busy")])
def test_a_claim_that_does_not_stand_needs_no_withdrawal(trouble):
    """Where the key was used before, or the store is silent, Ctrl+C is still what its caller gets."""
    plan = dispatch(order(), draw())
    next(plan)
    plan.throw(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        plan.throw(trouble)


@pytest.mark.parametrize("trouble", [StoreBusy("busy"), ValueError("a defect")])
def test_a_refused_claim_is_the_callers(trouble):
    """Nothing is durable, nothing is sent, nothing more is written."""
    plan = dispatch(order(), draw())
    next(plan)
    with pytest.raises(type(trouble)):
        plan.throw(trouble)


def test_nobody_drives_any_more():
    """A plan that is dropped asks for nothing more, wherever it is dropped: the process may be gone."""
    plan = dispatch(order(), draw())
    next(plan)
    plan.close()
    plan, _ = to_send()
    plan.close()
    plan, _ = to_send()
    plan.send(DONE)
    plan.close()


# -- recording -------------------------------------------------------------------------------------------------------


def test_evidence_is_appended_where_somebody_else_wrote():
    """A stale settlement is judged anew from the whole history, under the lock."""
    plan, _ = to_send()
    settle = plan.send(DONE)
    amend = plan.send(Stale())
    assert isinstance(amend, Amend)
    assert (amend.record, amend.body) == (settle.record, settle.body)
    history = ruled(observed(claimed(), Finding.UNKNOWN, quiesced=False), amend.rule)
    ended = ends(plan, Amended(history=history))
    assert (ended.operation.outcome, ended.standing) == (Outcome.SUCCEEDED, Standing.NEW)


def test_an_interrupted_settlement_is_appended():
    """Ctrl+C while the answer is being written: it is written once more, recognised as the same, and goes on."""
    plan, _ = to_send()
    settle = plan.send(DONE)
    amend = plan.throw(KeyboardInterrupt())
    assert (amend.record, amend.body) == (settle.record, settle.body)
    with pytest.raises(KeyboardInterrupt):
        plan.send(Amended(history=claimed()))

    plan, _ = to_send()
    plan.send(DONE)
    plan.throw(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        plan.throw(NotRecorded("op_1", spooled=True))


def test_an_answer_that_cannot_be_stored_is_said():
    """The caller learns that it was sent, answered, and not recorded."""
    plan, _ = to_send()
    plan.send(DONE)
    with pytest.raises(NotRecorded):
        plan.throw(NotRecorded("op_1", spooled=True))
