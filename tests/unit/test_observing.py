"""Recording: what is hashed, what may be erased, and how one observation is never lost or counted twice."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import claim
from tests.crash.stepping import NOON, action, claimed, draw, ends, observed, order, ruled, steady

from counterfoil.domain import canonical
from counterfoil.domain.answer import Replied
from counterfoil.domain.command import Amended, Declined, Settle
from counterfoil.domain.event import attempts_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.payload import RESULT_BYTES_MAX, content, salted_digest
from counterfoil.domain.permission import Sought
from counterfoil.domain.words import Finding, Outcome, Source
from counterfoil.plans import observing
from counterfoil.plans.effects import Uptime
from counterfoil.plans.late import late

SALT = b"s" * 16


def evidence(**said):
    sure = {"source": Source.ANSWER, "finding": Finding.SUCCEEDED, "attempt": 1, "effect": "pay"}
    return Evidence(**(sure | said))


def test_what_may_be_erased_stands_outside_the_record():
    """Result and facts go into the salted body, the record keeps its digest; both come back from there."""
    sealed = observing.sealed(evidence(result={"id": "re_1"}, facts={"status": 201}), SALT)
    assert b"re_1" not in sealed.line
    assert msgspec.json.decode(sealed.line, type=Evidence).body_digest == salted_digest(sealed.body)
    assert canonical.parse(content(sealed.body)) == {"facts": {"status": 201}, "result": {"id": "re_1"}}
    assert sealed.evidence.result == {"id": "re_1"}


def test_without_result_and_facts_there_is_no_body():
    """Nothing that could be erased costs nothing."""
    assert observing.sealed(evidence(), SALT).body is None


def test_a_result_that_is_too_large_is_nobodys():
    """The first caller gets what a replay gets: none, and the record says why."""
    sealed = observing.sealed(evidence(result="x" * RESULT_BYTES_MAX, facts={"status": 201}), SALT)
    assert sealed.evidence.result is None
    assert canonical.parse(content(sealed.body)) == {"facts": {"result": "too_large", "status": 201}, "result": None}


def test_what_has_no_canonical_form_is_not_kept():
    """A result that cannot be written down does not undo what happened; an operator's own words are refused."""
    sealed = observing.sealed(evidence(result="\ud800"), SALT)
    assert (sealed.evidence.finding, sealed.evidence.result) == (Finding.SUCCEEDED, None)
    assert canonical.parse(content(sealed.body))["facts"] == {"result": "not_kept"}
    with pytest.raises(canonical.NotCanonical, match="/facts/seen"):
        observing.sealed(evidence(facts={"seen": float("nan")}), SALT)


def test_an_observation_carries_its_record():
    """Whoever carries it out can keep it beside the store where the store cannot take it."""
    plan = observing.append("op_1", evidence(result=1), action().contract, salt=SALT, jitter=0.0)
    amend = next(plan)
    sealed = observing.sealed(evidence(result=1), SALT)
    assert (amend.operation, amend.record, amend.body) == ("op_1", sealed.line, sealed.body)
    after = ruled(claimed(), amend.rule)
    assert ends(plan, Amended(history=after)) == after.operation


def test_an_observation_that_is_there_already_is_answered():
    """Declined as recorded already is as good as recorded."""
    plan = observing.append("op_1", evidence(), action().contract, salt=SALT, jitter=0.0)
    next(plan)
    history = observed(claimed(), Finding.SUCCEEDED, effect="pay")
    assert ends(plan, Declined(because=("this evidence is recorded already",), history=history)) == history.operation


def test_a_spooled_record_is_taken_as_it_was_written():
    """Record and body go in unchanged: their digests still fit, and twice is once."""
    sealed = observing.sealed(evidence(result=1), SALT)
    amend = next(observing.take("op_1", sealed.line, sealed.body, action().contract))
    after = ruled(claimed(), amend.rule)
    assert (after.events[-1].record, after.events[-1].body) == (sealed.line, sealed.body)
    assert after.operation.outcome is Outcome.SUCCEEDED
    assert isinstance(amend.rule(after, 0.0), Declined)


@pytest.mark.parametrize("reply", [None, Declined(because=(), history=None)])
def test_an_answer_no_store_gives_is_a_defect(reply):
    """An observation is amended or declined with what stands there; anything else stops."""
    plan = observing.append("op_1", evidence(), action().contract, salt=SALT, jitter=0.0)
    next(plan)
    with pytest.raises(AssertionError, match="observation"):
        plan.send(reply)


def test_a_late_answer_is_evidence_like_any_other():
    """It names its attempt and its source, is narrowed like the first, and settles what was unknown."""
    answer = Replied(status=201, body=b'{"id":"ef_1","state":"done"}')
    plan = late("op_1", action(result=("/id",)), 1, answer, draw(2))
    assert isinstance(next(plan), Uptime)
    amend = plan.send(steady(NOON))
    said = msgspec.json.decode(amend.record, type=Evidence)
    assert (said.source, said.finding, said.attempt, said.quiesced) == (Source.LATE_ANSWER, Finding.SUCCEEDED, 1, True)
    assert canonical.parse(content(amend.body))["result"] == {"id": "ef_1"}
    after = ruled(observed(claimed(), Finding.UNKNOWN, quiesced=False), amend.rule)
    assert (after.operation.outcome, after.operation.settled_by) == (Outcome.SUCCEEDED, "succeeded:late_answer")
    assert ends(plan, Amended(history=after)) == after.operation


def tried(finding, *, asked=True):
    """The plan that records what came of a further attempt, and the history it is made on."""
    history = observed(claimed(), Finding.NOT_SENT)
    history = ruled(history, claim(history, order(), under=Sought()), NOON + 2)
    attempts, discrepancy = attempts_of(history.events)
    holder = observing.Claimed(
        operation=history.operation, attempts=attempts, discrepancy=discrepancy, head=history.head, asked=asked
    )
    said = observing.sealed(evidence(finding=finding, attempt=2), SALT)
    return observing.record(holder, said, action().contract, jitter=0.0), history


def test_what_people_were_asked_about_and_stayed_is_recorded_on_its_history():
    """Until when it may still be sent, its events say; an answer, or a call that needs nobody, reads none of them."""
    plan, history = tried(Finding.NOT_SENT)
    after = ruled(history, next(plan).rule, NOON + 3)
    assert ends(plan, Amended(history=after)) == after.operation
    for finding, asked in ((Finding.SUCCEEDED, True), (Finding.NOT_SENT, False)):
        assert isinstance(next(tried(finding, asked=asked)[0]), Settle)


def test_interrupted_while_it_is_recorded_on_its_history():
    """Written or not when Ctrl+C came: the same record twice is one piece of evidence, and none is lost."""
    plan, history = tried(Finding.NOT_SENT)
    first = next(plan)
    again = plan.throw(KeyboardInterrupt())
    after = ruled(history, first.rule, NOON + 3)
    with pytest.raises(KeyboardInterrupt):
        plan.send(msgspec.structs.replace(again.rule(after, NOON + 4), history=after))
