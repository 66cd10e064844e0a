"""Approvals: what exactly they are for, who gave them, until when, and how often they may be used."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import ASKED_SECONDS, LEA, MARA, NOOR, approved, asked, claim, wanted, who, yes
from tests.crash.keeping import removed, settled
from tests.crash.stepping import NOON, action, declined, observed, ruled

from counterfoil.domain.approval import (
    Authority,
    Bound,
    authority_of,
    binding,
    changed,
    proposed_of,
)  # fmt: skip
from counterfoil.domain.command import Amendment, NewEvent
from counterfoil.domain.consent import deny, expire, revoke
from counterfoil.domain.decision import authority
from counterfoil.domain.event import Decided, EventKind, encode, removed_of
from counterfoil.domain.permission import ask
from counterfoil.domain.terms import Required
from counterfoil.domain.words import AttemptClass, Finding, Permission

TWO = Required(people=2, seconds=ASKED_SECONDS)
OTHERS = {"people": 3, "approvers": (LEA,), "seconds": 5.0, "attempts": (AttemptClass.FIRST,), "uses": 2}


def question(history=None):
    """What people are asked there."""
    return proposed_of((history or asked()).events[0])


# -- what it is for --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", Bound.__struct_fields__)
def test_every_field_of_what_is_asked_is_part_of_the_binding(field):
    """Another value in any field is another question, with a digest of its own and its name among the changes."""
    before = question()
    after = msgspec.structs.replace(before, bound=msgspec.structs.replace(before.bound, **{field: "another"}))
    assert binding(after) != binding(before)
    assert changed(before.bound, after.bound) == (field,)


@pytest.mark.parametrize("field", Required.__struct_fields__)
def test_what_the_policy_asks_is_part_of_the_binding(field):
    """Who is asked and what one yes allows was shown too."""
    before = question()
    required = msgspec.structs.replace(before.required, **{field: OTHERS[field]})
    assert binding(msgspec.structs.replace(before, required=required)) != binding(before)


def test_what_only_explains_the_question_leaves_the_binding():
    """A call's id and why it is asked anew are shown and are not what is allowed."""
    before = question()
    after = msgspec.structs.replace(before, mentioned={"call": "c2"}, because=("it expired",))
    assert binding(after) == binding(before)
    assert changed(before.bound, after.bound) == ()


# -- how it stands ---------------------------------------------------------------------------------------------------


def test_without_a_question_the_policy_allowed_it():
    """What nobody had to approve is authorized, by no event."""
    assert authority(settled()) == Authority()


def test_a_question_is_pending_until_its_end():
    """Asked: nobody has answered, and the time to answer runs from the question."""
    standing = authority(asked())
    assert (standing.permission, standing.approved_by, standing.approval) == (Permission.PENDING, (), 0)
    assert (standing.proposed, standing.proposed_seq) == (question(), 1)
    assert standing.ends_at == NOON + ASKED_SECONDS


def test_an_approval_is_the_event_of_the_last_yes():
    """Two people are asked: one of them is not enough, and the time to use it runs from the second."""
    made = wanted(required=TWO)
    half = approved(made, MARA)
    assert (authority(half).permission, authority(half).approved_by) == (Permission.PENDING, (MARA,))
    assert authority(half).ends_at == NOON + ASKED_SECONDS
    both = ruled(half, yes(half, NOOR), NOON + 50)
    standing = authority(both)
    assert (standing.permission, standing.approval, standing.approved_by) == (Permission.AUTHORIZED, 3, (MARA, NOOR))
    assert standing.ends_at == NOON + 50 + ASKED_SECONDS


def test_a_question_put_anew_forgets_what_was_answered():
    """The yes to another question is none to this one."""
    half = approved(wanted(required=TWO), MARA)
    anew = ruled(half, lambda h, now: ask(h.operation, question(), ("wire changed",), now), NOON + 9)
    standing = authority(anew)
    assert (standing.permission, standing.approved_by, standing.approval) == (Permission.PENDING, (), 0)
    assert (standing.proposed_seq, standing.ends_at) == (3, NOON + 9 + ASKED_SECONDS)
    assert standing.proposed.because == ("wire changed",)


@pytest.mark.parametrize(
    ("rule", "at", "permission"),
    [
        (lambda h: deny(who(h)), NOON + 1, Permission.DENIED),
        (lambda h: revoke(who(h)), NOON + 1, Permission.REVOKED),
        (lambda h: expire(), NOON + 101, Permission.EXPIRED),
    ],
)
def test_what_ends_a_permission_is_recorded_as_itself(rule, at, permission):
    """No, taken back and run out are three different things."""
    history = asked()
    assert authority(ruled(history, rule(history), at)).permission is permission


def test_a_yes_that_nobody_was_asked_for_allows_nothing():
    """It stands in the history and is no approval."""
    stray = NewEvent(kind=EventKind.DECIDED, record=encode(Decided(decision="approve", by=MARA, reason="sure")))
    history = ruled(settled(), lambda h, _: Amendment(operation=h.operation, events=(stray,)))
    assert authority(history) == Authority()


def test_a_decision_about_something_else_leaves_permission():
    """Who owns it has nothing to do with whether it may go."""
    stray = NewEvent(kind=EventKind.DECIDED, record=encode(Decided(decision="assign", by=MARA, reason="hers")))
    history = ruled(asked(), lambda h, _: Amendment(operation=h.operation, events=(stray,)))
    assert authority(history) == authority(asked())


def test_what_was_removed_keeps_its_permission():
    """Retention leaves what it had come to, and no approval that could still be used."""
    left = removed(settled())
    said = msgspec.structs.replace(removed_of(left.events), permission=Permission.EXPIRED)
    event = msgspec.structs.replace(left.events[0], record=encode(said))
    assert authority_of((event,), ()) == Authority(permission=Permission.EXPIRED)


# -- how often it may be used ----------------------------------------------------------------------------------------


def test_each_attempt_uses_it_and_one_that_stayed_gives_it_back():
    """Unreported and unknown count as used; only the proof that nothing left gives a use back."""
    history = approved()
    sent = ruled(history, claim(history), NOON + 2)
    assert authority(history).uses == 0
    assert authority(sent).uses == 1
    assert authority(observed(sent, Finding.UNKNOWN, of=action())).uses == 1
    assert authority(observed(sent, Finding.REJECTED, of=action())).uses == 1
    assert authority(observed(sent, Finding.NOT_SENT, of=action())).uses == 0


def test_an_attempt_under_another_approval_uses_none_of_this():
    """A new approval is counted from its own first attempt."""
    history = approved()
    sent = observed(ruled(history, claim(history), NOON + 2), Finding.REJECTED, of=action())
    anew = ruled(sent, lambda h, now: ask(h.operation, question(history), ("policy changed",), now), NOON + 3)
    again = ruled(anew, yes(anew), NOON + 4)
    assert (authority(again).approval, authority(again).uses) == (again.operation.seq, 0)


def test_attempts_that_needed_no_approval_use_none():
    """Without an approval there is nothing to use up."""
    history = settled()
    assert authority_of(history.events, ()).uses == authority(history).uses == 0


@pytest.mark.parametrize("by", ["mara", "User:MARA", "mara (uid 7)", "agent:a", "Agent :b", "bob"])
def test_another_spelling_on_record_is_nobody_else(by):
    """As it may stand there from before names had one form: neither twice one person, nor an agent, nor who asked."""
    call = wanted(required=TWO)
    call = msgspec.structs.replace(call, intent=msgspec.structs.replace(call.intent, actor="user:Bob"))
    history = asked(call)
    bound = binding(authority(history).proposed)

    def says(name):
        record = encode(Decided(decision="approve", by=name, reason="r", facts={"binding": bound}))
        return lambda h, _: Amendment(operation=h.operation, events=(NewEvent(kind=EventKind.DECIDED, record=record),))

    once = ruled(history, says(MARA))
    assert authority(once).approved_by == (MARA,)
    again = ruled(once, says(by))
    assert authority(again).approved_by == (MARA,)
    assert authority(again).permission is Permission.PENDING
    older = ruled(history, says("Mara (uid 7)"))
    assert declined(older, yes(older)) == (f"{MARA} has approved it already",)
    assert authority(ruled(again, says(NOOR))).permission is Permission.AUTHORIZED
