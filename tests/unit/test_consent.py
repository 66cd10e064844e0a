"""Permission by people: who may say yes, until when, and that no, taken back and run out stay what they are."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import (
    ASKED_SECONDS,
    LEA,
    MARA,
    NOOR,
    approved,
    asked,
    claim,
    faults,
    terms,
    wanted,
    who,
    yes,
)
from tests.crash.keeping import settled
from tests.crash.stepping import NOON, action, claimed, declined, erased, observed, ruled

from counterfoil.domain.approval import EXPIRED, UNANSWERED, binding
from counterfoil.domain.command import Amendment
from counterfoil.domain.consent import approve, deny, expire, expiry, revoke
from counterfoil.domain.decision import GIVEN_UP, HOUSE, authority, changed_since
from counterfoil.domain.event import Decided, attempts_of, encode
from counterfoil.domain.override import abandon, override
from counterfoil.domain.payload import ERASED
from counterfoil.domain.permission import ask
from counterfoil.domain.terms import Required
from counterfoil.domain.words import Basis, Disposition, Finding, Permission, Source

END = NOON + ASKED_SECONDS
TWO = Required(people=2, seconds=ASKED_SECONDS)
NAMED = Required(approvers=(MARA, NOOR), seconds=ASKED_SECONDS)


def last(history):
    """The last decision on record."""
    return msgspec.json.decode(history.events[-1].record, type=Decided)


def unresolved():
    """An approved attempt of which nobody knows what became."""
    history = approved()
    return observed(ruled(history, claim(history), NOON + 2), Finding.UNKNOWN, of=action(), at=NOON + 3)


def decided(history, rule, at=NOON + 30):
    """The history with a decision that a rule would take elsewhere, as if it had been taken here."""
    elsewhere = rule(asked_anew(unresolved(), NOON + 4), at)
    said = msgspec.json.decode(elsewhere.events[0].record, type=Decided)
    record = encode(msgspec.structs.replace(said, seen_seq=history.operation.seq))
    event = msgspec.structs.replace(elsewhere.events[0], record=record)
    after = msgspec.structs.replace(history.operation, permission=Permission.AUTHORIZED)
    return ruled(history, lambda *_: Amendment(operation=after, events=(event,)), at)


def asked_anew(history, at):
    """People are asked again about what may have left already."""
    proposed = authority(history).proposed
    return ruled(history, lambda h, now: ask(h.operation, proposed, ("policy changed",), now), at)


# -- yes -------------------------------------------------------------------------------------------------------------


def test_a_yes_authorizes_what_was_asked():
    """It may be dispatched from now on, until the approval ends; nothing is claimed by it."""
    history = ruled(asked(), yes(asked()), NOON + 10)
    operation = history.operation
    assert operation.permission is Permission.AUTHORIZED
    assert (operation.step, operation.due_at) == ("dispatch", NOON + 10 + ASKED_SECONDS)
    assert (operation.attempts, operation.exposure) == (0, 0)
    assert last(history).facts == {"binding": binding(authority(asked()).proposed), "of": 1}
    assert faults(history) == []


def test_it_takes_as_many_people_as_the_policy_says():
    """Before the last of them it is pending, due when the question ends; each of them answers once."""
    history = approved(wanted(required=TWO), MARA)
    assert (history.operation.permission, history.operation.step) == (Permission.PENDING, "approve")
    assert history.operation.due_at == END
    assert declined(history, yes(history, MARA)) == (f"{MARA} has approved it already",)
    assert declined(history, yes(history, f"{MARA} (uid 7)")) == (f"{MARA} has approved it already",)
    both = ruled(history, yes(history, NOOR))
    assert both.operation.permission is Permission.AUTHORIZED
    assert faults(both) == []


def test_whoever_asked_does_not_answer():
    """The requester approves nothing of its own, and no agent approves anything."""
    theirs = msgspec.structs.replace(wanted().intent, actor=MARA)
    history = asked(msgspec.structs.replace(wanted(), intent=theirs))
    assert declined(history, yes(history, MARA)) == (f"{MARA} asked for it, so somebody else decides",)
    assert declined(history, yes(history, f"{MARA} (uid 7)")) == (f"{MARA} asked for it, so somebody else decides",)


@pytest.mark.parametrize("decide", [yes, lambda h, by: deny(who(h, by))])
def test_only_the_named_answer(decide):
    """Where the policy names people nobody else says yes, nor no."""
    history = asked(wanted(required=NAMED))
    assert declined(history, decide(history, LEA)) == (f"{LEA} is not one of {MARA}, {NOOR}",)
    assert ruled(history, decide(history, NOOR)).operation.seq == 2


def test_a_yes_names_what_was_shown():
    """Another digest than the one of the question that stands there: it was shown something else."""
    history = asked()
    other = approve(who(history), bound="ab1:" + "0" * 40)
    assert declined(history, other) == ("it was shown something else than what is asked now",)
    anew = asked_anew(history, NOON + 1)
    late = approve(who(history), bound=binding(authority(history).proposed))
    assert declined(anew, late) == (changed_since(1, 2),)


@pytest.mark.parametrize(("at", "answered"), [(END, True), (END + 0.5, False)])
@pytest.mark.parametrize("decide", [yes, lambda h: deny(who(h))])
def test_a_question_that_has_ended_takes_no_answer(decide, at, answered):
    """Up to its end it is answered; after it nobody answered, recorded or not."""
    history = asked()
    if answered:
        ruled(history, decide(history), at)
    else:
        assert declined(history, decide(history), at) == (UNANSWERED,)


def test_where_nobody_is_asked_there_is_nothing_to_answer():
    """What a policy allows without people is neither approved nor denied."""
    history = settled()
    assert declined(history, approve(who(history), bound="")) == (
        "nobody is asked about it: its policy needs no approval",
    )
    assert declined(history, deny(who(history))) == ("permission is authorized, and nobody is asked",)


def test_nobody_approves_what_nobody_can_see():
    """Where the payload is gone, however that came about, there is nothing to say yes to; no may be said to it."""
    history = erased(asked())
    assert declined(history, yes(history)) == (ERASED,)
    assert ruled(history, deny(who(history))).operation.permission is Permission.DENIED


def test_what_is_answered_is_not_answered_again():
    """Yes after yes, after no and after it was taken back: permission is what it is."""
    for before in (approved(), ruled(asked(), deny(who(asked()))), ruled(asked(), revoke(who(asked())))):
        standing = before.operation.permission.value
        assert f"permission is {standing}" in declined(before, yes(before, NOOR))
        assert declined(before, deny(who(before, NOOR))) == (f"permission is {standing}, and nobody is asked",)


def test_a_yes_to_what_may_have_left_keeps_its_next_step():
    """A further question is answered while the first attempt is unresolved: looks go on, and nothing is dispatched."""
    before = asked_anew(unresolved(), NOON + 4)
    after = ruled(before, yes(before), NOON + 5)
    assert after.operation.permission is Permission.AUTHORIZED
    assert (after.operation.step, after.operation.due_at) == (before.operation.step, before.operation.due_at)
    assert faults(after) == []


# -- no, and taken back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "permission"), [(deny, Permission.DENIED), (revoke, Permission.REVOKED)], ids=["deny", "revoke"]
)
def test_what_is_refused_before_it_went_is_over(end, permission):
    """Closed, with no step owed and nothing ever sent."""
    history = ruled(asked(), end(who(asked())))
    operation = history.operation
    assert (operation.permission, operation.disposition) == (permission, Disposition.CLOSED)
    assert (operation.step, operation.due_at, operation.attempts) == ("", 0.0, 0)
    assert faults(history) == []
    assert f"permission is {permission.value}" in declined(history, claim(history))


def test_a_no_to_a_further_attempt_leaves_the_first():
    """What may have left stays open, with its next step: only the further attempt is refused."""
    before = asked_anew(unresolved(), NOON + 4)
    after = ruled(before, deny(who(before)), NOON + 5)
    assert (after.operation.permission, after.operation.disposition) == (Permission.DENIED, Disposition.OPEN)
    assert (after.operation.step, after.operation.unresolved) == ("look", 1)
    assert faults(after) == []


def test_an_approval_is_taken_back_until_it_is_used():
    """After yes and before dispatch: nothing is claimed any more."""
    history = approved()
    after = ruled(history, revoke(who(history)), NOON + 2)
    assert after.operation.permission is Permission.REVOKED
    assert "permission is revoked" in declined(after, claim(after))


def test_taking_it_back_does_not_reach_what_was_claimed():
    """What is under way finishes: its outcome, step and disposition stay, and no attempt follows."""
    before = unresolved()
    after = ruled(before, revoke(who(before)), NOON + 4)
    kept = ("dispatch", "outcome", "unresolved", "exposure", "step", "due_at", "disposition")
    assert [getattr(after.operation, name) for name in kept] == [getattr(before.operation, name) for name in kept]
    assert after.operation.permission is Permission.REVOKED
    assert faults(after) == []


def test_what_is_done_is_not_taken_back():
    """A settled outcome cannot be revoked, and what was refused already is refused once."""
    assert declined(settled(), revoke(who(settled()))) == ("its outcome is settled",)
    history = ruled(asked(), deny(who(asked())))
    assert declined(history, revoke(who(history))) == ("permission is denied",)


def test_what_needed_no_approval_can_be_taken_back_too():
    """An unresolved operation that its policy allowed: nothing further goes."""
    after = ruled(claimed(), revoke(who(claimed())))
    assert after.operation.permission is Permission.REVOKED
    assert faults(after) == []


# -- run out ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "end", "why"),
    [(asked(), END, UNANSWERED), (approved(), NOON + 1 + ASKED_SECONDS, EXPIRED)],
    ids=["question", "approval"],
)
def test_what_runs_out_is_recorded_as_itself_by_the_house(history, end, why):
    """A fact of the clock and nobody's answer: by the house, with reason and end, and open to a new question."""
    assert declined(history, expire(), end) == ("its permission has not ended",)
    after = ruled(history, expire(), end + 1)
    said = last(after)
    assert (said.decision, said.by, said.reason, said.facts) == ("expire", HOUSE, why, {"ended_at": end})
    assert after.operation.permission is Permission.EXPIRED
    assert (after.operation.step, after.operation.due_at) == ("", 0.0)
    assert after.operation.disposition is Disposition.OPEN
    assert faults(after) == []


def test_an_expiry_is_recorded_once():
    """What has expired, was denied, or asked nobody has no end to record."""
    once = ruled(asked(), expire(), END + 1)
    denied = ruled(asked(), deny(who(asked())))
    for history in (once, denied, settled()):
        assert expiry(history, END + 1_000) is None


def test_an_expiry_keeps_the_step_of_what_may_have_left():
    """The approval of an unresolved attempt runs out: the looks go on."""
    before = unresolved()
    after = ruled(before, expire(), NOON + 200)
    assert (after.operation.permission, after.operation.step) == (Permission.EXPIRED, "look")
    assert after.operation.due_at == before.operation.due_at
    assert faults(after) == []


def test_nobody_answering_is_never_a_yes():
    """However late it is, nothing is claimed on a question that was not answered."""
    for at in (NOON + 1, END + 1, END + 1e9):
        found = claim(asked(), automatic=True)(asked(), at)
        assert not getattr(found, "claims", False)


# -- what waits while evidence comes ---------------------------------------------------------------------------------


def told(history, finding, at=NOON + 20):
    """The history after late evidence on its first attempt."""
    source = Source.TRANSPORT if finding in (Finding.UNKNOWN, Finding.NOT_SENT) else Source.ANSWER
    rule = "" if source is Source.TRANSPORT else "answers[0]"
    effect = "pay" if source is Source.ANSWER else ""
    return observed(history, finding, at=at, source=source, rule=rule, effect=effect, attempt=1, reason=str(at))


def stayed():
    """An approved attempt that is proven not to have left."""
    return told(ruled(approved(), claim(approved()), NOON + 2), Finding.NOT_SENT, NOON + 3)


@pytest.mark.parametrize("before", [stayed(), unresolved()], ids=["stayed", "unknown"])
def test_a_question_waits_although_evidence_comes(before):
    """Proven not to have left while people are asked: the question stays open, until its own end."""
    after = told(asked_anew(before, NOON + 4), Finding.NOT_SENT)
    assert (after.operation.permission, after.operation.step) == (Permission.PENDING, "approve")
    assert after.operation.due_at == NOON + 4 + ASKED_SECONDS
    assert faults(after) == []


@pytest.mark.parametrize("finding", [Finding.SUCCEEDED, Finding.ACCEPTED])
def test_nobody_is_asked_about_what_is_done(finding):
    """It took place while people were asked about a further attempt: the question waits for nobody."""
    after = told(asked_anew(unresolved(), NOON + 4), finding)
    assert (after.operation.step, after.operation.due_at) == ("", 0.0)
    assert faults(after) == []
    assert faults(ruled(after, yes(after), NOON + 21)) == []


def test_what_was_approved_anew_is_dispatched_once_it_is_proven_to_have_stayed():
    """The yes came while the first attempt was unknown: with the proof it waits for its dispatch, until its end."""
    before = asked_anew(unresolved(), NOON + 4)
    after = told(ruled(before, yes(before), NOON + 5), Finding.NOT_SENT)
    assert (after.operation.step, after.operation.due_at) == ("dispatch", NOON + 5 + ASKED_SECONDS)
    assert faults(after) == []


def rejected_and_asked_anew():
    """A further attempt is asked for after a rejection."""
    return asked_anew(told(unresolved(), Finding.REJECTED, NOON + 4), NOON + 5)


def test_a_yes_after_a_rejection_is_for_whoever_asks():
    """What was settled is not dispatched by the worker: it waits, in sight, for whoever wants the further attempt."""
    before = rejected_and_asked_anew()
    assert before.operation.step == "approve"
    after = ruled(before, yes(before), NOON + 6)
    assert (after.operation.permission, after.operation.step) == (Permission.AUTHORIZED, "call")
    assert after.operation.due_at == NOON + 6 + ASKED_SECONDS
    assert faults(after) == []
    assert "projection" in faults(out_of_sight(after))[0]


def test_what_was_approved_after_a_rejection_may_be_taken_back():
    """The approval stands and may be used, so it may be revoked; an attempt that is over leaves nothing to revoke."""
    asking = rejected_and_asked_anew()
    for before in (asking, ruled(asking, yes(asking), NOON + 6)):
        after = ruled(before, revoke(who(before)), NOON + 7)
        assert (after.operation.permission, after.operation.step) == (Permission.REVOKED, "")
        assert faults(after) == []
    over = told(unresolved(), Finding.REJECTED, NOON + 4)
    assert declined(over, revoke(who(over))) == ("its outcome is settled",)


def out_of_sight(history):
    """The same operation, as if it waited for nobody."""
    return msgspec.structs.replace(history, operation=msgspec.structs.replace(history.operation, step="", due_at=0.0))


def pushed(history, at=NOON + 5):
    """The history after an override and the attempt on it, of which nothing left."""
    history = ruled(history, override(who(history), terms(), action().contract), at)
    history = ruled(history, claim(history, basis=Basis.OPERATOR_OVERRIDE), at + 1)
    return observed(history, Finding.NOT_SENT, at=at + 2, source=Source.TRANSPORT, reason=str(at))


def approved_after_it_stayed():
    """Nobody had been asked about the first attempt, which stayed; the next was approved, and is not made yet."""
    bare = observed(claimed(), Finding.NOT_SENT, at=NOON + 1)
    asking = ruled(bare, claim(bare), NOON + 2)
    return ruled(asking, yes(asking), NOON + 3)


@pytest.mark.parametrize(
    ("before", "ends_at"),
    [(stayed(), NOON + 1 + ASKED_SECONDS), (approved_after_it_stayed(), NOON + 3 + ASKED_SECONDS)],
    ids=["tried under it", "not tried under it"],
)
def test_what_may_still_be_sent_stays_in_sight_after_an_override(before, ends_at):
    """The attempt on an override stayed too: the approval stands, unused, for whoever asks, until its own end."""
    after = pushed(before)
    assert (after.operation.step, after.operation.due_at) == ("call", ends_at)
    assert faults(after) == []
    assert faults(out_of_sight(after)) == ["projection: it is resolved and still owes a step, or waits and owes none"]
    sent = ruled(after, claim(after), NOON + 20)
    assert attempts_of(sent.events)[0][-1].approval == authority(before).approval
    assert faults(sent) == []


def test_after_an_expired_approval_an_override_leaves_nothing_in_sight():
    """What has ended may not be sent under it any more."""
    after = pushed(ruled(stayed(), expire(), NOON + 200), NOON + 201)
    assert (after.operation.step, after.operation.due_at) == ("", 0.0)
    assert faults(after) == []


def given_up(history, at=NOON + 9):
    """The history after somebody stopped working on it."""
    return ruled(history, abandon(who(history)), at)


def test_what_was_given_up_and_then_stayed_waits_for_nobody():
    """An abandoned operation is not sent whatever was allowed: no step is owed, and no late yes makes one."""
    asking = asked_anew(unresolved(), NOON + 4)
    for before in (given_up(asking), given_up(ruled(asking, yes(asking), NOON + 5))):
        after = told(before, Finding.NOT_SENT)
        assert (after.operation.disposition, after.operation.step) == (Disposition.ABANDONED, "")
        assert faults(after) == []
        assert "the operation was abandoned" in declined(after, claim(after))
        assert GIVEN_UP in declined(after, yes(after))
    forged = decided(told(given_up(asking), Finding.NOT_SENT), yes(asking))
    assert "authority: it answers yes to what was abandoned" in faults(forged)


def test_what_came_back_and_then_stayed_is_not_sent_by_the_worker():
    """It was allowed, then given up, and news brought it back: it goes again only for whoever asks."""
    before = ruled(unresolved(), override(who(unresolved()), terms(), action().contract), NOON + 4)
    before = ruled(before, claim(before, basis=Basis.OPERATOR_OVERRIDE), NOON + 5)
    asking = asked_anew(observed(before, Finding.UNKNOWN, at=NOON + 6), NOON + 7)
    allowed = ruled(asking, yes(asking), NOON + 8)
    for history, step in ((allowed, "dispatch"), (given_up(allowed), "call")):
        back = told(history, Finding.NOT_SENT)
        assert (back.operation.unresolved, back.operation.disposition) == (1, Disposition.OPEN)
        after = observed(back, Finding.NOT_SENT, at=NOON + 21, source=Source.TRANSPORT)
        assert (after.operation.step, after.operation.due_at) == (step, NOON + 8 + ASKED_SECONDS)
        assert faults(after) == []


@pytest.mark.parametrize("end", [lambda h: revoke(who(h)), lambda h: expire()], ids=["revoked", "expired"])
def test_what_is_not_allowed_any_more_is_not_called_again(end):
    """Permission ended while the attempt was out: proven not to have left, it waits for nobody."""
    before = unresolved()
    after = told(ruled(before, end(before), NOON + 200), Finding.NOT_SENT, NOON + 201)
    assert (after.operation.step, after.operation.due_at) == ("", 0.0)
    assert faults(after) == []


def test_late_silence_about_what_stayed_leaves_its_caller_to_call():
    """The same call again sends it, under the approval that it did not use."""
    after = told(stayed(), Finding.UNKNOWN)
    assert after.operation.step == "call"
    assert faults(after) == []
