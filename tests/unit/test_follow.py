"""Following by hand: what was accepted is looked for until its end is seen; when its time is over a person is next."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.crash.asking import faults, who
from tests.crash.stepping import NOON, PAYLOAD, action, claimed, declined, draw, ends, observed, order, ruled

from counterfoil import contracts
from counterfoil.domain.answer import Replied
from counterfoil.domain.care import investigate
from counterfoil.domain.command import Amended, Declined
from counterfoil.domain.contract import Terminal
from counterfoil.domain.event import encode, evidence_of
from counterfoil.domain.lifecycle import lifecycle
from counterfoil.domain.reading import ReadingKind, read, seek
from counterfoil.domain.rejudge import rejudge
from counterfoil.domain.template import Names
from counterfoil.domain.words import Coverage, Finding, Lifecycle, Outcome, Standing
from counterfoil.plans.effects import Look, Now, Others
from counterfoil.plans.follow import FOLLOWED
from counterfoil.plans.recover import work

SENT = Terminal(source="service", state={"/state": ("sent",)}, finding="succeeded")
FAILED = Terminal(source="service", state={"/state": ("failed",), "/code": (7, None)}, finding="rejected")
KEY = contracts.load("lab.key")
MATCH = msgspec.structs.replace(KEY.looks[0].match, state={})
QUEUED = msgspec.structs.replace(
    KEY, terminal=(SENT, FAILED), follow_seconds=60.0, looks=(msgspec.structs.replace(KEY.looks[0], match=MATCH),)
)
OF = action(QUEUED)
CONTROL = {"id": "ef_0", "key": "control", "account": "acct", "state": "sent", "payload": {}}


def accepted(of=OF, at=NOON + 1):
    """Taken in, and how it ends is not known yet."""
    return observed(claimed(order(of)), Finding.ACCEPTED, of=of, at=at, external_id="ef_1", rule="answers[0]")


def shown(state, **changes):
    """A healthy look at ours in a state."""
    ours = {"id": "ef_1", "key": "op_1", "account": "acct", "state": state, "payload": {"amount": 10}} | changes
    return (Replied(status=200, body=json.dumps({"complete": True, "items": [ours, CONTROL]}).encode()),)


def followed(history, answers, at, of=OF):
    """The history after one step of the worker at a time, and what it was told."""
    plan = work(history, order(of), draw(2), by="w")
    assert isinstance(next(plan), Now)
    paid = ruled(history, plan.send(at).rule, at)
    assert isinstance(plan.send(Amended(history=paid)), Look)
    amend = plan.send(answers)
    if isinstance(amend, Others):
        amend = plan.send(())
    after = ruled(paid, amend.rule, at + 1)
    return after, ends(plan, Amended(history=after))


def test_what_is_accepted_is_unresolved_and_followed():
    """It stays in sight with its next look, and nothing says more than that it was taken in."""
    operation = accepted().operation
    assert (operation.outcome, operation.unresolved, operation.step) == (Outcome.ACCEPTED, 1, "follow")
    assert lifecycle(operation, operation.outcome) is Lifecycle.ACCEPTED


@pytest.mark.parametrize(
    ("state", "outcome", "settled"),
    [
        ("sent", Outcome.SUCCEEDED, "succeeded:look"),
        ("failed", Outcome.REJECTED, "rejected:look"),
        ("queued", Outcome.ACCEPTED, ""),
    ],
)
def test_an_end_that_is_seen_ends_it(state, outcome, settled):
    """Sent, failed, or neither yet: then it is followed on. The record holds, and each end can be judged anew."""
    after, ended = followed(accepted(), shown(state, code=7), NOON + 10)
    operation = after.operation
    assert (operation.outcome, operation.settled_by, operation.looks) == (outcome, settled, 1)
    assert operation.step == ("" if settled else "follow")
    assert ended.standing is (Standing.EXISTING if settled else Standing.UNRESOLVED)
    assert faults(after) == []
    assert [judged.broken for judged in rejudge(after, OF)][1:] == [""] * bool(settled)


def test_a_timer_ends_nothing():
    """Past the deadline nothing is read, a person is next, and it is as accepted as it was."""
    history = accepted()
    plan = work(history, order(OF), draw(2), by="w")
    next(plan)
    amend = plan.send(NOON + 60.1)
    after = ruled(history, amend.rule, NOON + 61)
    ended = ends(plan, Amended(history=after))
    assert ended.because == (FOLLOWED,)
    assert (after.operation.outcome, after.operation.unresolved) == (Outcome.ACCEPTED, 1)
    assert (after.operation.step, after.operation.looks) == ("review", 0)
    assert lifecycle(after.operation, Outcome.ACCEPTED) is Lifecycle.MANUAL_REVIEW
    assert faults(after) == []


def test_the_next_look_is_never_due_after_the_deadline():
    """Its last step is the person's, at the deadline and no later."""
    slow = action(
        msgspec.structs.replace(QUEUED, read_budget=msgspec.structs.replace(KEY.read_budget, spacing_seconds=99))
    )
    after, _ = followed(accepted(slow), shown("queued"), NOON + 10, of=slow)
    assert after.operation.due_at == NOON + 60


def test_reads_that_people_add_are_made_after_the_deadline():
    """Who asks for more reads gets them, spaced as ever: the deadline was the contract's, not theirs."""
    late = msgspec.structs.replace(accepted(), operation=msgspec.structs.replace(accepted().operation, step="review"))
    adds = investigate(who(late), channel="support", whom="user:lea", looks=6, contract=QUEUED)
    history = ruled(late, adds, NOON + 100)
    assert (history.operation.step, history.operation.due_at) == ("follow", NOON + 100)
    after, _ = followed(history, shown("queued"), NOON + 101)
    assert (after.operation.step, after.operation.looks) == ("follow", 1)
    assert after.operation.due_at > NOON + 102


def test_a_spent_budget_is_for_a_person_and_no_replay():
    """What was taken in is never sent again, whatever the contract grants for what is unknown."""
    history = accepted()
    spent = msgspec.structs.replace(history, operation=msgspec.structs.replace(history.operation, looks=5))
    plan = work(spent, order(OF), draw(2), by="w")
    next(plan)
    pay = plan.send(NOON + 10)
    refused = Declined(because=declined(spent, pay.rule, NOON + 10), history=spent)
    amend = plan.send(refused)
    after = ruled(spent, amend.rule, NOON + 11)
    assert (after.operation.step, after.operation.outcome) == ("review", Outcome.ACCEPTED)
    plan.close()


def test_a_failed_one_that_is_shown_after_a_success_is_a_discrepancy():
    """Proof is never lowered: both stand, and a person is asked."""
    sent = observed(accepted(), Finding.SUCCEEDED, of=OF, effect="pay", rule="looks[0].found")
    after = observed(sent, Finding.REJECTED, of=OF, at=NOON + 20, rule="looks[0].ended")
    assert (after.operation.outcome, after.operation.step) == (Outcome.SUCCEEDED, "review")


def _read(state, terminal=QUEUED.terminal, look=QUEUED.looks[0], **changes):
    sought = seek(QUEUED, account="acct", payload=PAYLOAD, names=Names(provider_key="op_1", negative="cf-absent-1"))
    return read(look, shown(state, **changes), sought, terminal)


def test_an_end_is_exactly_the_state_that_is_named():
    """Every pointer of it, by type; where nothing ends it, being there is not the effect."""
    assert _read("sent").kind is ReadingKind.FOUND
    assert _read("failed", code=7).kind is ReadingKind.ENDED
    assert _read("failed", code=None).kind is ReadingKind.ENDED
    other = _read("failed", code=7.5)
    assert (other.kind, other.reason, other.state) == (
        ReadingKind.CANDIDATE, "other_state", {"/state": "failed", "/code": 7.5},
    )  # fmt: skip
    assert _read("queued").kind is ReadingKind.CANDIDATE
    assert _read("queued", terminal=()).kind is ReadingKind.FOUND
    assert _read("done", look=KEY.looks[0]).kind is ReadingKind.FOUND


def test_somebody_elses_end_is_nobodys():
    """What differs from what was asked for is foreign, however it ended."""
    assert _read("failed", code=7, payload={"amount": 11}).kind is ReadingKind.FOREIGN


def test_an_end_by_an_unhealthy_look_is_none():
    """Without the negative control a look finds everything, failures too."""
    sought = seek(QUEUED, account="acct", payload=PAYLOAD, names=Names(provider_key="op_1", negative="op_1"))
    assert read(QUEUED.looks[0], shown("failed", code=7), sought, QUEUED.terminal).reason == "negative_control"


def test_a_rewritten_end_is_found_out():
    """Whoever turns a failure into a success on record meets the state that is kept."""
    after, _ = followed(accepted(), shown("failed", code=7), NOON + 10)
    *before, last = after.events

    def rewritten(**said):
        evidence = msgspec.structs.replace(evidence_of(last), **said)
        events = (*before, msgspec.structs.replace(last, record=encode(evidence)))
        return rejudge(msgspec.structs.replace(after, events=events), OF)[-1].broken

    assert rewritten() == ""
    assert "not a state" in rewritten(finding=Finding.SUCCEEDED, effect="pay", rule="looks[0].found")
    assert rewritten(finding=Finding.SUCCEEDED, effect="pay") == "ended is not found"
    assert rewritten(rule="looks[0].found") == "a look cannot show rejected"
    assert "speaks of" in rewritten(coverage=Coverage.OPERATION)
