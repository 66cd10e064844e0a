"""After a success: what a look shows may contradict it, and never lowers it; what may only lag behind does neither."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest
from tests.crash.keeping import settled
from tests.crash.stepping import NOON, action, claimed, draw, ends, erased, observed, order, ruled

from counterfoil import contracts
from counterfoil.domain import postcondition
from counterfoil.domain.answer import Replied
from counterfoil.domain.attempt import settle
from counterfoil.domain.command import Amend, Amended, Claim, Claimed, Declined, Settle, Settled
from counterfoil.domain.contract import Consistency
from counterfoil.domain.errors import StoreBusy
from counterfoil.domain.event import EventKind, attempts_of, evidence_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.postcondition import judged, pay
from counterfoil.domain.reading import ReadingKind
from counterfoil.domain.words import Discrepancy, Finding, Outcome, Source
from counterfoil.plans.confirm import confirm
from counterfoil.plans.dispatch import dispatch
from counterfoil.plans.effects import Find, Look, Redraw, Send

LOOKUP = contracts.load("lab.lookup")
LOOK = LOOKUP.looks[0]
ACTION = action("lab.lookup", confirmed=True)
DONE = settled(made=order(ACTION), external_id="ef_1")
BOTH = {"positive_control": True, "negative_control": True}


def said(kind, reason="", finding=Finding.UNKNOWN, **facts):
    """What a look found, as its own rules make it."""
    return Evidence(
        source=Source.LOOK, finding=finding, attempt=1, rule=f"looks[0].{kind}", reason=reason, facts=BOTH | facts
    )


def look(**changes):
    """The look as another contract documents it."""
    return msgspec.structs.replace(LOOK, **changes)


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (said(ReadingKind.FOREIGN, "other_content"), "other_content"),
        (said(ReadingKind.FOREIGN, "other_account"), "other_account"),
        (said(ReadingKind.CANDIDATE, "other_state"), "other_state"),
        (said(ReadingKind.ABSENT), postcondition.NOT_THERE),
    ],
)
def test_a_mismatch_contradicts(evidence, reason):
    """Another content or account, another state, or not there at all, of a look that shows every write."""
    found = judged(evidence, LOOK)
    assert (found.contradicts, found.reason, found.finding) == (True, reason, Finding.UNKNOWN)


@pytest.mark.parametrize(
    ("evidence", "changes"),
    [
        (said(ReadingKind.FOUND, finding=Finding.SUCCEEDED), {}),
        (said(ReadingKind.INCONCLUSIVE, "status_500"), {}),
        (said(ReadingKind.CANDIDATE, "field_missing"), {}),
        (said(ReadingKind.CANDIDATE, "other_state"), {"consistency": Consistency.EVENTUAL}),
        (said(ReadingKind.ABSENT), {"consistency": Consistency.EVENTUAL}),
        (said(ReadingKind.ABSENT), {"authoritative": "unknown"}),
        (said(ReadingKind.ABSENT, positive_control=False), {}),
        (said(ReadingKind.ABSENT, negative_control=False), {}),
        (said(ReadingKind.ABSENT, finding=Finding.ABSENT), {}),
    ],
)
def test_what_may_lag_or_was_not_healthy_contradicts_nothing(evidence, changes):
    """It is on record as what it is; proven absence contradicts by itself."""
    assert judged(evidence, look(**changes)) == evidence


def test_nothing_that_a_look_says_lowers_a_success():
    """Whatever it is, the attempt stays succeeded."""
    attempts, _ = attempts_of(DONE.events)
    for kind, finding in itertools.product(ReadingKind, Finding):
        moved, _ = settle(attempts, judged(said(kind, finding=finding), LOOK))
        assert moved[0].finding is Finding.SUCCEEDED


def test_a_read_is_paid_from_the_budget():
    """Before it is made; nothing but the count moves."""
    after = ruled(DONE, pay(LOOKUP, 0, by="w"))
    assert after.events[-1].kind is EventKind.LOOKING
    assert (after.operation.looks, after.operation.outcome, after.operation.step) == (1, Outcome.SUCCEEDED, "")


@pytest.mark.parametrize(
    ("history", "contract", "because"),
    [
        (observed(claimed(), Finding.UNKNOWN), LOOKUP, postcondition.NOT_SUCCEEDED),
        (DONE, msgspec.structs.replace(LOOKUP, reconcile="forbidden"), postcondition.NO_LOOK),
        (
            msgspec.structs.replace(DONE, operation=msgspec.structs.replace(DONE.operation, looks=5)), LOOKUP,
            postcondition.SPENT,
        ),
        (
            observed(DONE, Finding.REJECTED, rule="answers[1]", source=Source.LATE_ANSWER), LOOKUP,
            postcondition.NOT_SUCCEEDED,
        ),
    ],
)  # fmt: skip
def test_only_an_open_budget_and_a_plain_success_are_looked_at(history, contract, because):
    """Unknown ones are reconciled, contradicted ones are people's."""
    declined = pay(contract, 0, by="w")(history, NOON)
    assert isinstance(declined, Declined)
    assert declined.because == (because,)


def page(*items):
    """What the laboratory's look shows, with the item that is always there."""
    control = {"id": "ef_0", "reference": "control", "account": "acct", "state": "done", "payload": {}}
    return Replied(status=200, body=json.dumps({"complete": True, "items": [control, *items]}).encode())


OURS = {"id": "ef_1", "reference": DONE.operation.id, "account": "acct", "state": "done", "payload": {"amount": 10}}


def looked(plan, history, *items):
    """Carry a confirmation out against a page; the history after it, and what it ended with."""
    amend = next(plan)
    assert isinstance(amend, Amend)
    paid = ruled(history, amend.rule)
    ask = plan.send(Amended(history=paid))
    assert isinstance(ask, Look)
    append = plan.send((page(*items),))
    after = ruled(paid, append.rule, NOON + 5)
    return after, ends(plan, Amended(history=after))


@pytest.mark.parametrize(
    ("items", "discrepancy", "reason"),
    [
        ((OURS,), Discrepancy.NONE, ""),
        ((), Discrepancy.OPEN, "not_there"),
        ((OURS | {"payload": {"amount": 11}},), Discrepancy.OPEN, "other_content"),
        ((OURS | {"state": "failed"},), Discrepancy.OPEN, "other_state"),
        ((OURS | {"id": "ef_2"},), Discrepancy.OPEN, ""),
        ((OURS, OURS | {"id": "ef_2"}), Discrepancy.OPEN, "duplicate_suspected"),
    ],
)
def test_the_look_is_evidence_and_a_mismatch_a_discrepancy(items, discrepancy, reason):
    """Ours alone agrees; nothing, another amount, state or object, or a second one, is for a person."""
    after, ended = looked(confirm(DONE, ACTION, draw(2), by="w"), DONE, *items)
    assert (after.operation.outcome, after.operation.discrepancy) == (Outcome.SUCCEEDED, discrepancy)
    assert bool(after.operation.unresolved) is (discrepancy is Discrepancy.OPEN)
    assert evidence_of(after.events[-1]).reason == reason
    assert ended.operation == after.operation


def test_what_cannot_be_looked_at_says_why():
    """Erased, without a look, or refused: nothing is recorded."""
    assert "erased" in ends_at_once(confirm(erased(DONE), ACTION, draw(2), by="w")).because[0]
    bare = msgspec.structs.replace(ACTION, contract=msgspec.structs.replace(LOOKUP, looks=()))
    assert "no look" in ends_at_once(confirm(DONE, bare, draw(2), by="w")).because[0]
    plan = confirm(DONE, ACTION, draw(2), by="w")
    next(plan)
    assert ends(plan, Declined(because=(postcondition.SPENT,))).because == (postcondition.SPENT,)


def ends_at_once(plan):
    """What a plan returns without asking for anything."""
    with pytest.raises(StopIteration) as stop:
        next(plan)
    return stop.value.value


def sent():
    """The dispatch of an action that declares it, up to the moment after its success was recorded."""
    made = order(ACTION)
    plan = dispatch(made, draw(1))
    assert isinstance(next(plan), Claim)
    send = plan.send(Claimed(at=NOON, head=b"h"))
    assert isinstance(send, Send)
    assert isinstance(plan.send(Replied(status=201, body=b'{"id":"ef_1","state":"done"}')), Settle)
    find = plan.send(Settled(at=NOON + 1, head=b"h2"))
    assert isinstance(find, Find)
    return plan


def test_a_declared_success_is_looked_at_before_its_caller_is_told():
    """Found by its key, with ids of its own; the receipt tells what the look left."""
    plan = sent()
    redraw = plan.send(DONE)
    assert isinstance(redraw, Redraw)
    amend = plan.send(draw(3))
    ended = ends(plan, Declined(because=(postcondition.SPENT,), history=DONE))
    assert isinstance(amend, Amend)
    assert ended.operation == DONE.operation


def test_a_look_that_cannot_be_recorded_takes_no_success_away():
    """The store is busy, or the operation is gone: the caller has the success all the same."""
    plan = sent()
    with pytest.raises(StopIteration) as stop:
        plan.throw(StoreBusy("busy"))
    assert stop.value.value.operation.outcome is Outcome.SUCCEEDED
    assert ends(sent(), None).operation.outcome is Outcome.SUCCEEDED
