"""The reconcile plan by hand: a look is paid, made, read and recorded, or refused with the reason."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.crash.stepping import NOON, action, claimed, declined, draw, ends, erased, held, observed, order, ruled

from counterfoil import contracts
from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.contract import By, ProtectionKind
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.verdict import ANOTHERS_OBJECT
from counterfoil.domain.words import Coverage, Finding, Outcome, Source, Standing
from counterfoil.plans.effects import Look, Others
from counterfoil.plans.reconcile import LOOK_SECONDS_MAX, next_look, reconcile

KEY = contracts.load("lab.key")
ITEM = {"id": "ef_1", "key": "op_1", "account": "acct", "state": "done", "payload": {"amount": 10}}
CONTROL = {"id": "ef_0", "key": "control", "account": "acct", "state": "done", "payload": {}}


def shown(*items):
    """What a complete and healthy look shows, its known item included."""
    return (Replied(status=200, body=json.dumps({"complete": True, "items": [*items, CONTROL]}).encode()),)


def unknown(of=None, **said):
    return observed(claimed(order(of) if of else None), Finding.UNKNOWN, **said)


def to_look(history, of=None, *, at=NOON + 60):
    """A plan that has paid for its look, the look, and the history with the payment."""
    plan = reconcile(history, of or action(), draw(2), asked=True, by="ann")
    paid = ruled(history, next(plan).rule, at)
    look = plan.send(Amended(history=paid))
    assert isinstance(look, Look)
    return plan, look, paid


def recorded(plan, answers, paid, at=NOON + 61):
    """The evidence a look comes to, and what the plan returns once it is durable."""
    amend = plan.send(answers)
    if isinstance(amend, Others):
        amend = plan.send(())
    after = ruled(paid, amend.rule, at)
    return msgspec.json.decode(amend.record, type=Evidence), ends(plan, Amended(history=after))


def test_a_look_that_finds_it_settles_the_unknown():
    """Account, reference, state and content agree: succeeded, with the rule, the provider's name and the result."""
    plan, look, paid = to_look(unknown())
    assert (look.order.look, look.order.account, look.order.deadline_seconds) == (0, "acct", LOOK_SECONDS_MAX)
    assert (look.order.names.provider_key, look.order.names.negative) == ("op_1", draw(2).negative)
    evidence, ended = recorded(plan, shown(ITEM), paid)
    assert (evidence.source, evidence.finding, evidence.coverage) == (
        Source.LOOK, Finding.SUCCEEDED, Coverage.PROVIDER_KEY,
    )  # fmt: skip
    assert (evidence.rule, evidence.external_id) == ("looks[0].found", "ef_1")
    assert (ended.standing, ended.operation.outcome) == (Standing.EXISTING, Outcome.SUCCEEDED)
    assert ended.result == {"id": "ef_1", "state": "done"}


@pytest.mark.parametrize("others", [(), ("op_2",)])
def test_an_object_of_another_operation_proves_nothing_of_this_one(others):
    """It is asked for by the name that the look brought; where another has it, it contradicts and settles nothing."""
    plan, _, paid = to_look(unknown())
    asked = plan.send(shown(ITEM))
    assert isinstance(asked, Others)
    assert (asked.history, asked.look, asked.external_id) == (paid, 0, "ef_1")
    amend = plan.send(others)
    after = ruled(paid, amend.rule, NOON + 61)
    said = msgspec.json.decode(amend.record, type=Evidence)
    assert (after.operation.outcome, said.contradicts) == (
        Outcome.UNKNOWN if others else Outcome.SUCCEEDED,
        bool(others),
    )
    if others:
        assert (said.finding, said.reason, said.external_id) == (Finding.UNKNOWN, ANOTHERS_OBJECT, "")
        assert after.operation.step == "review"


def test_what_our_own_answer_named_is_not_asked_for_again():
    """A look that shows the very object that was answered brings no new name."""
    plan, _, _ = to_look(unknown(external_id="ef_1"))
    assert isinstance(plan.send(shown(ITEM)), Amend)


@pytest.mark.parametrize("kind", [ProtectionKind.NATURAL_KEY, ProtectionKind.CONDITIONAL_WRITE])
def test_what_stands_where_the_caller_names_it_is_nobody_elses(kind):
    """Whoever put it there first: no other operation is asked for, and the look proves what it proves."""
    key = msgspec.structs.replace(KEY, protection=msgspec.structs.replace(KEY.protection, kind=kind))
    plan, _, _ = to_look(unknown(action(key)), action(key))
    assert isinstance(plan.send(shown(ITEM)), Amend)


def test_a_declared_result_is_all_a_look_returns():
    """The action's pointers narrow what a look brings, as they narrow an answer."""
    plan, _, paid = to_look(unknown(), action(result=("/id",)))
    assert recorded(plan, shown(ITEM), paid)[1].result == {"id": "ef_1"}


@pytest.mark.parametrize(
    "answers",
    [
        shown(),
        (Replied(status=404),),
        (Replied(status=200, body=b'{"complete":false,"items":[]}'),),
        (Silent(may_have_left=True, reason="read_timeout"),),
        (),
        shown({**ITEM, "payload": {"amount": 11}}),
        shown({**ITEM, "account": "other"}),
    ],
    ids=["absent", "404", "incomplete", "silent", "not made", "other content", "other account"],
)
def test_a_look_that_proves_nothing_settles_nothing(answers):
    """Unknown stays unknown: one read is spent, what was seen is recorded, and the next step is named."""
    plan, _, paid = to_look(unknown())
    evidence, ended = recorded(plan, answers, paid)
    assert evidence.finding is Finding.UNKNOWN
    assert (ended.standing, ended.operation.outcome) == (Standing.UNRESOLVED, Outcome.UNKNOWN)
    assert (ended.operation.looks, ended.operation.step) == (1, "look")


@pytest.mark.parametrize(
    ("at", "quiesced", "assumed", "finding"),
    [
        (NOON + 71, True, 60.0, Finding.ABSENT),
        (NOON + 70, True, 60.0, Finding.UNKNOWN),
        (NOON + 71, False, 60.0, Finding.UNKNOWN),
        (NOON + 71, True, None, Finding.UNKNOWN),
        (NOON + 11, True, 0.0, Finding.ABSENT),
    ],
    ids=["late enough", "too early", "may still write", "nothing assumed", "assumed at once"],
)
def test_absence_is_the_calculators_word(at, quiesced, assumed, finding):
    """Nothing found is absence only after deadline and assumed delivery, with every sender quiet; zero is a time."""
    of = action(longest_delivery=assumed, longest_delivery_by="ann", longest_delivery_why="measured")
    plan, _, paid = to_look(unknown(of, quiesced=quiesced), of, at=at)
    evidence, ended = recorded(plan, shown(), paid)
    assert evidence.finding is finding
    assert ended.operation.outcome is (Outcome.REJECTED if finding is Finding.ABSENT else Outcome.UNKNOWN)


@pytest.mark.parametrize(("looked", "finding"), [(NOON + 160, Finding.UNKNOWN), (NOON + 161, Finding.ABSENT)])
def test_absence_counts_from_when_the_sender_was_last_able_to_write(looked, finding):
    """A sender that reported back long after its deadline may have written until then: delivery counts from there."""
    of = action(longest_delivery=60.0, longest_delivery_by="ann", longest_delivery_why="measured")
    late = observed(claimed(order(of)), Finding.UNKNOWN, at=NOON + 100)
    plan, _, paid = to_look(late, of, at=looked)
    assert recorded(plan, shown(), paid, at=looked + 1)[0].finding is finding


def test_an_assumption_made_later_is_not_read_back():
    """Absence rests on what the receipt prints: an assumption stated after the claim proves nothing of it."""
    later = action(longest_delivery=0.0, longest_delivery_by="ann", longest_delivery_why="measured since")
    plan, _, paid = to_look(unknown(quiesced=True), later, at=NOON + 600)
    evidence, _ = recorded(plan, shown(), paid, at=NOON + 601)
    assert evidence.finding is Finding.UNKNOWN


def test_two_things_with_one_reference_are_a_discrepancy():
    """It happened, and once too often: succeeded, contradicted, and for a person."""
    plan, _, paid = to_look(unknown())
    _, ended = recorded(plan, shown(ITEM, {**ITEM, "id": "ef_2"}), paid)
    assert (ended.operation.outcome, ended.operation.step) == (Outcome.SUCCEEDED, "review")
    assert ended.standing is Standing.UNRESOLVED


@pytest.mark.parametrize(
    ("history", "of", "because"),
    [
        (erased(unknown()), action(), "its payload was erased"),
        (unknown(of=action("lab.nothing")), action("lab.nothing"), "the contract names no look that can be made"),
        (held(), action(), "the contract names no look that can be made"),
    ],
    ids=["erased", "no look", "nothing attempted"],
)
def test_what_cannot_be_looked_for(history, of, because):
    """Without a payload to compare with, a look to make or an attempt to look for, nothing is paid."""
    ended = ends(reconcile(history, of, draw(2), asked=True, by="ann"))
    assert (ended.because, ended.operation) == ((because,), history.operation)


@pytest.mark.parametrize(
    ("reply", "standing", "because"),
    [
        (
            Declined(because=("the read budget is spent",), history=unknown()),
            Standing.UNRESOLVED,
            "the read budget is spent",
        ),
        (
            Declined(because=("resolved",), history=observed(claimed(), Finding.SUCCEEDED, effect="pay")),
            Standing.EXISTING,
            "resolved",
        ),
    ],
)
def test_a_refused_look_is_not_made(reply, standing, because):
    """The budget, the spacing or somebody else's settlement say no under the lock: nothing is read."""
    plan = reconcile(unknown(), action(), draw(2), asked=False, by="w")
    next(plan)
    ended = ends(plan, reply)
    assert (ended.standing, ended.because) == (standing, (because,))


def test_a_settled_operation_answers_with_its_result():
    """Asking for a look at what is settled reads nothing and returns what a replay returns."""
    history = observed(claimed(), Finding.SUCCEEDED, effect="pay", result={"id": "ef_1"})
    plan = reconcile(history, action(), draw(2), asked=True, by="ann")
    ended = ends(plan, Declined(because=declined(history, next(plan).rule), history=None))
    assert (ended.standing, ended.result, ended.because) == (
        Standing.EXISTING, {"id": "ef_1"}, ("the operation is resolved",),
    )  # fmt: skip


def test_looks_take_turns_and_an_id_must_be_known():
    """Each of the contract's looks in turn; one by id only once an answer has named one."""
    by_id = msgspec.structs.replace(KEY.looks[0], by=By.ID)
    both = action(msgspec.structs.replace(KEY, looks=(by_id, KEY.looks[0])))

    def turns(history):
        attempts = (msgspec.structs.replace(_attempt(history)),)
        rows = [msgspec.structs.replace(history.operation, looks=looks) for looks in range(4)]
        return [next_look(msgspec.structs.replace(history, operation=row), both, attempts) for row in rows]

    assert turns(unknown()) == [1, 1, 1, 1]
    named = observed(claimed(), Finding.ACCEPTED, external_id="ef_1")
    assert turns(named) == [0, 1, 0, 1]
    plan, look, _ = to_look(unknown(external_id="ef_1"), both)
    assert look.order.names.external_id == "ef_1"
    plan.close()


def _attempt(history):
    from counterfoil.domain.event import attempts_of

    return attempts_of(history.events)[0][0]


def test_an_operation_without_a_claim_is_asked_by_its_own_key():
    """The destination and key are those of the claim, not of today's action."""
    moved = action(destination="https://elsewhere.example")
    plan, look, _ = to_look(unknown(), moved)
    assert look.order.destination == "https://api.example"
    assert order().intent.destination == "https://api.example"
    plan.close()


PAGED = action(
    msgspec.structs.replace(KEY, looks=(msgspec.structs.replace(KEY.looks[0], next_page="/next"),))
)  # fmt: skip


def part(*items, cursor, complete=False):
    """One page of several."""
    shown = {"complete": complete, "items": list(items), "next": cursor}
    return (Replied(status=200, body=json.dumps(shown).encode()),)


def next_one(plan, answers, paid, at=NOON + 61):
    """The plan pays for the next page, and reads it."""
    paid = ruled(paid, plan.send(answers).rule, at)
    look = plan.send(Amended(history=paid))
    assert isinstance(look, Look)
    return look, paid


def test_every_page_is_a_read_that_is_paid_before_it_is_made():
    """Page by page to the end, each counted, the later ones at once; then all of them are one reading."""
    plan, first, paid = to_look(unknown(of=PAGED), PAGED)
    assert first.order.names.cursor == ""
    second, paid = next_one(plan, part(CONTROL, cursor="c2"), paid)
    third, paid = next_one(plan, part(cursor="c3"), paid)
    assert [look.order.names.cursor for look in (second, third)] == ["c2", "c3"]
    evidence, ended = recorded(plan, part(ITEM, cursor=None, complete=True), paid)
    assert (evidence.finding, evidence.rule, ended.operation.looks) == (Finding.SUCCEEDED, "looks[0].found", 3)


@pytest.mark.parametrize("cursor", ["c2", "", None])
def test_pages_that_lead_in_a_circle_are_left(cursor):
    """A cursor that was asked for already, or none, ends the reading: incomplete, and nothing is concluded."""
    plan, _, paid = to_look(unknown(of=PAGED), PAGED)
    _, paid = next_one(plan, part(ITEM, CONTROL, cursor="c2"), paid)
    evidence, ended = recorded(plan, part(cursor=cursor), paid)
    assert (evidence.finding, evidence.reason, ended.operation.looks) == (Finding.UNKNOWN, "incomplete", 2)


def test_pages_end_with_the_budget():
    """Nothing is read that is not paid for, also in the middle of a list."""
    plan, _, paid = to_look(unknown(of=PAGED), PAGED)
    pay = plan.send(part(ITEM, CONTROL, cursor="c2"))
    spent = msgspec.structs.replace(paid, operation=msgspec.structs.replace(paid.operation, looks=5))
    amend = plan.send(Declined(because=declined(spent, pay.rule), history=spent))
    evidence = msgspec.json.decode(amend.record, type=Evidence)
    assert (evidence.finding, evidence.reason) == (Finding.UNKNOWN, "incomplete")
    plan.close()


def test_a_page_that_is_not_made_is_no_page():
    """An adapter that answers nothing leaves the list incomplete."""
    plan, _, paid = to_look(unknown(of=PAGED), PAGED)
    _, paid = next_one(plan, part(ITEM, CONTROL, cursor="c2"), paid)
    assert recorded(plan, (), paid)[0].reason == "not_made"


def test_absence_in_pages_counts_from_the_first_of_them():
    """What came after the first page was read may stand on it: time counts from when that was paid for."""
    of = msgspec.structs.replace(PAGED, longest_delivery=60.0, longest_delivery_by="ann", longest_delivery_why="so")
    stable = msgspec.structs.replace(of.contract.looks[0], stable_pages=True)
    sure = msgspec.structs.replace(of, contract=msgspec.structs.replace(of.contract, looks=(stable,)))
    for under, began, finding in (
        (sure, NOON + 70, Finding.UNKNOWN), (sure, NOON + 71, Finding.ABSENT), (of, NOON + 71, Finding.UNKNOWN),
    ):  # fmt: skip
        plan, _, paid = to_look(observed(claimed(order(under)), Finding.UNKNOWN), under, at=began)
        _, paid = next_one(plan, part(CONTROL, cursor="c2"), paid, at=NOON + 90)
        evidence, _ = recorded(plan, part(cursor=None, complete=True), paid, at=NOON + 91)
        assert evidence.finding is finding
