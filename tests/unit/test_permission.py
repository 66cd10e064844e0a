"""May this attempt go: judged in the claim, from the events and the clock, against what would be sent now."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import (
    ASKED_SECONDS,
    REQUIRED,
    WIRE,
    approved,
    asked,
    claim,
    faults,
    sought,
    terms,
    wanted,
    who,
    yes,
)
from tests.crash.keeping import settled
from tests.crash.stepping import NOON, action, claimed, declined, held, observed, order, ruled

from counterfoil.domain.approval import USED_UP, Bound, proposed_of
from counterfoil.domain.command import Amendment, Declined
from counterfoil.domain.consent import deny, expire, revoke
from counterfoil.domain.decision import authority
from counterfoil.domain.event import EventKind, History, attempts_of, begun_of
from counterfoil.domain.permission import NOT_FORMED, Permitted, Sought, is_final, needs_people, permit
from counterfoil.domain.retry import NO_ATTEMPT, RetryDecision
from counterfoil.domain.rules import CODE_CHANGED, CONTRACT_CHANGED
from counterfoil.domain.terms import NO_POLICY, Required
from counterfoil.domain.words import AttemptClass, Basis, Disposition, Finding, Permission

FIRST = RetryDecision(allowed=True, attempt_class=AttemptClass.FIRST)
LONG = Required(seconds=1e9, attempts=tuple(AttemptClass), uses=2)
END = NOON + 1 + ASKED_SECONDS


def kinds(found):
    """What an amendment would write."""
    assert isinstance(found, Amendment), found
    return [event.kind.value for event in found.events]


def sent(history, at=NOON + 2, **changes):
    """The history after its next attempt was claimed."""
    return ruled(history, claim(history, **changes), at)


def because(found):
    """Why it is asked anew."""
    return msgspec.json.decode(found.events[-1].record)["because"]


# -- who is asked at all ---------------------------------------------------------------------------------------------


def test_a_policy_or_an_earlier_question_needs_people():
    """Once people were asked nothing goes without them, whatever the policy says now."""
    assert not needs_people(claimed(), NO_POLICY)
    assert needs_people(claimed(), terms())
    assert needs_people(asked(), NO_POLICY)


def test_what_the_policy_allows_goes_without_an_approval():
    """Nobody is asked, so none is named."""
    history = held()
    after = sent(history, made=order(), under=Sought())
    assert attempts_of(after.events)[0][0].approval == 0


@pytest.mark.parametrize("under", [terms(), NO_POLICY], ids=["asks", "asks nobody any more"])
def test_what_cannot_be_shown_to_people_does_not_go(under):
    """Its payload was erased, so nothing can be formed that an approval could be compared with: nothing is claimed."""
    assert declined(approved(), claim(approved(), under=Sought(terms=under))) == (NOT_FORMED,)


def test_what_a_policy_forbids_does_not_go():
    """Refused comes before every approval."""
    refused = Sought(terms=terms(refused="no payments today"), proposed=sought(approved()).proposed)
    found = permit(approved(), refused, FIRST, NOON + 2)
    assert found == Declined(because=("no payments today",))


def test_a_policy_that_asks_by_now_asks():
    """Recorded without people and not sent: the question comes before the first attempt."""
    history = held()
    found = permit(history, sought(history), FIRST, NOON + 5)
    assert kinds(found) == ["proposed"]
    assert because(found) == ["the policy asks for an approval"]
    assert (found.operation.permission, found.operation.step) == (Permission.PENDING, "approve")
    assert found.operation.due_at == NOON + 5 + ASKED_SECONDS


# -- the approval that stands ----------------------------------------------------------------------------------------


def test_an_approval_lets_one_attempt_go_and_is_named():
    """The claim says by which event it was approved."""
    history = approved()
    assert permit(history, sought(history), FIRST, NOON + 2) == Permitted(approval=2)
    after = sent(history)
    begun = begun_of(after.events[-1])
    assert (begun.attempt.approval, begun.policy, begun.rule) == (2, "pl1:a", "large")
    assert faults(after) == []


def test_an_unanswered_question_lets_nothing_go():
    """Pending is pending: nothing is claimed and nothing is asked twice."""
    assert declined(asked(), claim(asked())) == ("permission is pending",)
    assert declined(asked(), claim(asked(), automatic=True)) == ("permission is pending",)


@pytest.mark.parametrize("field", Bound.__struct_fields__)
def test_a_change_in_any_field_is_another_question(field):
    """People are asked anew, for a caller and for the worker alike, and are told what changed."""
    history = approved()
    now = sought(history)
    bound = msgspec.structs.replace(now.proposed.bound, **{field: "another"})
    for automatic in (False, True):
        under = Sought(
            terms=now.terms, automatic=automatic, proposed=msgspec.structs.replace(now.proposed, bound=bound)
        )
        found = permit(history, under, FIRST, NOON + 2)
        assert kinds(found) == ["proposed"]
        assert because(found) == [f"{field} changed"]
        assert found.operation.permission is Permission.PENDING
        assert not found.claims


def test_asked_anew_the_old_approval_is_over():
    """What was approved under the old wire does not go under it either, until it is approved again."""
    history = approved()
    anew = ruled(history, claim(history, wire="wi1:other"), NOON + 2)
    assert declined(anew, claim(anew, wire="wi1:other")) == ("permission is pending",)
    back = ruled(anew, claim(anew), NOON + 3)
    assert back.operation.permission is Permission.PENDING
    assert faults(back) == []
    again = ruled(back, yes(back), NOON + 4)
    assert faults(sent(again, NOON + 5)) == []


def test_a_mentioned_id_is_no_change():
    """Another call id, another immaterial value: the same question, so its approval stands."""
    history = approved()
    made = wanted(mentioned={"call": "another"})
    assert permit(history, sought(history, made), FIRST, NOON + 2) == Permitted(approval=2)


# -- its end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("automatic", [False, True])
def test_up_to_its_end_an_approval_is_used(automatic):
    """The last moment is still within it."""
    assert sent(approved(), END, automatic=automatic).operation.attempts == 1


def test_the_end_is_recorded_as_itself_and_a_caller_asks_anew():
    """Both stand in one commit: that it ended, by the house, and the question that its caller's call puts."""
    for history in (approved(), asked()):
        found = claim(history)(history, END + 1)
        assert kinds(found) == ["decided", "proposed"]
        assert msgspec.json.decode(found.events[0].record)["decision"] == "expire"
        assert because(found) == ["it expired"]
        assert (found.operation.permission, found.operation.step) == (Permission.PENDING, "approve")
        assert found.operation.due_at == END + 1 + ASKED_SECONDS


def test_the_worker_asks_nobody_because_a_time_has_passed():
    """It records the end and stops: nothing is asked anew, now or with any later sweep."""
    history = approved()
    found = claim(history, automatic=True)(history, END + 1)
    assert kinds(found) == ["decided"]
    ended = ruled(history, claim(history, automatic=True), END + 1)
    assert ended.operation.permission is Permission.EXPIRED
    assert declined(ended, claim(ended, automatic=True), END + 2) == ("permission is expired",)
    assert faults(ended) == []


def test_a_caller_asks_anew_after_a_recorded_end():
    """Expired is no refusal: whoever calls again puts the question again."""
    ended = ruled(asked(), expire(), END + 1)
    found = claim(ended)(ended, END + 2)
    assert kinds(found) == ["proposed"]
    assert because(found) == ["it expired"]


def test_a_further_question_keeps_the_step_of_what_may_have_left():
    """Asked about a second attempt: the looks of the first go on."""
    history = approved(wanted(required=LONG))
    unknown = observed(sent(history, made=wanted(required=LONG)), Finding.UNKNOWN, of=action(), at=NOON + 3)
    made = wanted(terms=terms(required=LONG, digest="pl1:b"))
    after = ruled(unknown, claim(unknown, made, basis=Basis.SAME_KEY_REPLAY), NOON + 4)
    assert (after.operation.permission, after.operation.step) == (Permission.PENDING, "look")
    assert after.operation.due_at == unknown.operation.due_at
    assert faults(after) == []


# -- what it allows --------------------------------------------------------------------------------------------------


def unknown_under(required):
    """An approved attempt of which nobody knows what became."""
    history = approved(wanted(required=required))
    return observed(sent(history, made=wanted(required=required)), Finding.UNKNOWN, of=action(), at=NOON + 3)


@pytest.mark.parametrize(
    ("required", "why"),
    [
        (LONG, ()),
        (msgspec.structs.replace(LONG, uses=1), (USED_UP,)),
        (
            msgspec.structs.replace(LONG, attempts=REQUIRED.attempts),
            ("the approval allows no attempt of class same_key",),
        ),
    ],
    ids=["allowed", "used up", "another class"],
)
def test_an_approval_allows_classes_and_a_number(required, why):
    """A further attempt needs its class in the approval and a use that is left."""
    history = unknown_under(required)
    made = wanted(required=required)
    found = claim(history, made, basis=Basis.SAME_KEY_REPLAY)(history, NOON + 4)
    assert getattr(found, "because", ()) == why
    assert getattr(found, "claims", False) is not bool(why)


def test_what_stayed_gives_its_use_back():
    """Proven not to have left: the same single-use approval lets it go again, and then no more."""
    history = observed(sent(approved()), Finding.NOT_SENT, of=action(), at=NOON + 3)
    again = sent(history, NOON + 4)
    assert [a.approval for a in attempts_of(again.events)[0]] == [2, 2]
    assert faults(again) == []
    once = observed(again, Finding.NOT_SENT, attempt=2, of=action(), at=NOON + 5)
    assert ruled(once, claim(once), NOON + 6).operation.attempts == 3


def test_the_first_class_is_allowed_by_name():
    """An approval for what comes after only does not let a first attempt go."""
    required = msgspec.structs.replace(LONG, attempts=(AttemptClass.SAME_KEY,))
    history = approved(wanted(required=required))
    assert declined(history, claim(history, wanted(required=required))) == (
        "the approval allows no attempt of class first",
    )


@pytest.mark.parametrize("basis", list(Basis))
@pytest.mark.parametrize(("history", "under"), [(approved(), None), (held(), Sought())], ids=["approved", "allowed"])
def test_a_first_attempt_is_no_further_one(history, under, basis):
    """What was never attempted has nothing to repeat: a basis named for that borrows no other permission."""
    found = claim(history, basis=basis, under=under)(history, NOON + 2)
    assert getattr(found, "because", ()) == (() if basis is Basis.NOT_SENT else (NO_ATTEMPT,))


# -- what is final ---------------------------------------------------------------------------------------------------

ASKS = sought(asked())
OVERRIDE = Basis.OPERATOR_OVERRIDE


@pytest.mark.parametrize(
    ("permission", "under", "basis", "final"),
    [
        (Permission.AUTHORIZED, Sought(), None, False),
        (Permission.EXPIRED, ASKS, None, False),
        (Permission.EXPIRED, Sought(), None, True),
        (Permission.EXPIRED, Sought(), OVERRIDE, False),
        (Permission.PENDING, ASKS, None, False),
        (Permission.PENDING, Sought(), None, True),
        (Permission.PENDING, ASKS, OVERRIDE, True),
        (Permission.DENIED, ASKS, None, True),
        (Permission.DENIED, ASKS, OVERRIDE, True),
        (Permission.REVOKED, ASKS, None, True),
        (Permission.REVOKED, ASKS, OVERRIDE, True),
    ],
)
def test_what_can_be_made_of_a_permission(permission, under, basis, final):
    """No is no and taken back is taken back; what ran out is asked again or overridden; a question is answered."""
    assert is_final(permission, under, basis) is final


@pytest.mark.parametrize("end", [deny, revoke])
def test_a_no_is_never_asked_again(end):
    """Whatever changed since: the caller's call and the worker's write nothing."""
    history = ruled(asked(), end(who(asked())))
    word = history.operation.permission.value
    for automatic in (False, True):
        rule = claim(history, wire="wi1:other", automatic=automatic)
        assert f"permission is {word}" in declined(history, rule, END + 1)


@pytest.mark.parametrize("end", [deny, revoke])
def test_a_no_among_two_questions_stays(end):
    """Permission judged from the events alone says so too, were the operation's column lost."""
    ended = ruled(asked(), end(who(asked())))
    lost = msgspec.structs.replace(ended.operation, permission=Permission.AUTHORIZED, disposition=Disposition.OPEN)
    found = permit(History(operation=lost, events=ended.events), ASKS, FIRST, NOON + 2)
    assert found == Declined(because=(f"permission is {ended.operation.permission.value}",))


# -- what the worker may not do --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (wanted(action(contract_digest="ct1:new")), CONTRACT_CHANGED),
        (wanted(action(code="cd1:new")), CODE_CHANGED),
    ],
    ids=["contract", "code"],
)
def test_a_change_that_nobody_looked_at_stops_automatic_attempts(made, why):
    """The receipt stands on another contract or code: the worker does not go on, a caller's own call is judged anew."""
    history = observed(claimed(order(action())), Finding.NOT_SENT)
    bare = msgspec.structs.replace(made, terms=NO_POLICY)
    assert declined(history, claim(history, bare, automatic=True, under=Sought(automatic=True))) == (why,)
    assert ruled(history, claim(history, bare, under=Sought()), NOON + 3).operation.attempts == 2


@pytest.mark.parametrize("changes", [{"contract_digest": "ct1:new"}, {"code": "cd1:new"}], ids=["contract", "code"])
def test_a_change_that_people_have_approved_does_not_stop_the_worker(changes):
    """Asked anew because of it, and approved: the worker sends it once, under just what was approved."""
    made, before = wanted(action(**changes)), sent(approved())
    before = observed(before, Finding.NOT_SENT, at=NOON + 3)
    for automatic in (False, True):
        anew = ruled(before, claim(before, made, automatic=automatic), NOON + 4)
        assert because(anew) == [f"{next(iter(changes)).removesuffix('_digest')} changed"]
        ready = ruled(anew, yes(anew), NOON + 5)
        assert ready.operation.step == "dispatch"
        after = sent(ready, NOON + 6, made=made, automatic=True)
        assert (after.operation.attempts, faults(after)) == (2, [])
        back = ruled(ready, claim(ready, wanted(), automatic=True), NOON + 6)
        assert back.operation.permission is Permission.PENDING  # what is declared now is not what was approved


def test_a_change_before_anything_was_sent_is_for_the_approval():
    """Nothing was begun that the worker could compare: the question is put anew instead."""
    history = approved()
    found = claim(history, wanted(action(code="cd1:new")), automatic=True)(history, NOON + 2)
    assert because(found) == ["code changed"]


def test_settled_is_settled():
    """Whatever people allow, what took place goes no second time."""
    assert "the outcome is settled" in declined(settled(), claim(settled(), order(), under=Sought()))


def test_the_question_says_all_that_is_bound():
    """What is asked stands on record as it would be claimed: under the same policy, contract, code and wire."""
    bound = proposed_of(asked().events[0]).bound
    made = wanted()
    assert (bound.wire, bound.policy, bound.actor) == (WIRE, "pl1:a", made.intent.actor)
    assert (bound.contract, bound.code, bound.destination) == (
        made.action.contract_digest, made.action.code, made.action.destination
    )  # fmt: skip
    assert asked().events[0].kind is EventKind.PROPOSED
    assert authority(asked()).proposed.required == REQUIRED
