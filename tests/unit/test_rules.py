"""What is decided under the write lock: pure functions of one history and the store's clock."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.stepping import NOON, SECONDS, action, claimed, declined, erased, held, observed, order, ruled

from counterfoil import contracts
from counterfoil.domain import looking, rules
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Amendment, Declined
from counterfoil.domain.contract import digest
from counterfoil.domain.event import Begun, Decided, EventKind, Noted, attempts_of, begun_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.payload import salted_digest
from counterfoil.domain.permission import NOT_DECIDED
from counterfoil.domain.words import (
    AttemptClass,
    Basis,
    Discrepancy,
    Dispatch,
    Disposition,
    Finding,
    Outcome,
    Permission,
    Source,
)  # fmt: skip

KEY, LOOKUP = contracts.load("lab.key"), contracts.load("lab.lookup")
HOUR = 3600.0
U = Finding.UNKNOWN


def row(history, **columns):
    """The same history with other columns."""
    return msgspec.structs.replace(history, operation=msgspec.structs.replace(history.operation, **columns))


def line(evidence):
    return msgspec.json.encode(evidence)


def look(finding=U, **said):
    return Evidence(source=Source.LOOK, finding=finding, attempt=1, **said)


# -- observing -------------------------------------------------------------------------------------------------------


def test_an_observation_moves_the_columns_and_adds_one_event():
    """Evidence is appended whole, the columns follow the fold, and the next step is due when the contract says."""
    found = look()
    rule = rules.observe(found, line(found), b"body", KEY)
    before = observed(claimed(), U)
    decided = rule(before, NOON + 5)
    assert isinstance(decided, Amendment)
    assert [(e.kind, e.record, e.body) for e in decided.events] == [(EventKind.OBSERVED, line(found), b"body")]
    assert (decided.operation.outcome, decided.operation.step) == (Outcome.UNKNOWN, "look")
    assert decided.operation.due_at == NOON + 5 + KEY.read_budget.first_after_seconds


def test_the_same_record_twice_is_one_piece_of_evidence():
    """An answer written again after its acknowledgement was lost changes nothing."""
    found = look(Finding.SUCCEEDED, effect="pay")
    rule = rules.observe(found, line(found), None, KEY)
    history = ruled(claimed(), rule)
    assert declined(history, rule) == ("this evidence is recorded already",)


def test_evidence_needs_an_attempt():
    """Of what was only proposed nothing can have been observed."""
    rule = rules.observe(look(), line(look()), None, KEY)
    assert declined(held(), rule) == ("nothing was attempted that evidence could speak of",)


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, NOON + 5.2),
        ({"earliest": NOON + 900}, NOON + 900),
        ({"earliest": None, "retry_after_seconds": 60.0}, NOON + 65),
        ({"earliest": NOON - 900, "retry_after_seconds": 0.0}, NOON + 5.2),
    ],
)
def test_a_look_is_never_due_before_it_may_count(facts, due):
    """Not before a negative may be evidence, and not before the provider wants to be asked again; zero is a time."""
    found = look(facts=facts)
    after = ruled(observed(claimed(), U), rules.observe(found, line(found), None, KEY), NOON + 5)
    assert after.operation.due_at == pytest.approx(due, rel=0, abs=1e-3)


def test_a_resolved_operation_owes_nothing():
    """Proof ends step and due time, names what settled it, and later evidence does not rename it."""
    after = observed(claimed(), Finding.SUCCEEDED, effect="pay")
    assert (after.operation.step, after.operation.due_at, after.operation.settled_by) == ("", 0.0, "succeeded:answer")
    later = observed(after, Finding.SUCCEEDED, effect="pay", source=Source.LOOK)
    assert later.operation.settled_by == "succeeded:answer"
    reopened = observed(later, Finding.REJECTED, source=Source.OPERATOR, facts={"seen": "nothing"})
    assert (reopened.operation.settled_by, reopened.operation.discrepancy) == ("", Discrepancy.OPEN)
    assert (reopened.operation.outcome, reopened.operation.unresolved) == (Outcome.SUCCEEDED, 1)


def test_a_further_hold_slot_is_kept():
    """An operation that was reopened into a further slot stays in it while it is unresolved."""
    history = row(observed(claimed(), U), unresolved=3)
    assert observed(history, U, source=Source.LOOK).operation.unresolved == 3
    assert observed(history, Finding.SUCCEEDED, effect="pay").operation.unresolved == 0


# -- withdrawing -----------------------------------------------------------------------------------------------------


def test_an_interrupted_claim_is_withdrawn():
    """A claim nobody sent for is not_sent: nothing is owed and the same call may dispatch."""
    said = Evidence(source=Source.TRANSPORT, finding=Finding.NOT_SENT, attempt=1, quiesced=True)
    after = ruled(claimed(), rules.withdraw(said, line(said), None)).operation
    assert (after.dispatch, after.outcome, after.exposure) == (Dispatch.NOT_STARTED, Outcome.UNOBSERVED, 0)
    assert (after.unresolved, after.step, after.due_at) == (0, "", 0.0)


def test_a_claim_somebody_else_wrote_to_is_not_withdrawn():
    """Where a word about it is on record already, `not_sent` from the claimer's own guess is not added."""
    said = Evidence(source=Source.TRANSPORT, finding=Finding.NOT_SENT, attempt=1, quiesced=True)
    assert declined(observed(claimed(), U), rules.withdraw(said, line(said), None)) == ("somebody else wrote to it",)
    assert declined(held(), rules.withdraw(said, line(said), None)) == ("somebody else wrote to it",)


# -- looks -----------------------------------------------------------------------------------------------------------


def test_a_look_is_paid_before_it_is_made():
    """The counter and the next due time are durable first; the event says which look, by whom, of how many."""
    before = row(observed(claimed(), U), due_at=NOON)
    after = ruled(before, looking.pay_look(KEY, 0, asked=False, by="w"), NOON + 5)
    assert (after.operation.looks, after.operation.due_at) == (1, NOON + 6)
    note = msgspec.json.decode(after.events[-1].record, type=Noted)
    paid = {"look": 0, "by": "w", "used": 1, "of": 5, "provider": KEY.provider}
    assert (after.events[-1].kind, note.facts) == (EventKind.LOOKING, paid)


@pytest.mark.parametrize(
    ("columns", "contract", "asked", "why"),
    [
        ({"unresolved": 0}, KEY, True, "the operation is resolved"),
        ({}, msgspec.structs.replace(KEY, reconcile="forbidden"), True, "the contract forbids looks"),
        ({}, msgspec.structs.replace(KEY, looks=()), True, "the contract forbids looks"),
        ({"looks": 5}, KEY, True, "the read budget is spent"),
        ({"due_at": NOON + 6}, KEY, False, looking.NOT_DUE),
    ],
)
def test_what_forbids_a_look(columns, contract, asked, why):
    """Nothing to find, no permission, no budget, or not yet; a person's asking sets aside only the waiting."""
    before = row(observed(claimed(), U), **columns)
    assert declined(before, looking.pay_look(contract, 0, asked=asked, by="w"), NOON + 5) == (why,)


def test_a_person_need_not_wait():
    """Spacing is for workers; a look that was asked for is made now, and counted."""
    before = row(observed(claimed(), U), due_at=NOON + 900)
    assert ruled(before, looking.pay_look(KEY, 0, asked=True, by="ann")).operation.looks == 1


# -- passing on ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "contract", "after"), [("replay", KEY, "review"), ("look", KEY, "replay"), ("look", LOOKUP, "review")]
)
def test_a_step_that_cannot_be_taken_is_passed_on(step, contract, after):
    """From a look to the granted replay, from there to a person; the outcome and the exposure stay what they are."""
    before = row(observed(claimed(), U), step=step)
    passed = ruled(before, rules.hand_over(contract, ("a", "b")))
    assert passed.operation.step == after
    assert (passed.operation.outcome, passed.operation.exposure) == (Outcome.UNKNOWN, 1)
    decided = msgspec.json.decode(passed.events[-1].record, type=Decided)
    assert (decided.decision, decided.by, decided.reason) == (after, "house", "a; b")


@pytest.mark.parametrize("columns", [{"step": "recover"}, {"step": "review"}, {"step": "replay", "unresolved": 0}])
def test_nothing_else_is_passed_on(columns):
    """Whoever claimed a replay meanwhile has it in hand; what is resolved or with a person stays there."""
    assert declined(row(observed(claimed(), U), **columns), rules.hand_over(KEY, ())) == ("nothing to hand over",)


# -- claiming again --------------------------------------------------------------------------------------------------


def begun(token="w.2"):
    return Begun(
        attempt=Attempt(number=1, token=token, worker="w", send_seconds=SECONDS), provider_key="op_new",
        contract=digest(KEY), contract_id="lab.key", payload_digest="sd1:new",
    )  # fmt: skip


def again(contract=KEY, *, automatic=False, basis=None, token="w.2"):
    return rules.claim_again(begun(token), contract, longest_delivery=None, automatic=automatic, basis=basis)


def test_not_sent_lets_the_same_call_claim_again():
    """The next attempt is numbered, names its basis, and carries the first one's provider key and payload."""
    before = observed(claimed(), Finding.NOT_SENT)
    after = ruled(before, again(), NOON + 60)
    attempts, _ = attempts_of(after.events)
    made = begun_of(after.events[-1])
    assert [a.finding for a in attempts] == [Finding.NOT_SENT, None]
    assert (made.attempt.number, made.attempt.attempt_class) == (2, AttemptClass.AFTER_NOT_SENT)
    assert (made.basis, made.provider_key, made.payload_digest) == ("not_sent", "op_1", "")
    row = after.operation
    assert (row.dispatch, row.outcome, row.attempts, row.exposure) == (Dispatch.STARTED, Outcome.UNOBSERVED, 2, 1)
    assert (row.unresolved, row.step, row.due_at, row.deadline) == (1, "recover", NOON + 70, NOON + 70)


def test_a_further_attempt_says_that_it_claims():
    """The store refuses it where another operation holds the effect, instead of moving it aside."""
    decided = again()(observed(claimed(), Finding.NOT_SENT), NOON + 60)
    assert isinstance(decided, Amendment)
    assert decided.claims


def test_a_held_operation_has_its_first_attempt():
    """What was proposed and never sent is claimed as the first attempt there is, under its own id as provider key."""
    after = ruled(held(), again(), NOON + 60)
    made = begun_of(after.events[-1])
    assert (made.attempt.number, made.attempt.attempt_class, made.basis) == (1, AttemptClass.FIRST, "")
    assert (made.provider_key, after.operation.held_by) == ("op_new", "")


def test_the_same_token_claims_once():
    """A claim written again after its acknowledgement was lost recognises itself and sends nothing."""
    after = ruled(observed(claimed(), Finding.NOT_SENT), again(), NOON + 60)
    assert declined(after, again()) == ("this attempt is claimed already",)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        *[({"permission": p}, f"permission is {p}") for p in Permission if p is not Permission.AUTHORIZED],
        ({"disposition": Disposition.ABANDONED}, "the operation was abandoned"),
        ({"outcome": Outcome.SUCCEEDED}, "the outcome is settled"),
    ],
)
@pytest.mark.parametrize("basis", [None, *Basis])
def test_what_no_basis_overrides(columns, why, basis):
    """Without permission, after abandonment, or with the effect proven, no basis claims anything.

    What has expired may be overridden: so many people's decision is a permission of its own, and none is on record.
    """
    if (columns.get("permission"), basis) == (Permission.EXPIRED, Basis.OPERATOR_OVERRIDE):
        why = NOT_DECIDED
    before = row(observed(claimed(), Finding.NOT_SENT), **columns)
    assert declined(before, again(basis=basis)) == (why,)


@pytest.mark.parametrize("finding", [None, U, Finding.REJECTED, Finding.ABSENT, Finding.ACCEPTED])
def test_calling_again_claims_only_after_not_sent(finding):
    """Silence, rejection and absence are no basis of the same call: a rejection is a person's to answer (F3)."""
    before = claimed() if finding is None else observed(claimed(), finding)
    assert isinstance(again()(before, NOON + 60), Declined)


def test_not_sent_of_one_attempt_frees_no_other():
    """Connection refused on attempt 2 leaves attempt 1 unknown: nothing is claimed again (F3)."""
    history = observed(claimed(), U)
    history = ruled(history, again(basis=Basis.SAME_KEY_REPLAY), NOON + 60)
    history = observed(history, Finding.NOT_SENT)
    assert (history.operation.outcome, history.operation.exposure) == (Outcome.UNKNOWN, 1)
    assert isinstance(again(token="w.3")(history, NOON + 61), Declined)


@pytest.mark.parametrize(("after", "allowed"), [(60.0, True), (5 * HOUR, True), (7 * HOUR, False), (-1.0, False)])
def test_a_replay_is_judged_by_the_clock_under_the_lock(after, allowed):
    """The same key protects for a quarter of its documented retention; the time is the store's, read with the lock."""
    before = observed(claimed(), U)
    assert isinstance(again(automatic=True)(before, NOON + after), Amendment) is allowed


def test_a_worker_that_may_still_write_forbids_a_replay():
    """Without proof that the first sender is quiet nothing automatic is claimed, whatever the clock says."""
    before = observed(claimed(), U, quiesced=False)
    assert isinstance(again(automatic=True)(before, NOON + 60), Declined)
    after = observed(before, U, source=Source.TRANSPORT)
    assert isinstance(again(automatic=True)(after, NOON + 60), Amendment)


def test_an_open_discrepancy_forbids_every_attempt():
    """Where evidence contradicts evidence a person settles it first."""
    history = observed(observed(claimed(), Finding.REJECTED), Finding.SUCCEEDED, effect="pay")
    doubted = row(history, outcome=Outcome.UNKNOWN)
    for basis in (None, *Basis):
        assert isinstance(again(basis=basis)(doubted, NOON + 60), Declined)


# -- repetitions -----------------------------------------------------------------------------------------------------


def test_a_differing_repetition_is_kept_with_its_values():
    """The body holds what came, the record only its salted digest; once is enough."""
    body = b"s" * 16 + b'{"note":"again"}'
    after = ruled(claimed(), rules.repeated(body))
    kept = after.events[-1]
    note = msgspec.json.decode(kept.record, type=Noted)
    assert (kept.kind, kept.body, note.facts) == (EventKind.REPEATED, body, {"payload": salted_digest(body)})
    assert msgspec.structs.replace(after.operation, seq=1, updated_at=NOON) == claimed().operation
    other_salt = b"t" * 16 + b'{"note":"again"}'
    assert declined(after, rules.repeated(other_salt)) == ("this repetition is recorded already",)


def test_repetitions_are_bounded():
    """A caller cannot grow the store without end by varying what is never sent."""
    history = claimed()
    for number in range(rules.REPEATS_RECORDED_MAX):
        history = ruled(history, rules.repeated(b"s" * 16 + str(number).encode()))
    more = rules.repeated(b"s" * 16 + b"one more")
    assert declined(history, more) == ("this repetition is recorded already",)
    assert declined(erased(history), more) == ("this repetition is recorded already",)


def test_the_order_of_an_action_is_its_own():
    """The action, not the present, says how long a claim may be sent for."""
    assert claimed(order(action("lab.lookup"))).operation.deadline == NOON + LOOKUP.send_deadline_seconds
