"""The retry decision: on which basis another attempt may go, and everything that forbids it."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain import retry
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.contract import AutomaticAttempts, ProtectionKind
from counterfoil.domain.retry import Situation, decide_retry
from counterfoil.domain.terms import OneShot
from counterfoil.domain.words import AttemptClass, Basis, Discrepancy, Finding

STARTED = 1000.0
HOUR = 3600.0
KEY = contracts.load("lab.key")


def attempt(finding, number=1, *, quiesced=True, attempt_class=AttemptClass.FIRST, started_at=STARTED):
    """One attempt; by default its worker has reported back."""
    return Attempt(
        number=number, token=f"t{number}", finding=finding, quiesced=quiesced, attempt_class=attempt_class,
        started_at=started_at, send_seconds=10.0,
    )  # fmt: skip


def situation(*attempts, contract=KEY, now=STARTED + 60, **changes):
    """What is known; no discrepancy, no assumption and no kernel deadline unless the test says so."""
    return Situation(contract=contract, attempts=attempts, discrepancy=Discrepancy.NONE, now=now, **changes)


def changed(contract=KEY, *, protection=None, repeat=None, **fields):
    """A contract that documents something else."""
    return msgspec.structs.replace(
        contract,
        protection=msgspec.structs.replace(contract.protection, **(protection or {})),
        repeat=msgspec.structs.replace(contract.repeat, **(repeat or {})),
        **fields,
    )


UNKNOWN = attempt(Finding.UNKNOWN)


def test_after_nothing_left_the_same_call_dispatches_again():
    """Only not_sent, and nothing else exposed, needs no basis to be asked for."""
    decision = decide_retry(situation(attempt(Finding.NOT_SENT), attempt(Finding.NOT_SENT, 2)), automatic=False)
    assert decision.allowed
    assert (decision.basis, decision.attempt_class) == (Basis.NOT_SENT, AttemptClass.AFTER_NOT_SENT)
    assert decision.because == (retry.ALLOWED[Basis.NOT_SENT],)


@pytest.mark.parametrize("retention", [86_400.0, "never_expires"])
@pytest.mark.parametrize("automatic", [True, False])
def test_nothing_is_repeated_beside_an_attempt_in_flight(retention, automatic):
    """Two workers that find the same operation: the second waits until somebody knows of the first."""
    contract = changed(protection={"retention_seconds": retention})
    flying = situation(UNKNOWN, attempt(None, 2, quiesced=False), contract=contract)
    decision = decide_retry(flying, automatic=automatic, basis=Basis.SAME_KEY_REPLAY)
    assert not decision.allowed
    assert retry.IN_FLIGHT in decision.because


@pytest.mark.parametrize("finding", [None, Finding.UNKNOWN, Finding.REJECTED, Finding.ABSENT])
def test_calling_again_never_sends_what_may_have_left(finding):
    """One attempt that may have left is enough: the same call returns the receipt."""
    decision = decide_retry(situation(attempt(finding), attempt(Finding.NOT_SENT, 2)), automatic=False)
    assert not decision.allowed
    assert decision.because == (retry.MAY_HAVE_LEFT, retry.ASK)


@pytest.mark.parametrize("basis", list(Basis))
@pytest.mark.parametrize("finding", [Finding.SUCCEEDED, Finding.ACCEPTED])
def test_nothing_is_sent_after_success(finding, basis):
    """An effect that took place or was accepted forbids every basis, an override too."""
    for automatic in (True, False):
        decision = decide_retry(situation(attempt(finding), UNKNOWN), automatic=automatic, basis=basis)
        assert decision.because == (retry.DONE,)


@pytest.mark.parametrize("basis", list(Basis))
def test_nothing_is_sent_while_evidence_contradicts_evidence(basis):
    """An open discrepancy forbids every basis."""
    known = msgspec.structs.replace(situation(attempt(Finding.NOT_SENT)), discrepancy=Discrepancy.OPEN)
    assert decide_retry(known, automatic=False, basis=basis).because == (retry.CONTRADICTED,)


def test_there_is_no_further_attempt_before_a_first():
    """Without any attempt this is not a retry."""
    assert decide_retry(situation(), automatic=True).because == (retry.NO_ATTEMPT,)


def test_a_one_shot_action_goes_again_only_after_not_sent():
    """One shot: whatever may have left was the shot."""
    contract = changed(one_shot=True, automatic_attempts=AutomaticAttempts())
    assert decide_retry(situation(attempt(Finding.NOT_SENT), contract=contract), automatic=False).allowed
    for basis in Basis:
        refused = decide_retry(situation(UNKNOWN, contract=contract), automatic=False, basis=basis)
        assert refused.because == (retry.ONE_SHOT,)


def test_the_worker_replays_with_the_same_key():
    """A documented key within its time, a safe repeat, a reported worker and a grant: allowed."""
    decision = decide_retry(situation(UNKNOWN), automatic=True)
    assert decision.allowed
    assert (decision.basis, decision.attempt_class) == (Basis.SAME_KEY_REPLAY, AttemptClass.SAME_KEY)


def test_the_grant_is_used_up():
    """The contract's number of automatic replays is a limit; one that never left gives its use back."""
    replays = [attempt(Finding.UNKNOWN, n, attempt_class=AttemptClass.SAME_KEY) for n in (2, 3)]
    assert retry.USED_UP in decide_retry(situation(UNKNOWN, *replays), automatic=True).because
    returned = attempt(Finding.NOT_SENT, 3, attempt_class=AttemptClass.SAME_KEY)
    assert decide_retry(situation(UNKNOWN, replays[0], returned), automatic=True).allowed
    asked = decide_retry(situation(UNKNOWN, *replays), automatic=False, basis=Basis.SAME_KEY_REPLAY)
    assert asked.allowed  # a person asks; the number limits the worker only


@pytest.mark.parametrize(
    ("contract", "sentence"),
    [
        (changed(protection={"kind": ProtectionKind.CLIENT_REFERENCE}), retry.NO_KEY),
        (changed(protection={"kind": ProtectionKind.DEDUP_WINDOW}), retry.NO_KEY),
        (changed(protection={"kind": ProtectionKind.NONE}), retry.NO_KEY),
        (changed(protection={"kind": ProtectionKind.UNKNOWN}), retry.NO_KEY),
        (changed(repeat={"same_payload": "unknown"}), retry.REPEAT_UNSAFE),
        (changed(repeat={"same_payload": "overwrites"}), retry.REPEAT_UNSAFE),
        (changed(repeat={"in_flight": "unknown"}), retry.REPEAT_UNSAFE),
        (changed(repeat={"in_flight": "second_effect"}), retry.REPEAT_UNSAFE),
        (changed(repeat={"errors_replayed": "run_again"}), retry.REPEAT_UNSAFE),
        (changed(repeat={"errors_replayed": "unknown"}), retry.REPEAT_UNSAFE),
        (changed(protection={"retention_seconds": "while_it_stands"}), retry.RETENTION_UNKNOWN),
        (changed(protection={"retention_seconds": "unknown"}), retry.RETENTION_UNKNOWN),
        (changed(protection={"retention_seconds": 23 * HOUR}), retry.RETENTION_SHORT),
        (changed(automatic_attempts=AutomaticAttempts()), retry.USED_UP),
    ],
)
def test_what_is_not_documented_is_not_replayed(contract, sentence):
    """Unknown means the cautious thing in every clause a replay rests on."""
    decision = decide_retry(situation(UNKNOWN, contract=contract), automatic=True, basis=Basis.SAME_KEY_REPLAY)
    assert decision.because == (sentence,)


@pytest.mark.parametrize("kind", [ProtectionKind.NATURAL_KEY, ProtectionKind.CONDITIONAL_WRITE])
def test_other_keys_replay_where_their_repeat_is_documented(kind):
    """A natural key or a condition is as good as an idempotency key, if the repeat is documented as safe."""
    contract = changed(protection={"kind": kind}, repeat={"same_payload": "refused", "in_flight": "waits"})
    assert decide_retry(situation(UNKNOWN, contract=contract), automatic=True).allowed


def test_r42_past_its_time_a_key_is_no_protection():
    """Without an assumption a key is trusted for a quarter of at least 24 hours, and not a second longer."""
    for automatic, basis in itertools.product((True, False), (Basis.SAME_KEY_REPLAY,)):
        within = decide_retry(situation(UNKNOWN, now=STARTED + 6 * HOUR), automatic=automatic, basis=basis)
        assert within.allowed
        after = decide_retry(situation(UNKNOWN, now=STARTED + 6 * HOUR + 1), automatic=automatic, basis=basis)
        assert after.because == (retry.RETENTION_OVER,)
        operator = decide_retry(situation(UNKNOWN, now=STARTED + 25 * HOUR), automatic=automatic, basis=basis)
        assert operator.because == (retry.RETENTION_OVER,)


def test_a_stated_assumption_takes_the_place_of_the_quarter():
    """With a longest delivery: retention less that and the send deadline, short retentions included."""
    contract = changed(protection={"retention_seconds": 1800.0})
    room = 1800.0 - 900.0 - contract.send_deadline_seconds
    within = situation(UNKNOWN, contract=contract, now=STARTED + room, longest_delivery=900.0)
    assert decide_retry(within, automatic=True).allowed
    after = situation(UNKNOWN, contract=contract, now=STARTED + room + 1, longest_delivery=900.0)
    assert retry.RETENTION_OVER in decide_retry(after, automatic=True).because


def test_the_key_ages_from_the_first_attempt():
    """A later attempt does not make the key young again."""
    later = attempt(Finding.UNKNOWN, 2, started_at=STARTED + 6 * HOUR)
    decision = decide_retry(situation(UNKNOWN, later, now=STARTED + 7 * HOUR), automatic=True)
    assert retry.RETENTION_OVER in decision.because


def test_a_clock_that_went_back_proves_no_age():
    """Earlier than the first attempt nobody can say how old the key is."""
    assert retry.CLOCK_WENT_BACK in decide_retry(situation(UNKNOWN, now=STARTED - 1), automatic=True).because


@pytest.mark.parametrize(("elapsed", "allowed"), [(None, True), (60.0, True), (6 * HOUR, True), (6 * HOUR + 1, False)])
def test_a_clock_set_back_makes_no_key_younger(elapsed, allowed):
    """What surely elapsed since the first claim counts where the wall clock says less."""
    decision = decide_retry(situation(UNKNOWN, elapsed=elapsed), automatic=True)
    assert decision.allowed is allowed
    aged = decide_retry(situation(UNKNOWN, now=STARTED + 7 * HOUR, elapsed=elapsed), automatic=True)
    assert retry.RETENTION_OVER in aged.because


def test_a_worker_that_may_still_write_forbids_a_replay():
    """A paused sender that wakes after the key's time writes a second effect, so it must be quiesced."""
    paused = attempt(Finding.UNKNOWN, quiesced=False)
    assert retry.NOT_QUIESCED in decide_retry(situation(paused), automatic=True).because
    eternal = changed(protection={"retention_seconds": "never_expires"})
    assert decide_retry(situation(paused, contract=eternal), automatic=True).allowed


def test_a_replay_needs_something_unresolved():
    """When every attempt is settled a repeat could teach nothing."""
    decision = decide_retry(situation(attempt(Finding.REJECTED)), automatic=True, basis=Basis.SAME_KEY_REPLAY)
    assert decision.because == (retry.NOTHING_OPEN,)


def test_the_worker_alone_needs_quiescence_after_not_sent():
    """Automatic means every earlier attempt quiesced, even where nothing left."""
    unreported = attempt(Finding.NOT_SENT, quiesced=False)
    assert retry.NOT_QUIESCED in decide_retry(situation(unreported), automatic=True, basis=Basis.NOT_SENT).because
    assert decide_retry(situation(unreported), automatic=False).allowed


def granted(**fields):
    """A contract that grants one attempt after proven absence."""
    return changed(automatic_attempts=AutomaticAttempts(absence_proven=1), **fields)


def test_absence_goes_again_by_itself_only_from_a_bounded_sender():
    """A sender that could wake after the proof must be stopped by the kernel, or a person decides."""
    absent = attempt(Finding.ABSENT)
    free = decide_retry(situation(absent, contract=granted()), automatic=True, basis=Basis.ABSENCE_PROVEN)
    assert free.because == (retry.NOT_BOUNDED,)
    bounded = decide_retry(situation(absent, contract=granted(), kernel_bounded=True), automatic=True)
    assert (bounded.basis, bounded.attempt_class) == (Basis.ABSENCE_PROVEN, AttemptClass.AFTER_ABSENCE)
    assert decide_retry(situation(absent), automatic=False, basis=Basis.ABSENCE_PROVEN).allowed


@pytest.mark.parametrize(
    ("attempts", "sentence"),
    [
        ((attempt(Finding.ABSENT), attempt(Finding.UNKNOWN, 2)), retry.NOT_ABSENT),
        ((attempt(Finding.NOT_SENT),), retry.NOT_ABSENT),
        ((attempt(Finding.ABSENT), attempt(Finding.REJECTED, 2)), retry.NOT_ABSENT),
        ((attempt(Finding.ABSENT, quiesced=False),), retry.NOT_QUIESCED),
        (
            (attempt(Finding.ABSENT), attempt(Finding.ABSENT, 2, attempt_class=AttemptClass.AFTER_ABSENCE)),
            retry.USED_UP,
        ),
    ],
)
def test_absence_of_one_attempt_is_not_absence_of_all(attempts, sentence):
    """Every attempt that may have left must be proven absent, its worker quiesced, and the grant unused."""
    known = situation(*attempts, contract=granted(), kernel_bounded=True)
    assert decide_retry(known, automatic=True, basis=Basis.ABSENCE_PROVEN).because == (sentence,)


def test_a_rejection_is_answered_by_a_person():
    """Rejected without effect may go again when asked for by name, never by itself."""
    rejected = situation(attempt(Finding.REJECTED), attempt(Finding.NOT_SENT, 2))
    asked = decide_retry(rejected, automatic=False, basis=Basis.REJECTED_WITHOUT_EFFECT)
    assert (asked.allowed, asked.attempt_class) == (True, AttemptClass.OVERRIDE)
    alone = decide_retry(rejected, automatic=True, basis=Basis.REJECTED_WITHOUT_EFFECT)
    assert alone.because == (retry.NEEDS_PERSON,)
    assert not decide_retry(rejected, automatic=True).allowed


def test_a_rejection_of_one_attempt_settles_no_other():
    """While another attempt may have left, its rejected sibling is no basis (invariant 6)."""
    known = situation(UNKNOWN, attempt(Finding.REJECTED, 2))
    decision = decide_retry(known, automatic=False, basis=Basis.REJECTED_WITHOUT_EFFECT)
    assert decision.because == (retry.NOT_REJECTED,)


def test_rejected_and_absent_together_are_no_effect():
    """Each attempt proven without effect, in either way: a person may go on."""
    known = situation(attempt(Finding.REJECTED), attempt(Finding.ABSENT, 2))
    for basis in (Basis.REJECTED_WITHOUT_EFFECT, Basis.ABSENCE_PROVEN):
        assert decide_retry(known, automatic=False, basis=basis).allowed


def test_an_override_is_a_persons():
    """A person with that permission may decide on an unknown outcome; a worker never."""
    decision = decide_retry(situation(UNKNOWN), automatic=False, basis=Basis.OPERATOR_OVERRIDE)
    assert (decision.allowed, decision.attempt_class) == (True, AttemptClass.OVERRIDE)
    assert not decide_retry(situation(UNKNOWN), automatic=True, basis=Basis.OPERATOR_OVERRIDE).allowed


def test_a_refusal_names_each_reason_once():
    """The worker's refusal collects what stands against every automatic basis, without repeating itself."""
    paused = attempt(None, quiesced=False)
    decision = decide_retry(situation(paused, contract=contracts.load("lab.nothing")), automatic=True)
    assert not decision.allowed
    assert len(decision.because) == len(set(decision.because))
    assert {retry.MAY_HAVE_LEFT, retry.NO_KEY, retry.NOT_ABSENT, retry.NOT_QUIESCED} <= set(decision.because)


@pytest.mark.parametrize("basis", [Basis.SAME_KEY_REPLAY, Basis.ABSENCE_PROVEN, Basis.REJECTED_WITHOUT_EFFECT])
@pytest.mark.parametrize("automatic", [False, True])
def test_a_policy_of_one_shot_leaves_an_override(basis, automatic):
    """Under it nothing that may have left goes again but by a person's override; what never left may."""
    finding = {Basis.ABSENCE_PROVEN: Finding.ABSENT, Basis.REJECTED_WITHOUT_EFFECT: Finding.REJECTED}.get(basis)
    known = situation(attempt(finding or Finding.UNKNOWN), one_shot=OneShot.YES, kernel_bounded=True)
    assert decide_retry(known, automatic=automatic, basis=basis).because == (retry.OVERRIDE_ONLY,)
    assert decide_retry(known, automatic=False, basis=Basis.OPERATOR_OVERRIDE).allowed
    stayed = situation(attempt(Finding.NOT_SENT), one_shot=OneShot.YES)
    assert decide_retry(stayed, automatic=automatic).allowed


def test_an_absolute_one_shot_leaves_nothing():
    """Whatever a person decides; only what is proven never to have left may go."""
    known = situation(UNKNOWN, one_shot=OneShot.ABSOLUTE)
    for basis in Basis:
        assert retry.ABSOLUTE in decide_retry(known, automatic=False, basis=basis).because
    stayed = situation(attempt(Finding.NOT_SENT), one_shot=OneShot.ABSOLUTE)
    assert decide_retry(stayed, automatic=False).allowed
