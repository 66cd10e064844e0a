"""Retention: only what is over is removed or erased, what is left says what it came to, and nothing can go again."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.keeping import AGE, DUE, LATER, body_erased, refused, removed, settled, whole
from tests.crash.stepping import NOON, action, claimed, declined, draw, ends, held, observed, order, ruled

from counterfoil.domain import looking, retention, rules
from counterfoil.domain.audit import audit
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import (
    Decided,
    Event,
    EventKind,
    History,
    Removed,
    attempts_of,
    encode,
    first_begun,
    intended_of,
    quiet_since,
    removal_said,
    removed_before,
    removed_of,
    sensitivity_of,
    start_of,
)
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.result import kept_result, result_gone
from counterfoil.domain.violation import Law
from counterfoil.domain.words import Basis, Discrepancy, Dispatch, Finding, Permission, Source, Standing
from counterfoil.plans import dispatch
from counterfoil.plans.claims import begun_for
from counterfoil.runtime.receipt import Receipt

REMOVE, ERASE = retention.remove(DUE), retention.erase(by="user:mara", reason="asked to", how="badge")
ANSWERED = settled(result={"id": "re_1"})
UNKNOWN = whole(observed(claimed(), Finding.UNKNOWN, source=Source.TRANSPORT))
CONTRADICTED = whole(
    observed(settled(), Finding.REJECTED, source=Source.LATE_ANSWER, rule="answers[1]", at=NOON + 2)
)  # fmt: skip


def with_row(history, **columns):
    """The history with other columns, as somebody with the file in their hands would leave it."""
    return msgspec.structs.replace(history, operation=msgspec.structs.replace(history.operation, **columns))


NEVER = {
    "unresolved": (UNKNOWN, retention.UNRESOLVED),
    "exposed": (with_row(ANSWERED, exposure=1), retention.UNRESOLVED),
    "contradicted": (CONTRADICTED, retention.CONTRADICTED),
    "a step is owed": (with_row(ANSWERED, step="dispatch"), retention.STEP_OWED),
    "held": (whole(held()), retention.HELD),
    "pending": (with_row(ANSWERED, permission=Permission.PENDING), retention.PENDING),
    "edited": (with_row(ANSWERED, key="another"), retention.BROKEN),
}


@pytest.mark.parametrize("rule", [REMOVE, ERASE], ids=["remove", "erase"])
@pytest.mark.parametrize("case", NEVER)
def test_what_is_not_over_is_left_alone(case, rule):
    """Unresolved, contradicted, owed, held, pending or broken: at any age nothing of it is removed or erased."""
    history, because = NEVER[case]
    assert because in refused(history, rule, at=NOON + 1e9)


@pytest.mark.parametrize("because", [retention.STEP_OWED, retention.PENDING])
def test_each_reason_stands_for_itself(because):
    """A column that alone forbids it is named, beside the record that does not say so."""
    (history,) = [history for history, reason in NEVER.values() if reason == because]
    assert refused(history, REMOVE) == (because, retention.BROKEN)


@pytest.mark.parametrize("make", [retention.remove, lambda due: retention.erase(by="house", reason="r", due=due)])
def test_age_counts_from_the_last_thing_that_happened(make):
    """To the second: before its time nothing is done, at its time it is."""
    last = ANSWERED.operation.updated_at
    assert refused(ANSWERED, make(DUE), at=last + AGE - 0.001) == (retention.TOO_YOUNG,)
    assert make(DUE)(ANSWERED, last + AGE).events


def test_erasing_does_not_make_it_younger():
    """An erasure is about the record: the receipt's own time goes on from what happened."""
    history = body_erased(ANSWERED)
    assert history.operation.updated_at == ANSWERED.operation.updated_at
    assert removed(history, at=ANSWERED.operation.updated_at + AGE).operation.updated_at == history.operation.updated_at


def test_a_person_erases_at_any_age():
    """A decision needs no retention to pass; who, why and how they were known stand in the record, under the hash."""
    decided = ERASE(ANSWERED, ANSWERED.operation.updated_at)
    said = msgspec.json.decode(decided.events[0].record, type=Decided)
    assert (said.decision, said.by, said.reason, said.how) == ("erase", "user:mara", "asked to", "badge")
    assert (said.seen_seq, said.facts) == (2, {"bodies": 2})


def test_an_erasure_by_retention_names_its_rule():
    """The class and the policy stand beside who keeps house."""
    rule = retention.erase(by="house", reason="r", due=DUE)
    said = msgspec.json.decode(rule(ANSWERED, LATER).events[0].record, type=Decided)
    assert said.facts == {"bodies": 2, "rule": "ordinary", "policy": "pl1:p"}


@pytest.mark.parametrize("rule", [REMOVE, ERASE], ids=["remove", "erase"])
def test_what_cannot_be_read_is_left_alone(rule):
    """A first record that is no record declines like any other broken one."""
    broken = (msgspec.structs.replace(ANSWERED.events[0], record=b"{"), *ANSWERED.events[1:])
    assert retention.BROKEN in refused(msgspec.structs.replace(ANSWERED, events=broken), rule)


def test_a_record_that_never_said_what_was_asked_is_not_replaced():
    """It cannot verify; were it to, nothing would be made up in its place."""
    with pytest.raises(InvariantBroken, match="what was asked"):
        retention._left(msgspec.structs.replace(ANSWERED, events=()), DUE)


def test_twice_is_once():
    """What is erased or removed already is left as it is."""
    assert refused(body_erased(ANSWERED), ERASE) == (retention.NOTHING_LEFT,)
    assert refused(removed(ANSWERED), ERASE) == (retention.NOTHING_LEFT,)
    assert refused(removed(ANSWERED), REMOVE) == (retention.REMOVED_ALREADY,)


# -- what is left ------------------------------------------------------------------------------------------------------


def test_a_removed_record_says_what_it_came_to():
    """One event stands for all: how many, where their chain ended, the fold, and on whose word they went."""
    left = removed_of(removed(ANSWERED).events)
    assert (left.events, left.head) == (2, ANSWERED.head.hex())
    assert (left.rule, left.policy, left.by) == ("ordinary", "pl1:p", "house")
    assert (left.created_at, left.updated_at) == (NOON, NOON + 1)
    assert left.intent == intended_of(ANSWERED.events)
    assert (left.attempts, left.discrepancy) == attempts_of(ANSWERED.events)
    assert left.quiet_since == quiet_since(ANSWERED.events) == NOON + 1
    assert (left.provider_key, left.contract_id) == (ANSWERED.operation.id, "lab.key")
    assert left.returned


def test_the_class_is_on_record_where_one_is_declared():
    """An action that declares none writes no byte more; one that does is kept by its own class, store alone."""
    plain, classed = claimed(), claimed(order(action(sensitivity="personal")))
    assert b"sensitivity" not in plain.events[0].record
    assert (sensitivity_of(plain.events), sensitivity_of(classed.events)) == ("ordinary", "personal")
    waiting = held(order(action(sensitivity="personal")))
    assert sensitivity_of(waiting.events) == "personal"
    assert sensitivity_of(()) == "ordinary"


def test_nothing_of_the_payload_or_the_result_is_left():
    """What was sent and what came back is in no byte of what stays."""
    history = removed(settled(result={"id": "re_1", "card": "4242"}))
    assert b"4242" not in encode(history)
    assert b"amount" not in encode(history)
    assert frozen_payload(history) is None


KEPT = {
    "succeeded": ANSWERED,
    "rejected": settled(Finding.REJECTED, effect=""),
    "not sent": settled(Finding.NOT_SENT, rule="", effect="", source=Source.TRANSPORT),
    "no result": settled(),
    "classified": settled(made=order(action(sensitivity="personal"))),
    "erased": body_erased(ANSWERED),
    "removed before": removed(
        whole(observed(settled(Finding.REJECTED, effect=""), Finding.UNKNOWN, source=Source.TRANSPORT, at=NOON + 3))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in KEPT if name != "removed before"])
def test_a_removed_record_verifies(name):
    """The chain goes on over what is gone, and the columns are still the fold."""
    before = KEPT[name]
    after = removed(before)
    assert audit(after) == ()
    assert attempts_of(after.events) == attempts_of(before.events)
    assert quiet_since(after.events) == quiet_since(before.events)
    assert sensitivity_of(after.events) == sensitivity_of(before.events)
    assert first_begun(after.events).attempt == attempts_of(before.events)[0][0]


def test_an_erased_record_verifies():
    """Every hash holds without the bodies, and the columns are what they were."""
    history = body_erased(ANSWERED)
    assert audit(history) == ()
    assert all(event.body is None for event in history.events)


def test_a_removed_record_is_removed_again():
    """Late evidence stands after the removal; when its own time has come, one event stands for both."""
    once = removed(ANSWERED)
    late = late_on(once, Finding.SUCCEEDED)
    assert (len(late.events), audit(late)) == (2, ())
    twice = removed(late, at=late.operation.updated_at + AGE)
    assert audit(twice) == ()
    assert removed_of(twice.events).events == late.operation.seq == removed_before(twice.events)
    assert start_of(twice.events) == (late.operation.seq, late.head)
    assert len(removed_of(twice.events).observed) == 2


def test_what_was_never_attempted_leaves_no_attempt():
    """A denied operation without an attempt is removed too; nothing is made up about it."""
    asked = held()
    operation = msgspec.structs.replace(asked.operation, held_by="")
    noted = msgspec.structs.replace(asked.events[0], kind=EventKind.HELD)
    history = whole(msgspec.structs.replace(asked, operation=operation, events=(noted,)))
    left = retention._left(history, DUE)
    assert (left.attempts, left.provider_key, left.assumptions, left.follows) == ((), "", {}, False)
    event = Event(n=1, seq=2, kind=EventKind.REMOVED, at=LATER, record=encode(left), body=None, hash=b"")
    assert first_begun((event,)) is None
    assert quiet_since((event,)) == 0.0


def test_a_paid_look_is_remembered():
    """When the last look was paid for stays known, over every removal: its answer may still come."""
    paid = ruled(UNKNOWN, looking.pay_look(action().contract, 0, asked=True, by="w"), at=NOON + 5)
    found = observed(
        paid, Finding.SUCCEEDED, source=Source.LOOK, rule="looks[0].found", effect="pay", at=NOON + 6, quiesced=False
    )
    once = removed(whole(found))
    assert removed_of(once.events).looked_at == NOON + 5
    twice = removed(late_on(once, Finding.SUCCEEDED), at=LATER + 10 * AGE)
    assert removed_of(twice.events).looked_at == NOON + 5


def late_on(history, finding, at=LATER + 1, **said):
    """The history after evidence that came late, as the store appends it."""
    given = {"source": Source.LATE_ANSWER, "rule": "answers[0]", "effect": "pay", **said}
    return observed(history, finding, at=at, **given)


def test_late_evidence_reopens_what_was_removed():
    """A success after a rejection is a discrepancy, whether the rejection's record stands or was removed."""
    history = late_on(removed(settled(Finding.REJECTED, effect="")), Finding.SUCCEEDED)
    assert history.operation.discrepancy is Discrepancy.OPEN
    assert history.operation.unresolved == 1
    assert audit(history) == ()
    assert refused(history, REMOVE, at=LATER + 1e9) == (
        retention.UNRESOLVED,
        retention.CONTRADICTED,
        retention.STEP_OWED,
    )


def test_the_same_evidence_after_its_removal_is_still_one_piece():
    """A spooled answer that is taken in once more adds nothing, though its record is gone."""
    record = ANSWERED.events[-1].record
    again = rules.observe(None, record, None, action().contract)
    assert refused(removed(ANSWERED), again) == ("this evidence is recorded already",)


def test_a_worker_that_is_proven_dead_later_moves_no_bound():
    """Until when an attempt may have written was known before the removal, and stays what it was."""
    late = late_on(removed(ANSWERED), Finding.UNKNOWN, source=Source.TRANSPORT, quiesced=True)
    assert quiet_since(late.events) == NOON + 1


# -- never again -------------------------------------------------------------------------------------------------------


DRAW = draw(7)


def further(history):
    """A claim of a further attempt on whatever basis holds."""
    begun = begun_for(action(), DRAW, destination="")
    return rules.claim_again(begun, action().contract, longest_delivery=None, automatic=False)


@pytest.mark.parametrize("name", KEPT)
def test_what_was_removed_is_never_claimed_again(name):
    """Whatever it came to, and were it that nothing left: the rule says when its record went, and starts nothing."""
    history = KEPT[name] if name == "removed before" else removed(KEPT[name])
    assert declined(history, further(history))[0] == "its record was removed by retention on 2027-01-15"


def test_the_sentence_names_the_day_of_the_removal():
    """An operation whose events stand has no such sentence."""
    assert removal_said(ANSWERED.events) == ()
    assert removal_said(()) == ()
    assert removal_said(removed(ANSWERED, at=NOON + 86_400).events) == (
        "its record was removed by retention on 2027-01-16",
    )


@pytest.mark.parametrize(
    ("history", "because"),
    [(body_erased(ANSWERED), "its payload was erased"), (removed(ANSWERED), "its record was removed by retention on ")],
    ids=["erased", "removed"],
)
def test_a_further_attempt_of_what_is_gone_asks_nobody(history, because):
    """There is nothing to check and nothing to send: no check is made, no look, and no claim is written."""
    ended = ends(dispatch.further(order(action(checked=True)), DRAW, history, bases=tuple(Basis)))
    assert ended.because[0].startswith(because)
    assert len(ended.because) == 1


def test_the_same_call_meets_what_was_removed():
    """It gets the receipt at once: not even a difference in what is immaterial is recorded any more."""
    history = removed(settled(Finding.NOT_SENT, rule="", effect="", source=Source.TRANSPORT))
    ended = ends(dispatch.again(order(payload=b'{"amount":10,"trace":1}'), DRAW, history))
    assert (ended.standing, ended.removed) == (Standing.EXISTING, True)
    assert ended.because == removal_said(history.events)


@pytest.mark.parametrize("gone", [body_erased, removed])
def test_what_is_gone_is_not_to_be_called_again(gone):
    """A model is offered no step that would be refused."""
    history = settled(Finding.NOT_SENT, rule="", effect="", source=Source.TRANSPORT)
    told = [Receipt(dispatch.stands(h), None, now=LATER, alive=False).permitted for h in (history, gone(history))]
    assert told == [("call_again", "get_outcome"), ("get_outcome",)]


def test_a_withdrawal_never_meets_a_removed_record():
    """One event that stands for many is no first claim that somebody may take back."""
    history = removed(settled(Finding.NOT_SENT, rule="", effect="", source=Source.TRANSPORT))
    assert refused(history, rules.withdraw(None, b"", None)) == ("somebody else wrote to it",)


# -- results -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "gone"),
    [
        (ANSWERED, ""),
        (body_erased(ANSWERED), "erased"),
        (removed(ANSWERED), "removed"),
        (removed(body_erased(ANSWERED)), "removed"),
        (settled(), ""),
        (removed(settled()), ""),
        (body_erased(settled(Finding.REJECTED, effect="", facts={"status": 422})), ""),
    ],
    ids=["kept", "erased", "removed", "both", "never any", "never any, removed", "rejected"],
)
def test_a_result_that_is_gone_is_told_from_one_that_never_was(history, gone):
    """Erased and removed have their word; a function that returned nothing has none."""
    said = result_gone(history) if kept_result(history) is None else ""
    assert said == gone


def test_a_late_answer_brings_a_result_of_its_own():
    """What arrives after the removal is kept like any other."""
    late = late_on(removed(ANSWERED), Finding.SUCCEEDED, result={"id": "re_2"})
    assert kept_result(late) == {"id": "re_2"}


# -- planted ----------------------------------------------------------------------------------------------------------


def forged(history, **changes):
    """The history whose one event says something else, with its hash recomputed."""
    from counterfoil.domain.event import chain

    (event,) = history.events
    record = encode(msgspec.structs.replace(removed_of(history.events), **changes))
    before = start_of((msgspec.structs.replace(event, record=record),))[1]
    link = chain(before, history.operation.id, event.seq, event.kind.value, event.at, record)
    return History(
        operation=history.operation, events=(msgspec.structs.replace(event, record=record, hash=link),)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"events": 1}, Law.SEQUENCE),
        ({"head": "00" * 32}, None),
        ({"discrepancy": Discrepancy.OPEN}, Law.PROJECTION),
        ({"attempts": ()}, Law.PROJECTION),
        ({"created_at": 1.0}, Law.PROJECTION),
        ({"updated_at": 1.0}, Law.PROJECTION),
        ({"settled_by": "x"}, Law.PROJECTION),
        ({"looks": 3}, Law.PROJECTION),
        ({"permission": Permission.DENIED}, Law.PROJECTION),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_named(changes, law):
    """Even with its hash recomputed, what it says is held against the row; only a signed head says more."""
    found = {v.law for v in audit(forged(removed(ANSWERED), **changes))}
    assert found == ({law} if law else set())


def test_an_intent_that_was_edited_is_named():
    """The checkpoint's intent is held against the row, as the first record's was."""
    left = removed_of(removed(ANSWERED).events)
    other = msgspec.structs.replace(left.intent, key="another")
    assert [v.law for v in audit(forged(removed(ANSWERED), intent=other))] == [Law.IDENTITY]


def test_an_unreadable_checkpoint_is_named():
    """It goes on from nothing, and says so."""
    history = removed(ANSWERED)
    broken = (msgspec.structs.replace(history.events[0], record=b"{}"),)
    assert start_of(broken) == (0, b"")
    assert {v.law for v in audit(msgspec.structs.replace(history, events=broken))} == {Law.SEQUENCE, Law.RECORD}
    no_hash = (forged(history, head="zz").events[0],)
    assert start_of(no_hash) == (0, b"")


def test_a_checkpoint_after_events_that_stand_is_named():
    """It stands for what is gone: beside what is not, one of the two is made up."""
    after = removed(ANSWERED)
    both = msgspec.structs.replace(after, events=(*ANSWERED.events, *after.events))
    assert [v.law for v in audit(both)] == [Law.SEQUENCE]


def test_an_attempt_after_the_removal_is_named():
    """Whoever sends what was removed is found out, with every hash recomputed."""
    from counterfoil.domain.event import chain

    history = removed(settled(Finding.REJECTED, effect=""))
    begun = begun_for(action(), DRAW, destination="")
    attempt = msgspec.structs.replace(begun.attempt, number=2, attempt_class="override")
    record = encode(
        msgspec.structs.replace(begun, attempt=attempt, basis="rejected_without_effect", provider_key="op_1")
    )
    seq = history.operation.seq + 1
    link = chain(history.head, history.operation.id, seq, "begun", LATER, record)
    event = Event(n=1, seq=seq, kind=EventKind.BEGUN, at=LATER, record=record, body=None, hash=link)
    operation = msgspec.structs.replace(history.operation, seq=seq)
    found = audit(History(operation=operation, events=(*history.events, event)))
    assert any(v.law is Law.BASIS and "removed" in v.problem for v in found)


def test_a_removed_records_fields_have_one_home():
    """Every field of the checkpoint that is a column is that column."""
    left, row = removed_of(removed(ANSWERED).events), ANSWERED.operation
    shared = set(Removed.__struct_fields__) & set(type(row).__struct_fields__) - {"attempts"}
    assert {name: getattr(left, name) for name in shared} == {name: getattr(row, name) for name in shared}
    assert row.dispatch is Dispatch.COMPLETED
