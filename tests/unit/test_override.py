"""Decisions about exposure: one more attempt, one beside another, or no more work; none of them proves anything."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import LEA, MARA, NOOR, approved, asked, claim, faults, terms, wanted, who
from tests.crash.keeping import body_erased, removed, settled
from tests.crash.stepping import NOON, action, claimed, declined, held, observed, order, ruled

from counterfoil import contracts
from counterfoil.domain import looking, rules
from counterfoil.domain.care import assign, investigate, wait_until
from counterfoil.domain.command import Amendment, NewEvent
from counterfoil.domain.consent import deny, expire, revoke
from counterfoil.domain.contract import Terminal
from counterfoil.domain.event import Decided, EventKind, attempts_of, encode
from counterfoil.domain.override import (
    abandon,
    holding,
    may_go_beside,
    overridden_by,
    override,
    override_share,
    override_stands,
    release,
    release_share,
    released_beside,
)
from counterfoil.domain.permission import MORE_TOLD, NOT_DECIDED, Sought, ask
from counterfoil.domain.retry import ABSOLUTE, CONTRADICTED, DONE, NO_ATTEMPT, ONE_SHOT
from counterfoil.domain.terms import OneShot, Terms
from counterfoil.domain.words import AttemptClass, Basis, Discrepancy, Disposition, Finding, Outcome, Source
from counterfoil.plans.claims import proposal_again

KEY = contracts.load("lab.key")
OVERRIDE = Basis.OPERATOR_OVERRIDE
FREE = Terms(policy=1, digest="pl1:a")
TWO = Terms(policy=1, digest="pl1:a", override_people=2)


def unknown(at=NOON + 1):
    """One attempt of which nobody knows what became."""
    return observed(claimed(), Finding.UNKNOWN, at=at)


def over(history, by=MARA, *, under=FREE, contract=KEY):
    """Their override of what stands there now."""
    return override(who(history, by), under, contract)


def overridden(history, *people, under=FREE, at=NOON + 5):
    """The history after these people have overridden it."""
    for by in people or (MARA,):
        history = ruled(history, over(history, by, under=under), at)
    return history


def further(history, *, under=FREE, number=None):
    """The rule that claims one more attempt on an override."""
    return claim(history, order(terms=under), number=number, basis=OVERRIDE, under=Sought(terms=under))


def asking(history, now):
    """People are asked about what was never approved."""
    return ask(history.operation, proposal_again(wanted(), history, "wi1:w"), ("the policy asks",), now)


def assigning(history):
    """Somebody else owns it from now on."""
    return assign(who(history), "treasury")


def last(history):
    """The last decision on record."""
    return msgspec.json.decode(history.events[-1].record, type=Decided)


# -- override --------------------------------------------------------------------------------------------------------


def test_an_override_lets_one_attempt_go_and_proves_nothing():
    """The outcome stays what it is, the facts say after which attempts, and one further attempt may be claimed."""
    before = unknown()
    history = overridden(before)
    assert history.operation == msgspec.structs.replace(before.operation, seq=3, updated_at=NOON + 5)
    assert (last(history).decision, last(history).facts) == ("override", {"of": 1, "after": [1]})
    sent = ruled(history, further(history), NOON + 6)
    assert attempts_of(sent.events)[0][1].attempt_class is AttemptClass.OVERRIDE
    assert (sent.operation.outcome, sent.operation.exposure) == (Outcome.UNKNOWN, 2)
    assert faults(sent) == []


def test_without_an_override_on_record_nothing_goes_on_one():
    """The basis is a decision, not a word in a call."""
    assert declined(unknown(), further(unknown())) == (NOT_DECIDED,)


def test_it_takes_as_many_people_as_the_policy_says():
    """Each decides alone and once, from whatever terminal; one of two is not enough."""
    one = overridden(unknown(), MARA, under=TWO)
    assert declined(one, further(one, under=TWO)) == ("1 of 2 people have decided it",)
    assert declined(one, over(one, f"{MARA} (uid 7)", under=TWO)) == (f"{MARA} has decided it already",)
    both = overridden(one, NOOR, under=TWO)
    assert overridden_by(both.events) == (MARA, NOOR)
    assert faults(ruled(both, further(both, under=TWO), NOON + 6)) == []


def test_the_policy_in_force_says_how_many():
    """Decided under a policy that asked for one, claimed under one that asks for two: it is not enough any more."""
    history = overridden(unknown())
    assert declined(history, further(history, under=TWO)) == ("1 of 2 people have decided it",)


def test_whether_an_override_stands_is_what_it_took_when_the_last_decided():
    """Nobody, one of two, two of two; and none once it is used up."""
    one, both = overridden(unknown(), MARA, under=TWO), overridden(unknown(), MARA, NOOR, under=TWO)
    sent = ruled(both, further(both, under=TWO), NOON + 6)
    stands = [override_stands(h.events) for h in (unknown(), ruled(unknown(), assigning(unknown())), one, both, sent)]
    assert stands == [False, False, False, True, False]


@pytest.mark.parametrize("by", ["mara", "User:MARA", "mara (uid 7)", "agent:a"])
@pytest.mark.parametrize(("verb", "share"), [("override", override_share), ("release", release_share)])
def test_another_spelling_on_record_shares_in_nothing(by, verb, share):
    """As it may stand there from before names had one form: one person, or an agent, decides no second time."""

    def says(name):
        record = encode(Decided(decision=verb, by=name, reason="r", facts={"of": 2}))
        return lambda h, _: Amendment(operation=h.operation, events=(NewEvent(kind=EventKind.DECIDED, record=record),))

    twice = ruled(ruled(unknown(), says(MARA)), says(by))
    assert share(twice.events) == (1, 2)
    assert not override_stands(twice.events)
    assert share(ruled(twice, says(NOOR)).events) == (2, 2)


@pytest.mark.parametrize(("by", "says"), [(LEA, f"{LEA} is not one of {MARA}"), (MARA, "")], ids=["not named", "named"])
def test_only_the_named_override(by, says):
    """Where the policy names who may, nobody else does."""
    rule = over(unknown(), by, under=msgspec.structs.replace(FREE, override_by=(MARA,)))
    found = rule(unknown(), NOON + 5)
    assert getattr(found, "because", ()) == ((says,) if says else ())


def test_the_requester_does_not_override():
    """Whoever asked for it decides no further attempt of it."""
    made = order()
    history = observed(
        claimed(msgspec.structs.replace(made, intent=msgspec.structs.replace(made.intent, actor=MARA))), Finding.UNKNOWN
    )
    assert declined(history, over(history)) == (f"{MARA} asked for it, so somebody else decides",)


def test_an_attempt_uses_it_up():
    """The next attempt needs the next decision."""
    history = overridden(unknown())
    sent = observed(ruled(history, further(history), NOON + 6), Finding.UNKNOWN, at=NOON + 7)
    assert overridden_by(sent.events) == ()
    assert declined(sent, further(sent)) == (NOT_DECIDED,)


def test_news_takes_it_back():
    """What was found out since was not known when it was decided; that nothing was found out is no news."""
    history = overridden(unknown())
    silent = observed(history, Finding.UNKNOWN, source=Source.LOOK, at=NOON + 6)
    assert overridden_by(silent.events) == (MARA,)
    told = observed(history, Finding.REJECTED, rule="answers[0]", at=NOON + 6)
    assert overridden_by(told.events) == ()
    assert declined(told, further(told)) == (NOT_DECIDED,)


@pytest.mark.parametrize(
    ("history", "why"),
    [
        (held(), NO_ATTEMPT),
        (settled(), DONE),
        (observed(observed(claimed(), Finding.SUCCEEDED, effect="pay"), Finding.REJECTED), CONTRADICTED),
    ],
)
def test_no_override_of_what_is_known(history, why):
    """Nothing attempted, done, or contradicted: a person's decision changes no fact."""
    assert why in declined(history, over(history))


def test_an_absolute_one_shot_is_overridden_by_nobody():
    """Neither decided nor, where it was decided under another policy, claimed; one that never left may go."""
    absolute = msgspec.structs.replace(FREE, one_shot=OneShot.ABSOLUTE)
    assert declined(unknown(), over(unknown(), under=absolute)) == (ABSOLUTE,)
    history = overridden(unknown())
    assert declined(history, further(history, under=absolute)) == (ABSOLUTE,)
    stayed = observed(claimed(), Finding.NOT_SENT)
    assert ruled(stayed, over(stayed, under=absolute)).operation.seq == 3
    one = msgspec.structs.replace(FREE, one_shot=OneShot.YES)
    assert overridden(unknown(), under=one).operation.seq == 3


def test_a_contract_of_one_shot_is_overridden_by_nobody():
    """What its provider documents is not a matter of permission."""
    once = msgspec.structs.replace(KEY, one_shot=True)
    assert declined(unknown(), over(unknown(), contract=once)) == (ONE_SHOT,)


def test_a_policy_that_forbids_it_forbids_the_override():
    """Refused is refused, however many decide; also where the policy changed after they did."""
    refused = msgspec.structs.replace(FREE, refused="no payments today")
    assert declined(unknown(), over(unknown(), under=refused)) == ("no payments today",)
    history = overridden(unknown())
    assert declined(history, further(history, under=refused)) == ("no payments today",)


def test_an_abandoned_operation_is_not_overridden():
    """Whoever wants it sent again takes it up first."""
    history = ruled(unknown(), abandon(who(unknown())))
    assert declined(history, over(history)) == ("the operation was abandoned",)


@pytest.mark.parametrize(
    ("gone", "why"),
    [(body_erased, "its payload was erased"), (removed, "its record was removed by retention on ")],
    ids=["erased", "removed"],
)
def test_what_is_gone_is_not_overridden(gone, why):
    """Nothing is left that could be sent: nobody decides that it may go, and an earlier decision claims nothing."""
    before = settled(Finding.REJECTED)
    history = gone(before)
    (because,) = declined(history, over(history))
    assert because.startswith(why)
    history = gone(overridden(before))
    assert declined(history, further(history))[0].startswith(why)


def lapsed():
    """An unknown attempt whose approval ran out."""
    history = approved()
    history = observed(ruled(history, claim(history), NOON + 2), Finding.UNKNOWN, of=action(), at=NOON + 3)
    return ruled(history, expire(), NOON + 200)


def test_what_has_expired_may_be_overridden():
    """An override is a permission of its own: the approval that ran out is no obstacle, and none is named."""
    history = ruled(lapsed(), over(lapsed(), under=terms()), NOON + 201)
    sent = ruled(history, claim(history, basis=OVERRIDE), NOON + 202)
    assert attempts_of(sent.events)[0][1].approval == 0
    assert faults(sent) == []


@pytest.mark.parametrize("end", [deny, revoke])
def test_what_people_refused_is_not_overridden(end):
    """Denied and taken back: another decision is no way around them, made before or after."""
    history = overridden(unknown())
    again = ruled(history, asking)
    ended = ruled(again, end(who(again)))
    word = ended.operation.permission.value
    assert declined(ended, over(ended, NOOR)) == (f"permission is {word}",)
    assert f"permission is {word}" in declined(ended, further(ended))


def test_what_people_are_asked_is_not_overridden():
    """While a question is open its answer is waited for, on the decision and on the claim."""
    pending = ruled(overridden(unknown()), asking)
    assert declined(pending, over(pending, NOOR)) == ("permission is pending",)
    assert "permission is pending" in declined(pending, further(pending))
    under = claim(pending, basis=OVERRIDE)
    assert "permission is pending" in declined(pending, under)


# -- release ---------------------------------------------------------------------------------------------------------


def let(history, by=MARA, *, holders=("op_9",), under=FREE):
    """Their release of what is held."""
    return release(who(history, by), under, holders)


def test_a_release_lifts_the_hold_and_sends_nothing():
    """It is still not started; its caller's next attempt may run beside those that were seen to hold it."""
    history = ruled(held(), let(held(), holders=("op_9", "op_8")))
    assert (history.operation.held_by, history.operation.attempts, history.operation.step) == ("", 0, "call")
    assert last(history).facts == {"of": 1, "beside": ["op_9", "op_8"], "lifted": True}
    assert released_beside(history.events) == {"op_9", "op_8"}
    found = claim(history, order(), under=Sought())(history, NOON + 3)
    assert (found.claims, found.beside) == (True, {"op_9", "op_8"})
    assert faults(history) == []


def test_it_runs_beside_what_all_of_them_saw():
    """Two people decide, and another holder came in between: nobody released it beside that one."""
    one = ruled(held(), let(held(), under=TWO, holders=("op_9", "op_8")))
    assert one.operation.held_by == "op_9"
    assert (last(one).facts["lifted"], released_beside(one.events)) == (False, frozenset())
    assert (release_share(held().events), release_share(one.events)) == ((0, 0), (1, 2))
    assert declined(one, let(one, f"{MARA} (uid 7)", under=TWO)) == (f"{MARA} has decided it already",)
    both = ruled(one, let(one, NOOR, under=TWO, holders=("op_9", "op_7")))
    assert both.operation.held_by == ""
    assert (released_beside(both.events), release_share(both.events)) == ({"op_9"}, (0, 0))
    assert faults(both) == []


def test_an_attempt_uses_a_release_up():
    """After it has gone nothing runs beside anything."""
    history = ruled(held(), let(held()))
    sent = ruled(history, claim(history, order(), under=Sought()), NOON + 3)
    assert released_beside(sent.events) == frozenset()
    stayed = observed(sent, Finding.NOT_SENT, at=NOON + 4)
    assert released_beside(stayed.events) == frozenset()
    again = ruled(stayed, let(stayed, holders=("op_9", "op_8"), under=TWO), NOON + 5)
    assert last(again).facts["beside"] == ["op_9", "op_8"]


def test_another_decision_releases_nothing():
    """Only a release lifts a hold."""
    history = ruled(held(), let(held()))
    kept = ruled(history, assigning(history))
    assert released_beside(kept.events) == {"op_9"}
    other = ruled(held(), assigning(held()))
    assert released_beside(other.events) == frozenset()
    assert last(ruled(other, let(other))).facts["beside"] == ["op_9"]


@pytest.mark.parametrize(
    ("history", "changes", "why"),
    [
        (held(), {"holders": ()}, "nothing holds it"),
        (approved(), {"holders": ()}, "nothing holds it"),
        (ruled(held(), let(held())), {"by": NOOR}, "nothing holds it"),
        (asked(), {}, "permission is pending"),
        (held(), {"under": Terms(one_shot=OneShot.ABSOLUTE)}, ABSOLUTE),
        (held(), {"under": Terms(refused="no payments today")}, "no payments today"),
        (held(), {"under": Terms(override_by=(NOOR,))}, f"{MARA} is not one of {NOOR}"),
        (claimed(), {}, "it was sent already"),
    ],
)
def test_what_is_not_released(history, changes, why):
    """Nothing to lift, one shot whatever anybody decides, forbidden, not theirs to decide, or gone already."""
    assert why in declined(history, let(history, **changes))


def test_what_is_approved_and_held_is_released():
    """Whether or not a claim of it was refused yet: it is what holds it now that is released."""
    history = ruled(approved(), let(approved()))
    assert released_beside(history.events) == {"op_9"}
    assert faults(history) == []
    found = claim(history)(history, NOON + 3)
    assert (found.claims, found.beside) == (True, {"op_9"})


def both(history, *, holders=("op_9",), at=NOON + 1):
    """The history after two people have released it beside these."""
    one = ruled(history, let(history, under=TWO, holders=holders), at)
    return ruled(one, let(one, NOOR, under=TWO, holders=holders), at)


def test_a_hold_that_was_lifted_is_lifted_anew():
    """Another holder came after it: as many people as the policy asks decide anew, the same ones too."""
    lifted = both(held())
    assert declined(lifted, let(lifted, LEA, under=TWO)) == ("nothing holds it",)
    now = ("op_9", "op_7")
    one = ruled(lifted, let(lifted, under=TWO, holders=now))
    assert last(one).facts == {"of": 2, "beside": ["op_9", "op_7"], "lifted": False}
    assert released_beside(one.events) == {"op_9"}
    assert declined(one, let(one, under=TWO, holders=now)) == (f"{MARA} has decided it already",)
    again = ruled(one, let(one, NOOR, under=TWO, holders=now))
    assert (last(again).facts["lifted"], released_beside(again.events)) == (True, {"op_9", "op_7"})
    assert faults(again) == []


def test_a_release_of_nobody_in_common_is_decided_anew():
    """Each saw another one hold it: nothing is released by that, and both may decide on what holds it now."""
    one = ruled(held(), let(held(), under=TWO, holders=("op_9",)))
    none = ruled(one, let(one, NOOR, under=TWO, holders=("op_7",)))
    assert released_beside(none.events) == frozenset()
    assert released_beside(both(none, holders=("op_7",)).events) == {"op_7"}
    assert faults(both(none, holders=("op_7",))) == []


def test_news_takes_an_unfinished_release_back():
    """What the first of two had seen is not what the second sees."""
    stayed = observed(claimed(), Finding.NOT_SENT)
    one = ruled(stayed, let(stayed, under=TWO))
    told = observed(one, Finding.NOT_SENT, at=NOON + 3, reason="reset")
    assert not last(ruled(told, let(told, NOOR, under=TWO))).facts["lifted"]
    assert faults(ruled(told, let(told, under=TWO))) == []


@pytest.mark.parametrize(
    ("under", "beside"),
    [
        (FREE, {"op_9"}),
        (TWO, set()),
        (msgspec.structs.replace(FREE, one_shot=OneShot.YES), {"op_9"}),
        (msgspec.structs.replace(FREE, one_shot=OneShot.ABSOLUTE), set()),
        (msgspec.structs.replace(FREE, override_by=(MARA,)), {"op_9"}),
        (msgspec.structs.replace(FREE, override_by=(NOOR,)), set()),
    ],
    ids=["one", "two", "one shot", "absolute", "still named", "not named any more"],
)
def test_a_release_is_judged_again_by_the_policy_in_force(under, beside):
    """Lifted by one person: where more people, others or nobody may decide it now, it goes beside nothing."""
    history = ruled(held(), let(held(), f"{MARA} (uid 7)"))
    assert may_go_beside(history.events, under) == beside
    assert claim(history, order(), under=Sought(terms=under))(history, NOON + 3).beside == beside
    assert holding(history, ("op_1", "op_9", "op_8"), under) == (("op_8",) if beside else ("op_9", "op_8"))


def test_what_a_stricter_policy_holds_again_is_released_by_as_many_as_it_asks():
    """One had lifted it: under a policy that asks for two, two decide anew."""
    history = both(ruled(held(), let(held())))
    assert may_go_beside(history.events, TWO) == {"op_9"}
    assert faults(history) == []


def test_an_override_counts_only_whom_the_policy_in_force_names():
    """Decided by somebody who may not any more: the claim needs the word of one who may."""
    history = overridden(unknown())
    named = msgspec.structs.replace(FREE, override_by=(NOOR,))
    assert declined(history, further(history, under=named)) == ("0 of 1 people have decided it",)
    both = overridden(history, NOOR, under=named)
    assert faults(ruled(both, further(both, under=named), NOON + 6)) == []


# -- abandon ---------------------------------------------------------------------------------------------------------


def test_abandoning_changes_no_outcome_and_lifts_no_hold():
    """Unknown stays unknown and unresolved; it only leaves the working queue, and no attempt follows."""
    before = unknown()
    after = ruled(before, abandon(who(before)))
    kept = ("outcome", "dispatch", "unresolved", "exposure", "settled_by", "permission", "held_by")
    assert [getattr(after.operation, name) for name in kept] == [getattr(before.operation, name) for name in kept]
    assert (after.operation.disposition, after.operation.step) == (Disposition.ABANDONED, "rest")
    assert after.operation.due_at == 0.0
    assert last(after).facts == {"exposure": 1}
    assert "the operation was abandoned" in declined(
        after, claim(after, order(), basis=Basis.SAME_KEY_REPLAY, under=Sought())
    )
    assert faults(after) == []


def test_late_evidence_brings_it_back_to_people():
    """News that settles nothing makes it unresolved like any other, with people first; silence leaves it at rest."""
    after = ruled(unknown(), abandon(who(unknown())))
    silent = observed(after, Finding.UNKNOWN, source=Source.LOOK, at=NOON + 3)
    assert (silent.operation.step, silent.operation.disposition) == ("rest", Disposition.ABANDONED)
    assert faults(silent) == []
    odd = observed(after, Finding.SUCCEEDED, effect="pay", contradicts=True, rule="answers[0]", at=NOON + 3)
    assert (odd.operation.step, odd.operation.discrepancy) == ("review", Discrepancy.OPEN)
    assert odd.operation.disposition is Disposition.OPEN
    assert faults(odd) == []
    done = observed(after, Finding.SUCCEEDED, effect="pay", rule="answers[0]", at=NOON + 3)
    assert (done.operation.outcome, done.operation.unresolved, done.operation.step) == (Outcome.SUCCEEDED, 0, "")
    assert done.operation.disposition is Disposition.ABANDONED  # it is over; what was decided stays decided
    assert faults(done) == []


def two_unknown():
    """Two attempts, the second on an override, of which nobody knows what became."""
    history = overridden(unknown())
    return observed(ruled(history, further(history), NOON + 6), Finding.UNKNOWN, at=NOON + 7)


def brought_back():
    """Given up while two attempts were unknown; a late answer rejects the first."""
    history = ruled(two_unknown(), abandon(who(two_unknown())), NOON + 8)
    return observed(history, Finding.REJECTED, attempt=1, rule="answers[0]", at=NOON + 9)


def test_what_came_back_may_be_overridden_and_sent():
    """Unresolved like any other: every decision about it may be taken again, on what is known now."""
    back = brought_back()
    assert (back.operation.unresolved, back.operation.disposition, back.operation.step) == (
        1, Disposition.OPEN, "review",
    )  # fmt: skip
    assert faults(back) == []
    sent = ruled(overridden(back, at=NOON + 10), further(overridden(back, at=NOON + 10)), NOON + 11)
    assert (sent.operation.attempts, faults(sent)) == (3, [])
    for rule in (wait_until(who(back), NOON + 60), assigning(back), investigate(
        who(back), channel="their support", whom=MARA, looks=1, contract=KEY
    ), looking.pay_look(KEY, 0, asked=True, by=MARA)):  # fmt: skip
        assert faults(ruled(back, rule, NOON + 12)) == []


def test_silence_leaves_with_people_what_came_back():
    """Nobody has decided that it goes on by itself: a sender that died adds nothing to what brought it back."""
    silent = observed(brought_back(), Finding.UNKNOWN, source=Source.TRANSPORT, at=NOON + 12, reason="worker_died")
    assert (silent.operation.step, silent.operation.disposition) == ("review", Disposition.OPEN)
    assert faults(silent) == []


def test_an_override_from_before_does_not_come_back_with_it():
    """Whoever decided on more exposure, before it was given up, had not seen the news."""
    history = overridden(two_unknown())
    history = ruled(history, abandon(who(history)), NOON + 8)
    back = observed(history, Finding.REJECTED, attempt=1, rule="answers[0]", at=NOON + 9)
    assert declined(back, further(back), NOON + 10) == (NOT_DECIDED,)


def test_accepted_while_abandoned_is_for_a_person_though_a_look_is_due():
    """Where the contract would look again, an abandoned operation is reviewed."""
    terminal = (Terminal(source="service", state={"/state": ("paid",)}, finding="succeeded"),)
    made = action(msgspec.structs.replace(KEY, terminal=terminal))
    history = observed(claimed(order(made)), Finding.UNKNOWN, of=made)
    after = observed(ruled(history, abandon(who(history))), Finding.ACCEPTED, of=made, effect="pay", at=NOON + 3)
    assert (after.operation.unresolved, after.operation.step) == (1, "review")
    assert observed(history, Finding.ACCEPTED, of=made, effect="pay", at=NOON + 3).operation.step == "follow"


def test_what_came_back_is_abandoned_again():
    """Back in review after news, a person may decide it a second time; what rests is abandoned once."""
    after = ruled(unknown(), abandon(who(unknown())))
    assert declined(after, abandon(who(after, NOOR))) == ("it was abandoned",)
    odd = observed(after, Finding.SUCCEEDED, effect="pay", contradicts=True, rule="answers[0]", at=NOON + 3)
    assert ruled(odd, abandon(who(odd))).operation.step == "rest"


@pytest.mark.parametrize("history", [asked(), settled(), held()], ids=["asked", "settled", "held"])
def test_what_is_not_unresolved_is_not_abandoned(history):
    """Where nothing may have left unseen there is nothing to give up."""
    assert declined(history, abandon(who(history))) == ("nothing of it is unresolved",)


def test_an_abandoned_operation_is_not_handed_on():
    """No automatic step is left to take, so none is passed on."""
    after = ruled(unknown(), abandon(who(unknown())))
    assert declined(after, rules.hand_over(KEY, ("spent",))) == ("nothing to hand over",)


def test_silence_does_not_put_to_rest_what_news_brought_back():
    """In review after news, a further look that found nothing out leaves it with people."""
    after = ruled(unknown(), abandon(who(unknown())))
    odd = observed(after, Finding.SUCCEEDED, effect="pay", contradicts=True, rule="answers[0]", at=NOON + 3)
    assert observed(odd, Finding.UNKNOWN, source=Source.LOOK, at=NOON + 4).operation.step == "review"


def test_a_contradiction_is_news_whatever_it_found():
    """Two objects with one reference say nothing of the attempt, and are for a person at once."""
    after = ruled(unknown(), abandon(who(unknown())))
    two = observed(after, Finding.UNKNOWN, source=Source.LOOK, contradicts=True, at=NOON + 3)
    assert (two.operation.step, two.operation.discrepancy) == ("review", Discrepancy.OPEN)


def test_a_policy_that_asks_for_fewer_now_does_not_make_one_enough():
    """Whoever decided as the first of two decided that two should: the record would not show why one was enough."""
    one = overridden(unknown(), MARA, under=TWO)
    assert declined(one, further(one)) == (MORE_TOLD,)
    both = overridden(one, NOOR)
    assert faults(ruled(both, further(both), NOON + 6)) == []
