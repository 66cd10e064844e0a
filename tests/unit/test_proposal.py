"""The dispatch plan where people are asked: what is written before they answer, and what is sent once they have."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import ASKED_SECONDS, WIRE, approved, asked, terms, wanted
from tests.crash.stepping import NOON, PAYLOAD, action, claimed, draw, ends, observed, order, ruled

from counterfoil.domain.answer import Replied
from counterfoil.domain.command import (
    Amended,
    Collision,
    Conflict,
    Existing,
    NewlyProposed,
    PolicyMoved,
    Propose,
    Settle,
    Settled,
    Tripped,
)  # fmt: skip
from counterfoil.domain.errors import BreakerOpen, InvariantBroken, KeyConflict, NotPermitted
from counterfoil.domain.event import begun_of
from counterfoil.domain.lifecycle import outcome_now
from counterfoil.domain.words import Finding, Outcome, Permission, Standing
from counterfoil.plans.claims import first_proposal, proposal_again
from counterfoil.plans.dispatch import DRAWS_MAX, dispatch, further
from counterfoil.plans.effects import Find, Form, Redraw, Rejudge, Send

DONE = Replied(status=201, body=b'{"id":"ef_1","state":"done"}')
INTERRUPTIONS = [KeyboardInterrupt, SystemExit, type("CancelledLike", (BaseException,), {})]


def proposing(made=None):
    """A plan that has formed what it would write, and its proposal."""
    plan = dispatch(made or wanted(), draw())
    form = next(plan)
    assert isinstance(form, Form)
    assert (form.order.payload, form.order.provider_key) == (PAYLOAD, "op_1")
    return plan, plan.send(WIRE)


def test_what_people_are_asked_is_written_down_and_not_sent():
    """Two effects: what would be written is formed, and the question is durable with it; nothing leaves."""
    plan, proposal = proposing()
    assert isinstance(proposal, Propose)
    assert (proposal.seconds, proposal.claim.policy) == (ASKED_SECONDS, 1)
    assert msgspec.json.decode(proposal.claim.record)["bound"]["wire"] == WIRE
    ended = ends(plan, NewlyProposed(history=asked()))
    assert (ended.standing, ended.operation.permission) == (Standing.PENDING, Permission.PENDING)


def test_a_proposal_draws_anew_where_its_number_is_taken():
    """Under another id another write is formed; eight numbers in a row are a store that refuses."""
    plan, _ = proposing()
    assert isinstance(plan.send(Collision()), Redraw)
    form = plan.send(draw(2))
    assert form.order.provider_key == "op_2"
    assert plan.send(WIRE).claim.id == "op_2"
    plan, _ = proposing()
    for number in range(2, DRAWS_MAX + 1):
        for reply in (Collision(), draw(number), WIRE):
            plan.send(reply)
    plan.send(Collision())
    with pytest.raises(InvariantBroken, match="taken"):
        plan.send(draw(9))


def test_a_proposal_under_a_used_key_is_answered():
    """Conflict and what stands there already, as for a claim."""
    plan, _ = proposing()
    with pytest.raises(KeyConflict):
        plan.send(Conflict(operation="op_9", stored="cf1:other"))
    plan, _ = proposing()
    form = plan.send(Existing(history=asked()))
    assert isinstance(form, Form)
    amend = plan.send(WIRE)
    ended = ends(plan, amend.rule(asked(), NOON + 1))
    assert (ended.standing, ended.because) == (Standing.PENDING, ("permission is pending",))


def test_what_a_policy_forbids_is_refused_before_anything_is_written():
    """A new key is refused by name; one that was used before answers with what stands there."""
    made = order(terms=terms(refused="no payments today", required=None))
    plan = dispatch(made, draw())
    assert next(plan) == Rejudge(made)
    assert isinstance(plan.send(made), Find)
    with pytest.raises(NotPermitted, match="no payments today"):
        plan.send(None)
    plan = dispatch(made, draw())
    next(plan)
    plan.send(made)
    assert ends(plan, observed(claimed(), Finding.UNKNOWN)).because == ("no payments today",)


def test_a_refusal_is_the_word_of_the_policy_in_force():
    """No claim would find out that another one came into force: it is asked before the call is refused."""
    plan = dispatch(order(terms=terms(refused="no payments today", required=None)), draw())
    next(plan)
    claim = plan.send(order(terms=terms(required=None, policy=2)))
    assert (claim.id, claim.policy) == ("op_1", 2)


@pytest.mark.parametrize("made", [order(), wanted()], ids=["claim", "proposal"])
def test_a_policy_that_moved_is_judged_anew(made):
    """The same call under the terms in force, with ids of its own; nothing of the first try is on record."""
    plan = dispatch(made, draw())
    if isinstance(next(plan), Form):
        plan.send(WIRE)
    rejudge = plan.send(PolicyMoved(policy=2))
    assert rejudge == Rejudge(made)
    assert isinstance(plan.send(order(terms=terms(required=None, policy=2))), Redraw)
    claim = plan.send(draw(2))
    assert (claim.id, claim.policy) == ("op_2", 2)


def test_a_breaker_stops_a_new_dispatch():
    """Too much is unknown: its caller is told which limit, and nothing was recorded; so for a further attempt."""
    tripped = Tripped(breaker="acme", exposure=30.0, limit=30.0)
    plan = dispatch(order(), draw())
    next(plan)
    with pytest.raises(BreakerOpen, match="acme"):
        plan.send(tripped)
    plan = further(order(), draw(2), observed(claimed(), Finding.NOT_SENT))
    next(plan)
    with pytest.raises(BreakerOpen, match="acme"):
        plan.send(tripped)


def test_what_was_approved_is_sent_once_byte_for_byte():
    """The call again: the frozen payload goes under the operation's key, and the attempt names its approval."""
    history = approved()
    plan = further(wanted(), draw(2), history)
    assert isinstance(next(plan), Form)
    amend = plan.send(WIRE)
    assert (amend.policy, amend.breaker) == (1, None)
    after = ruled(history, amend.rule, NOON + 2)
    send = plan.send(Amended(history=after))
    assert isinstance(send, Send)
    assert (send.order.payload, send.order.provider_key) == (PAYLOAD, "op_1")
    assert begun_of(after.events[-1]).attempt.approval == 2
    settle = plan.send(DONE)
    assert isinstance(settle, Settle)
    assert ends(plan, Settled(at=NOON + 3, head=b"h")).standing is Standing.NEW


def test_what_is_asked_anew_is_not_sent():
    """An amendment without a claim sends nothing, and says what permission is now."""
    history = approved()
    plan = further(wanted(), draw(2), history)
    next(plan)
    amend = plan.send("wi1:another")
    ended = ends(plan, Amended(history=ruled(history, amend.rule, NOON + 2)))
    assert (ended.standing, ended.because) == (Standing.PENDING, ("permission is pending",))


def test_a_policy_that_moved_judges_a_further_attempt_anew():
    """What would be sought is formed again under the terms in force, and asked for under their number."""
    plan = further(wanted(), draw(2), approved())
    next(plan)
    plan.send(WIRE)
    assert isinstance(plan.send(PolicyMoved(policy=2)), Rejudge)
    assert isinstance(plan.send(wanted(terms=terms(policy=2, digest="pl1:b"))), Form)
    amend = plan.send(WIRE)
    assert amend.policy == 2
    assert msgspec.json.decode(amend.rule(approved(), NOON + 2).events[0].record)["because"] == ["policy changed"]


def test_nothing_goes_to_another_tenant_or_account():
    """An action that is declared for somebody else by now sends nothing of what was recorded."""
    for other in (action(tenant="other"), action(account="other")):
        made = order()
        ended = ends(
            further(msgspec.structs.replace(made, action=other), draw(2), observed(claimed(), Finding.NOT_SENT))
        )
        assert "another tenant or account" in ended.because[0]


@pytest.mark.parametrize("interruption", INTERRUPTIONS)
@pytest.mark.parametrize("replies", [(), (WIRE,), (WIRE, Collision()), (WIRE, Collision(), draw(2))])
def test_a_crash_while_people_are_asked_leaves_nothing_to_take_back(replies, interruption):
    """At each yield of a proposal: what was written waits for people, and what was not never was."""
    plan = dispatch(wanted(), draw())
    next(plan)
    for reply in replies:
        plan.send(reply)
    with pytest.raises(interruption):
        plan.throw(interruption())
    plan = dispatch(wanted(), draw())
    next(plan)
    for reply in replies:
        plan.send(reply)
    plan.close()


def test_a_crash_after_an_approved_claim_is_unknown():
    """Claimed under an approval and not reported: the approval is used, and no other call sends it again."""
    history = approved()
    plan = further(wanted(), draw(2), history)
    next(plan)
    after = ruled(history, plan.send(WIRE).rule, NOON + 2)
    plan.send(Amended(history=after))
    plan.close()
    assert outcome_now(after.operation, NOON + 1_000, alive=False) is Outcome.UNKNOWN
    plan, _ = proposing()
    assert ends(plan, Existing(history=after)).standing is Standing.UNRESOLVED


def test_nothing_is_asked_where_nothing_says_whom():
    """A proposal without the people it is for is a defect, and is written by nobody."""
    with pytest.raises(InvariantBroken, match="whom"):
        first_proposal(order(terms=terms(required=None)), draw(), WIRE)


def test_where_the_policy_asks_nobody_any_more_the_old_question_stands():
    """What people were asked once is asked of as many again."""
    proposed = proposal_again(order(terms=terms(required=None)), approved(), WIRE)
    assert proposed.required == wanted().terms.required
