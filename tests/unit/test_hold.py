"""Holds: proposed, recorded with everything that would be sent, not claimed, and given back to its caller."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import ASKED_SECONDS, NOOR, WIRE, approved, asked, claim, faults, wanted, who, yes
from tests.crash.keeping import settled
from tests.crash.stepping import NOON, action, claimed, declined, draw, held, observed, order, ruled

from counterfoil.domain.care import assign
from counterfoil.domain.command import Amendment
from counterfoil.domain.consent import deny, expire, revoke
from counterfoil.domain.event import EventKind, Noted, destination_of
from counterfoil.domain.hold import ask, goes_back, hand_back, is_callers, notice, propose
from counterfoil.domain.override import release
from counterfoil.domain.payload import salted_digest
from counterfoil.domain.permission import Sought
from counterfoil.domain.permission import ask as asking
from counterfoil.domain.terms import NO_POLICY, Terms
from counterfoil.domain.words import Basis, Dispatch, Finding, Outcome, Permission
from counterfoil.plans.claims import first_claim, first_proposal, proposal_again


def test_a_proposal_claims_nothing_and_names_its_holder():
    """It is neither started nor unresolved; who holds it and what would be sent are on record."""
    claim = first_claim(order(), draw())
    operation, event = propose(claim, "op_9", NOON)
    assert (operation.dispatch, operation.outcome, operation.attempts) == (Dispatch.NOT_STARTED, Outcome.UNOBSERVED, 0)
    assert (operation.unresolved, operation.exposure, operation.step, operation.worker) == (0, 0, "call", "")
    assert (operation.due_at, operation.held_by, operation.seq, operation.created_at) == (0.0, "op_9", 1, NOON)
    note = msgspec.json.decode(event.record, type=Noted)
    assert (event.kind, event.body, note.note) == (EventKind.HELD, claim.body, "held by op_9")
    assert note.facts["provider_key"] == claim.id
    assert note.facts["payload_digest"] == salted_digest(claim.body)
    assert note.facts["destination"] == "https://api.example"


def test_a_question_claims_nothing_and_ends():
    """It is pending, neither started nor unresolved; what would be sent is on record with its payload."""
    proposal = first_proposal(wanted(), draw(), WIRE)
    operation, event = ask(proposal, NOON)
    assert (operation.permission, operation.dispatch, operation.attempts) == (
        Permission.PENDING, Dispatch.NOT_STARTED, 0
    )  # fmt: skip
    assert (operation.unresolved, operation.exposure, operation.worker) == (0, 0, "")
    assert (operation.step, operation.due_at, operation.seq) == ("approve", NOON + ASKED_SECONDS, 1)
    assert (event.kind, event.record, event.body) == (
        EventKind.PROPOSED, proposal.claim.record, proposal.claim.body
    )  # fmt: skip


# -- back to its caller ----------------------------------------------------------------------------------------------


def refused(history, holder="op_9", at=NOON + 2):
    """The history after a claim of it was refused because another holds its effect."""
    return ruled(history, lambda h, _: hand_back(Amendment(operation=h.operation, events=()), holder), at)


def stayed(history, made=None):
    """The history after its next attempt, which is proven not to have left."""
    sent = ruled(history, claim(history, made or wanted()), NOON + 3)
    return observed(sent, Finding.NOT_SENT, of=action(), at=NOON + 4)


def released(history, by=NOOR, **terms):
    """The history after their release of what op_9 holds."""
    return ruled(history, release(who(history, by), Terms(**terms), ("op_9",)), NOON + 5)


def asked_about(history, at=NOON + 6):
    """The history after people were asked about it."""
    return ruled(history, lambda h, now: asking(h.operation, proposal_again(wanted(), h, WIRE), ("asked",), now), at)


def test_what_is_held_back_is_its_callers_until_its_approval_ends():
    """Approved and refused for a holder: no worker's step is left, and its end is still to come."""
    history = refused(approved())
    operation = history.operation
    assert (operation.step, operation.held_by, operation.due_at) == ("call", "op_9", NOON + 1 + ASKED_SECONDS)
    assert (operation.permission, operation.dispatch, operation.exposure) == (
        Permission.AUTHORIZED, Dispatch.NOT_STARTED, 0
    )  # fmt: skip
    assert faults(history) == []


def test_the_worker_gives_back_only_what_it_would_send():
    """What was claimed, answered or given back meanwhile is left as it is."""
    history = ruled(approved(), notice("op_9"))
    assert history.operation == msgspec.structs.replace(
        refused(approved()).operation, updated_at=history.operation.updated_at
    )
    for other in (history, asked(), held(), settled(), claimed()):
        assert declined(other, notice("op_9")) == ("no worker would send it",)


@pytest.mark.parametrize(
    ("history", "goes"),
    [
        (approved(), True),
        (held(), False),
        (held(holder="op_8"), True),
        (stayed(approved()), True),
        (asked(), False),
        (settled(), False),
        (observed(claimed(), Finding.NOT_SENT), True),
        (ruled(approved(), expire(), NOON + 200), False),
    ],
    ids=["approved", "known", "another holder", "stayed", "asked", "settled", "stayed, nobody asked", "expired"],
)
def test_what_goes_back_when_its_claim_is_refused(history, goes):
    """Whatever waits to be sent, once for each that holds it; what is open, over or settled is nobody's to call."""
    assert goes_back(history.operation, "op_9") is goes


def test_a_hold_lasts_until_the_next_attempt():
    """Neither another decision, nor a question, nor a yes makes it the worker's again; an attempt does."""
    assert not is_callers(approved().events)
    history = refused(approved())
    assert is_callers(history.events)
    assert is_callers(ruled(history, assign(who(history), "treasury")).events)
    assert is_callers(asked_about(history).events)
    assert not is_callers(stayed(history).events)
    assert is_callers(released(approved()).events)
    assert is_callers(released(approved(), override_people=2).events)


def test_a_yes_after_a_hold_leaves_it_to_its_caller():
    """Held, asked about and approved: whatever has become of its holder meanwhile, only its caller sends it."""
    for before in (held(), refused(approved()), released(held())):
        history = asked_about(before)
        assert (history.operation.step, history.operation.held_by) == ("approve", "")
        after = ruled(history, yes(history), NOON + 7)
        assert (after.operation.step, after.operation.due_at) == ("call", NOON + 7 + ASKED_SECONDS)
        assert faults(after) == []


def test_a_release_makes_nothing_the_workers():
    """Approved, and released beside what holds it, by one or by the first of two: it waits for its caller."""
    for people in (1, 2):
        after = released(approved(), override_people=people)
        assert (after.operation.step, after.operation.due_at) == ("call", NOON + 1 + ASKED_SECONDS)
        assert faults(after) == []
    ended = ruled(approved(), expire(), NOON + 200)
    assert released(ended).operation.step == ""
    assert faults(released(ended)) == []


@pytest.mark.parametrize("end", [deny, revoke])
def test_what_is_over_is_held_by_nobody(end):
    """A no, or permission taken back: no caller is told to wait for a holder."""
    history = asked_about(held()) if end is deny else refused(approved())
    after = ruled(history, end(who(history)))
    assert (after.operation.held_by, after.operation.step, after.operation.due_at) == ("", "", 0.0)
    assert faults(after) == []


def test_the_approval_of_what_is_held_ends_too():
    """Nobody asked again in time: that is on record, and it waits for nobody."""
    after = ruled(refused(approved()), expire(), NOON + 200)
    assert (after.operation.permission, after.operation.held_by, after.operation.step) == (Permission.EXPIRED, "", "")
    assert faults(after) == []


def test_late_news_of_an_earlier_attempt_ends_the_hold_only_where_it_may_have_left():
    """Silence about what stayed leaves it with its caller; what took place after all is held by nobody."""
    for before, ends in ((stayed(approved()), NOON + 1 + ASKED_SECONDS), (observed(claimed(), Finding.NOT_SENT), 0.0)):
        history = refused(before, at=NOON + 5)
        silent = observed(history, Finding.UNKNOWN, of=action(), at=NOON + 6, attempt=1, reason="reset")
        assert (silent.operation.step, silent.operation.held_by, silent.operation.due_at) == ("call", "op_9", ends)
        assert faults(silent) == []
        done = observed(
            history, Finding.SUCCEEDED, of=action(), at=NOON + 6, attempt=1, rule="answers[0]", effect="pay"
        )
        assert (done.operation.held_by, done.operation.outcome) == ("", Outcome.SUCCEEDED)
        assert faults(done) == []


def test_its_caller_sends_what_was_held():
    """Asked again when nothing holds it: the frozen payload goes under the approval, and it is held no more."""
    history = refused(approved())
    after = ruled(history, claim(history), NOON + 3)
    assert (after.operation.held_by, after.operation.attempts, after.operation.step) == ("", 1, "recover")
    assert faults(after) == []


def test_a_later_hold_moves_nothing():
    """Where it was frozen to go is what was asked first; who held it then says nothing of that."""
    assert destination_of(refused(held(), "op_8").events, "elsewhere") == "https://api.example"
    begun = refused(observed(claimed(), Finding.NOT_SENT))
    assert destination_of(begun.events, "elsewhere") == "https://api.example"


def test_a_held_attempt_after_not_sent_is_claimed_on_its_own_basis():
    """Given back is not forgotten: the next attempt says that the one before never left."""
    history = refused(observed(claimed(), Finding.NOT_SENT))
    after = ruled(history, claim(history, order(terms=NO_POLICY), basis=Basis.NOT_SENT, under=Sought()), NOON + 3)
    assert (after.operation.attempts, after.operation.held_by) == (2, "")
    assert faults(after) == []
