"""Fences by hand: when one may be sent, what its answer proves, and what nobody may conclude from it."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import approved, claim, faults, sought, wanted, who
from tests.crash.stepping import NOON, action, claimed, declined, draw, ends, erased, observed, order, ruled, steady

from counterfoil import contracts
from counterfoil.domain import fence as rule
from counterfoil.domain import retry
from counterfoil.domain.action import Asked
from counterfoil.domain.answer import Replied, Returned, Silent
from counterfoil.domain.attempt import Attempt, fold, settle
from counterfoil.domain.command import Amended, Declined
from counterfoil.domain.contract import AutomaticAttempts, Fence
from counterfoil.domain.event import attempts_of, begun_of, encode, evidence_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.lifecycle import lifecycle
from counterfoil.domain.override import abandon
from counterfoil.domain.rejudge import NOT_KEPT, rejudge
from counterfoil.domain.rules import CONTRACT_CHANGED, claim_again, observe
from counterfoil.domain.schedule import next_step
from counterfoil.domain.template import RequestTemplate
from counterfoil.domain.terms import OneShot, Required
from counterfoil.domain.words import (
    AttemptClass,
    Basis,
    Coverage,
    Discrepancy,
    Finding,
    Lifecycle,
    Outcome,
    Source,
    Standing,
)
from counterfoil.plans.claims import begun_for
from counterfoil.plans.effects import Send, Uptime
from counterfoil.plans.fence import fence
from counterfoil.plans.late import late

NATURAL = contracts.load("lab.natural")
STAKE = Fence(
    source="register", won=("201",), lost=("412",), headers={"etag": "*"}, where={"/state": "done"},
    request=RequestTemplate(
        method="PUT", path="/natural/effects/{provider_key}", headers={"if-none-match": "*"}, body="none"
    ),
)  # fmt: skip
FENCED = msgspec.structs.replace(NATURAL, fences=(STAKE,))
OF = action(FENCED)
ANN = Asked(by="user:ann", reason="the customer has cancelled", how="terminal", fence=0)
SHUT = AttemptClass.FENCE
U, N, S, R, A, B = (
    Finding.UNKNOWN, Finding.NOT_SENT, Finding.SUCCEEDED, Finding.REJECTED, Finding.ACCEPTED, Finding.ABSENT,
)  # fmt: skip


def won(**changes):
    """The answer by which the fence came first."""
    return Replied(**({"status": 201, "headers": (("etag", "e1"),), "body": b'{"state":"done"}'} | changes))


LOST = Replied(status=412, body=b'{"error":"exists"}')
SILENCE = Silent(may_have_left=True, reason="read_timeout")


def unknown(of=OF, **said):
    """One attempt of which nobody knows what became."""
    return observed(claimed(order(of)), U, of=of, **said)


def tries(*found):
    """Attempts with these findings; the last of them is a fence."""
    *first, last = (Attempt(number=n, token=f"w.{n}", finding=f) for n, f in enumerate(found, start=1))
    return (*first, msgspec.structs.replace(last, attempt_class=SHUT))


def begun(history, of=OF, asked=ANN, at=NOON + 20, number=2):
    """The plan with its fence on record, what it sends, and the history."""
    plan = fence(order(of), draw(number), history, asked=asked)
    after = ruled(history, next(plan).rule, at)
    effect = plan.send(Amended(history=after))
    assert isinstance(effect, Send)
    return plan, effect, after


def fenced(answer, history=None, of=OF):
    """The history after a fence that was answered so, and what its caller was told."""
    plan, effect, paid = begun(history or unknown(of), of)
    assert effect.fence == 0
    said = plan.send(answer)
    evidence = msgspec.json.decode(said.record, type=Evidence)
    plan.close()
    return ruled(paid, observe(evidence, said.record, said.body, of.contract), NOON + 21)


# -- whether it may be sent --------------------------------------------------------------------------------------------


def against(contract=FENCED, index=0, attempts=None, discrepancy=Discrepancy.NONE, **given):
    """Why one lost attempt may not be fenced off."""
    lost = (Attempt(number=1, token="w.1", finding=U),) if attempts is None else attempts
    given = {"one_shot": OneShot.NO, "reason": "cancelled"} | given
    return rule.against_fence(contract, index, lost, discrepancy, **given)


@pytest.mark.parametrize(
    ("given", "because"),
    [
        ({}, ()),
        ({"contract": NATURAL}, (rule.NO_FENCE,)),
        ({"index": 1}, (rule.NO_FENCE,)),
        ({"index": -1}, (rule.NO_FENCE,)),
        ({"contract": msgspec.structs.replace(FENCED, reconcile="forbidden")}, (rule.FORBIDDEN,)),
        ({"contract": msgspec.structs.replace(FENCED, one_shot=True)}, (rule.FORBIDDEN,)),
        ({"one_shot": OneShot.YES}, (rule.FORBIDDEN,)),
        ({"one_shot": OneShot.ABSOLUTE}, (rule.FORBIDDEN,)),
        ({"attempts": tries(U, S)}, (rule.HAPPENED,)),
        ({"attempts": tries(U, A)}, (rule.HAPPENED,)),
        ({"discrepancy": Discrepancy.OPEN}, (rule.CONTRADICTED,)),
        ({"attempts": tries(None, N)}, (rule.UNREPORTED,)),
        ({"attempts": ()}, (rule.NOTHING_OPEN,)),
        ({"attempts": tries(R, B)}, (rule.NOTHING_OPEN,)),
        ({"attempts": tries(U, U)}, ()),
        ({"reason": ""}, (rule.NO_REASON,)),
    ],
)
def test_when_a_fence_may_be_sent(given, because):
    """Only over an unknown that has been reported on, by a person's reason, and where nothing forbids to touch it."""
    assert against(**given) == because


def test_a_fence_stands_on_record_before_it_leaves():
    """Its number, class, which one, who decided it and why: one durable commit, then one send under the same key."""
    _, effect, paid = begun(unknown())
    record = begun_of(paid.events[-1])
    assert (record.attempt.number, record.attempt.attempt_class, record.fence, record.basis) == (2, SHUT, 0, "")
    assert (record.by, record.reason) == (ANN.by, ANN.reason)
    assert (effect.attempt, effect.fence, effect.order.provider_key) == (2, 0, "op_1")
    assert (paid.operation.exposure, paid.operation.unresolved, paid.operation.step) == (2, 1, "recover")
    assert faults(paid) == []


def test_another_contract_proves_nothing_of_it():
    """What the receipt stands on is the only one whose fence it may be."""
    other = action(msgspec.structs.replace(FENCED, version=2))
    plan = fence(order(other), draw(2), unknown(), asked=ANN)
    assert declined(unknown(), next(plan).rule) == (CONTRACT_CHANGED,)


def test_nothing_is_fenced_that_is_gone_or_elsewhere():
    """Without its payload nobody knows its name; another account's name is another's."""
    assert "erased" in ends(fence(order(OF), draw(2), erased(unknown()), asked=ANN)).because[0]
    moved = msgspec.structs.replace(OF, account="other")
    made = msgspec.structs.replace(order(OF), action=moved)
    assert ends(fence(made, draw(2), unknown(), asked=ANN)).because != ()


def test_what_was_given_up_is_not_fenced():
    """Abandoning is final for whatever would touch it."""
    given_up = ruled(unknown(), abandon(who(unknown())))
    plan = fence(order(OF), draw(2), given_up, asked=ANN)
    because = declined(given_up, next(plan).rule)
    ended = ends(plan, Declined(because=because, history=given_up))
    assert (ended.standing, ended.because) == (Standing.UNRESOLVED, because)


@pytest.mark.parametrize(("allowed", "because"), [
    (("first",), ("the approval allows no attempt of class fence",)), (("first", "fence"), None),
])  # fmt: skip
def test_a_fence_has_a_permission_of_its_own(allowed, because):
    """Who approved the effect has not approved what takes its place, unless the approval says so."""
    required = Required(seconds=100.0, attempts=tuple(AttemptClass(word) for word in allowed), uses=2)
    made = wanted(OF, required=required)
    history = ruled(approved(made), claim(approved(made), made), NOON + 2)
    history = observed(history, U, of=OF, at=NOON + 3)
    record = begun_for(OF, draw(3), destination=OF.destination)
    record = msgspec.structs.replace(record, provider_key="op_1", by=ANN.by, reason=ANN.reason, fence=0)
    claims = claim_again(record, FENCED, longest_delivery=None, automatic=False, sought=sought(history, made))
    if because is None:
        assert faults(ruled(history, claims, NOON + 4)) == []
    else:
        assert declined(history, claims, NOON + 4) == because


# -- what its answer proves --------------------------------------------------------------------------------------------


def test_a_fence_that_won_proves_that_nothing_happened():
    """Of every attempt before it, and of itself: rejected by absence, safe to retry under another key."""
    after = fenced(won())
    operation = after.operation
    assert (operation.outcome, operation.unresolved, operation.settled_by) == (Outcome.REJECTED, 0, "absent:answer")
    assert lifecycle(operation, operation.outcome) is Lifecycle.SAFE_TO_RETRY
    assert [a.finding for a in attempts_of(after.events)[0]] == [B, B]
    assert faults(after) == []
    assert [judged.unasked for judged in rejudge(after, OF)] == [NOT_KEPT]


def test_a_fence_that_lost_proves_nothing_of_the_original():
    """Something stands there: whether it is ours is for a look to say; the fence itself did nothing."""
    after = fenced(LOST)
    assert [a.finding for a in attempts_of(after.events)[0]] == [U, R]
    assert (after.operation.outcome, after.operation.step) == (Outcome.UNKNOWN, "look")
    assert faults(after) == []
    assert [judged.broken for judged in rejudge(after, OF)] == [""]


@pytest.mark.parametrize(
    "answer",
    [
        SILENCE,
        won(headers=()),
        won(body=b'{"state":"queued"}'),
        won(body=b"<html>"),
        won(complete=False, reason="body_cut"),
        Replied(status=200, headers=(("etag", "e"),), body=b'{"state":"done"}'),
        Replied(status=409),
        Replied(status=500),
        Returned(value=1),
    ],
)
def test_a_fence_without_its_answer_is_unknown_itself(answer):
    """It may stand and may not: one more unit of exposure, and nothing goes until it is settled."""
    after = fenced(answer)
    assert [a.finding for a in attempts_of(after.events)[0]] == [U, U]
    assert (after.operation.outcome, after.operation.exposure) == (Outcome.UNKNOWN, 2)
    assert faults(after) == []


def test_a_fence_that_did_not_leave_is_as_if_it_had_not_been():
    """Nothing stands in the way, and the unknown is what it was."""
    after = fenced(Silent(may_have_left=False, reason="connect_failed"))
    assert [a.finding for a in attempts_of(after.events)[0]] == [U, N]
    assert not rule.fenced(attempts_of(after.events)[0])


def test_a_header_is_what_it_must_be():
    """`*` is any value, everything else that very one."""
    named = msgspec.structs.replace(STAKE, headers={"etag": "e2"}, where={})
    contract = msgspec.structs.replace(FENCED, fences=(named,))
    assert rule.judge_fence(contract, 0, won(), 2).finding is U
    assert rule.judge_fence(contract, 0, won(headers=(("etag", "e2"),), body=b""), 2).finding is B


def test_a_late_answer_to_a_fence_is_read_as_one():
    """What says `created` of a fence says nothing of the effect."""
    _, _, paid = begun(unknown())
    plan = late("op_1", OF, 2, won(), draw(3), fence=0)
    assert isinstance(next(plan), Uptime)
    amend = plan.send(steady(NOON + 90))
    after = ruled(paid, amend.rule, NOON + 90)
    assert evidence_of(after.events[-1]).source is Source.LATE_ANSWER
    assert (after.operation.outcome, after.operation.settled_by) == (Outcome.REJECTED, "absent:late_answer")
    assert faults(after) == []
    plan.close()


# -- what follows from it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("coverage", list(Coverage))
def test_what_happened_is_laid_to_no_fence_and_ends_every_open_one(coverage, attempt):
    """Ours is there: the fence came too late, whatever became of it."""
    found = Evidence(source=Source.LOOK, finding=S, attempt=attempt, coverage=coverage, external_id="ef_1")
    after, contradicts = settle(tries(U, U), found)
    assert ([a.finding for a in after], contradicts) == ([S, R], False)
    assert not fold(after, Discrepancy.NONE, follows=False).unresolved


def test_what_happened_after_a_fence_had_won_is_a_discrepancy():
    """Two proofs that cannot both be: both stand, and a person is asked."""
    found = Evidence(source=Source.LOOK, finding=S, attempt=2, coverage=Coverage.OPERATION)
    after, contradicts = settle(tries(B, B), found)
    assert ([a.finding for a in after], contradicts) == ([S, B], True)


@pytest.mark.parametrize("found", [None, U, R, B])
def test_nothing_is_sent_where_a_fence_may_stand(found):
    """On no basis but a person's override; the provider would refuse it, and nobody could tell whose answer that is."""
    attempts = tuple(msgspec.structs.replace(a, quiesced=True) for a in tries(B if found is B else U, found))
    situation = retry.Situation(
        contract=NATURAL, attempts=attempts, discrepancy=Discrepancy.NONE, now=NOON, longest_delivery=0.0
    )
    for basis in (Basis.NOT_SENT, Basis.SAME_KEY_REPLAY, Basis.ABSENCE_PROVEN, Basis.REJECTED_WITHOUT_EFFECT):
        assert retry.decide_retry(situation, automatic=False, basis=basis).because == (retry.FENCED,)
    assert retry.decide_retry(situation, automatic=False, basis=Basis.OPERATOR_OVERRIDE).allowed


def test_no_replay_is_due_where_a_fence_may_stand():
    """After the looks a person is next; a fence that never left keeps nothing back."""
    granted = msgspec.structs.replace(FENCED, automatic_attempts=AutomaticAttempts(same_key_replay=1))

    def step(*found):
        made = tries(*found)
        folded = fold(made, Discrepancy.NONE, follows=False)
        return next_step(granted, made, folded, Discrepancy.NONE, looks=9, jitter=0.0).step

    assert (step(U, U), step(U, N)) == ("review", "replay")


def test_a_fence_alone_causes_nothing():
    """On a record that nobody of the house wrote, where no attempt is before it."""
    (alone,) = tries(U)
    found = Evidence(source=Source.LOOK, finding=S, attempt=1, coverage=Coverage.OPERATION)
    after, contradicts = settle((alone,), found)
    assert ([a.finding for a in after], contradicts) == ([R], False)


# -- verification ------------------------------------------------------------------------------------------------------


def rewritten(history, **said):
    """The history with another word on its last piece of evidence."""
    *before, last = history.events
    evidence = msgspec.structs.replace(evidence_of(last), **said)
    return msgspec.structs.replace(history, events=(*before, msgspec.structs.replace(last, record=encode(evidence))))


@pytest.mark.parametrize(
    ("answer", "said", "fault"),
    [
        (won(), {"rule": "answers[0]"}, "not answered that it had won"),
        (won(), {"rule": "fences[0].lost"}, "not answered that it had won"),
        (LOST, {"finding": S, "effect": "pay"}, "says nothing of the effect"),
        (LOST, {"rule": ""}, "no rule judged it"),
        (won(), {"attempt": 1}, "only a look that was paid for"),
        (won(), {"source": Source.OPERATOR}, "only a look that was paid for"),
    ],
)
def test_an_answer_to_a_fence_is_audited_as_one(answer, said, fault):
    """Absence is proven by a look, or by an answer that names the clause by which a fence has won; nothing else."""
    assert any(fault in found for found in faults(rewritten(fenced(answer), **said)))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"basis": "absence_proven"}, "names a basis"),
        ({"contract": "ct1:other"}, "another contract"),
        ({"by": ""}, "no person asked"),
        ({"reason": ""}, "no person asked"),
        ({"fence": None}, "no person asked"),
    ],
)
def test_a_fence_that_could_not_be_sent_is_found_out(changes, fault):
    """A record that names no person, another contract or a basis was not written by these rules."""
    _, _, paid = begun(unknown())
    *before, last = paid.events
    record = encode(msgspec.structs.replace(begun_of(last), **changes))
    events = (*before, msgspec.structs.replace(last, record=record))
    assert any(fault in found for found in faults(msgspec.structs.replace(paid, events=events)))


@pytest.mark.parametrize("basis", [Basis.SAME_KEY_REPLAY, Basis.ABSENCE_PROVEN])
def test_an_attempt_through_a_fence_is_found_out(basis):
    """Whoever sends where a fence may stand has broken the rule that keeps them apart."""
    after = fenced(SILENCE)
    _, _, paid = begun(after, at=NOON + 40, number=3)
    *before, last = paid.events
    record = begun_of(last)
    again = msgspec.structs.replace(
        record, fence=None, basis=basis.value,
        attempt=msgspec.structs.replace(record.attempt, attempt_class=retry.CLASS_OF[basis]),
    )  # fmt: skip
    events = (*before, msgspec.structs.replace(last, record=encode(again)))
    assert any("a fence may have stood" in found for found in faults(msgspec.structs.replace(paid, events=events)))


@pytest.mark.parametrize(
    ("answer", "said", "broken"),
    [
        (LOST, {"rule": "fences[1].lost"}, "no clause"),
        (LOST, {"rule": "fences[0].won"}, "no clause"),
        (LOST, {"rule": "fences[0].won", "finding": B}, "not about what was answered"),
        (won(), {"rule": "fences[0].lost", "finding": R}, "not about what was answered"),
    ],
)
def test_an_answer_to_a_fence_is_judged_anew(answer, said, broken):
    """By the clause that it names, and the status that is kept."""
    assert broken in rejudge(rewritten(fenced(answer), **said), OF)[-1].broken
