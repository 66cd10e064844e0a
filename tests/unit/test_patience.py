"""What did not leave is repeated at growing distances, so many times in a row, and then somebody is told why."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from tests.crash.stepping import NOON, action, claimed, declined, draw, ends, observed, order, ruled

from counterfoil.domain import patience
from counterfoil.domain.answer import Silent
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Amended, Declined
from counterfoil.domain.contract import ReadBudget
from counterfoil.domain.event import Decided, attempts_of
from counterfoil.domain.policy import Escalation
from counterfoil.domain.retry import Situation, decide_retry
from counterfoil.domain.rules import hand_over
from counterfoil.domain.words import AttemptClass, Basis, Discrepancy, Finding, Standing
from counterfoil.plans.effects import Send
from counterfoil.plans.recover import work
from counterfoil.runtime.queue import waiting_of

UNREACHABLE = Silent(may_have_left=False, reason="connect_refused")


def repeat(finding, number=2, attempt_class=AttemptClass.SAME_KEY, started_at=NOON):
    return Attempt(
        number=number, token=f"w.{number}", finding=finding, quiesced=True, attempt_class=attempt_class,
        started_at=started_at,
    )  # fmt: skip


FIRST = repeat(Finding.UNKNOWN, 1, AttemptClass.FIRST)
GONE = repeat(Finding.NOT_SENT)


@pytest.mark.parametrize(
    ("attempts", "unsent"),
    [
        ((FIRST,), 0),
        ((FIRST, GONE), 1),
        ((FIRST, GONE, GONE), 2),
        ((FIRST, GONE, repeat(Finding.UNKNOWN), GONE), 1),
        ((repeat(Finding.NOT_SENT, 1, AttemptClass.FIRST), GONE), 1),
        ((repeat(Finding.NOT_SENT, 1, AttemptClass.FIRST),), 0),
    ],
)
def test_only_the_repeats_at_the_end_count(attempts, unsent):
    """One that left, and an attempt on another basis, begins the row anew."""
    assert patience.unsent_repeats(attempts) == unsent


@pytest.mark.parametrize(("row", "wait"), [(0, 0.0), (1, 5.0), (2, 10.0), (4, 40.0), (7, 300.0), (99, 300.0)])
def test_the_wait_doubles_to_five_minutes(row, wait):
    """It starts from the contract's spacing; what follows something that left waits for nothing."""
    assert patience.wait_seconds((FIRST, *[GONE] * row), ReadBudget()) == wait


def _swept(history, seconds):
    """Let a worker sweep once a second against a provider that nobody reaches; when each attempt began."""
    began = []
    for second in range(seconds):
        now = NOON + 60 + second
        if history.operation.step != "replay" or history.operation.due_at > now:
            continue
        plan = work(history, order(action()), draw(len(history.events)), by="w")
        amend = next(plan)
        claim = amend.rule(history, now)
        if isinstance(claim, Declined):
            amend = plan.send(msgspec.structs.replace(claim, history=history))
            history = ruled(history, amend.rule, now)
            ends(plan, Amended(history=history))
            continue
        history = ruled(history, amend.rule, now)
        began.append(now)
        assert isinstance(plan.send(Amended(history=history)), Send)
        plan.send(UNREACHABLE)
        plan.close()
        history = observed(history, Finding.NOT_SENT, at=now)
    return history, began


def _unknown_and_to_replay():
    history = observed(claimed(), Finding.UNKNOWN)
    operation = msgspec.structs.replace(history.operation, step="replay", due_at=NOON, looks=99)
    return msgspec.structs.replace(history, operation=operation)


def test_a_provider_that_is_down_is_tried_ever_more_rarely_and_then_a_person_is_told():
    """A use that is given back is no reason to go at once: a bounded number of attempts, and the reason on record."""
    history, began = _swept(_unknown_and_to_replay(), 6 * 3600)
    gaps = [after - before for before, after in itertools.pairwise(began)]
    assert len(began) == patience.IN_A_ROW_MAX
    assert gaps == sorted(gaps)
    assert max(gaps) <= patience.WAIT_SECONDS_MAX * 1.2
    assert history.operation.step == "review"
    said = msgspec.json.decode(history.events[-1].record, type=Decided)
    assert (said.by, said.decision, said.reason) == ("house", "review", patience.UNREACHED)
    assert len(history.events) < 64
    assert waiting_of(history, Escalation(), now=NOON).unreached == patience.UNREACHED
    assert not waiting_of(_unknown_and_to_replay(), Escalation(), now=NOON).unreached


def test_two_workers_and_a_restart_keep_one_distance():
    """Whoever read it before the last attempt is refused by the attempts on record, and hands nothing over."""
    history, began = _swept(_unknown_and_to_replay(), 1)
    assert len(began) == 1
    plan = work(history, order(action()), draw(3), by="other")
    why = declined(history, next(plan).rule, began[0])
    assert why == (patience.NOT_YET,)
    ended = ends(plan, Declined(because=why, history=history))
    assert (ended.operation.step, ended.standing) == ("replay", Standing.UNRESOLVED)


def _decided(attempts, **asked):
    known = Situation(contract=action().contract, attempts=attempts, discrepancy=Discrepancy.NONE, now=NOON)
    return decide_retry(known, **asked)


def test_a_person_need_not_wait():
    """Spacing and number are for machines: whoever asks for it by name is judged by the key alone."""
    row = (FIRST, *[GONE] * patience.IN_A_ROW_MAX)
    assert _decided(row, automatic=True, basis=Basis.SAME_KEY_REPLAY).because == (patience.UNREACHED,)
    assert _decided(row, automatic=False, basis=Basis.SAME_KEY_REPLAY).allowed


def test_no_machine_fills_a_receipt():
    """Neither a worker nor a caller in a loop takes the numbers that people's decisions will need."""
    row = (repeat(Finding.NOT_SENT, 1, AttemptClass.FIRST),) * patience.ATTEMPTS_MAX
    assert _decided(row, automatic=False).because == (patience.TOO_MANY,)
    assert _decided(row, automatic=True, basis=Basis.NOT_SENT).because == (patience.TOO_MANY,)
    assert _decided(row, automatic=False, basis=Basis.NOT_SENT).allowed
    assert _decided(row[1:], automatic=False).allowed


def test_what_a_look_hands_to_a_replay_keeps_the_distance():
    """Attempts that did not leave before the looks were granted count as well."""
    history, _ = _swept(_unknown_and_to_replay(), 1)
    assert len(attempts_of(history.events)[0]) == 2
    looking = msgspec.structs.replace(history.operation, step="look")
    after = hand_over(action().contract, ("the read budget is spent",))(
        msgspec.structs.replace(history, operation=looking), NOON + 61
    )
    assert (after.operation.step, after.operation.due_at) == ("replay", NOON + 62)
