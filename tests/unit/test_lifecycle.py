"""The derived names: how an outcome reads now, where an operation stands, and what an agent may do next."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from counterfoil.domain.lifecycle import lifecycle, outcome_now, permission_now, permitted
from counterfoil.domain.operation import Operation
from counterfoil.domain.words import Dispatch, Disposition, Lifecycle, Outcome, Permission

DEADLINE = 110.0


def operation(**columns):
    """One row; started and unobserved unless the test says otherwise."""
    row = Operation(
        n=1, id="op_1", tenant="t", actor="a", action="x", key="k", account="c", fingerprint="f", effect="e", owner="",
        value=1.0, created_at=100.0, dispatch=Dispatch.STARTED, unresolved=1, deadline=DEADLINE,
    )  # fmt: skip
    return msgspec.structs.replace(row, **columns)


@pytest.mark.parametrize(
    ("now", "alive", "outcome"),
    [
        (DEADLINE, True, Outcome.UNOBSERVED),
        (DEADLINE + 0.001, True, Outcome.UNKNOWN),
        (DEADLINE - 5, False, Outcome.UNKNOWN),
        (0.0, False, Outcome.UNKNOWN),
    ],
)
def test_silence_reads_as_unknown(now, alive, outcome):
    """Started and unobserved is unknown as soon as its worker is not provably alive or its deadline has passed."""
    assert outcome_now(operation(), now, alive=alive) is outcome


@pytest.mark.parametrize(("outcome", "alive", "now"), list(itertools.product(Outcome, [True, False], [0.0, 1e12])))
def test_no_clock_changes_an_outcome(outcome, alive, now):
    """What was established stays, at any hour, with or without its worker; so does what never started."""
    for dispatch in (Dispatch.COMPLETED, Dispatch.NOT_STARTED):
        assert outcome_now(operation(dispatch=dispatch, outcome=outcome), now, alive=alive) is outcome


@pytest.mark.parametrize(
    ("columns", "outcome", "name"),
    [
        ({"dispatch": Dispatch.NOT_STARTED, "unresolved": 0}, Outcome.UNOBSERVED, Lifecycle.PLANNED),
        ({}, Outcome.UNOBSERVED, Lifecycle.SUBMITTED),
        ({}, Outcome.UNKNOWN, Lifecycle.OUTCOME_UNKNOWN),
        ({"looks": 1}, Outcome.UNKNOWN, Lifecycle.RECONCILING),
        ({"looks": 5, "step": "review"}, Outcome.UNKNOWN, Lifecycle.MANUAL_REVIEW),
        ({"step": "review"}, Outcome.SUCCEEDED, Lifecycle.MANUAL_REVIEW),
        ({"step": "review", "unresolved": 0}, Outcome.SUCCEEDED, Lifecycle.SUCCEEDED),
        ({"unresolved": 0}, Outcome.ACCEPTED, Lifecycle.ACCEPTED),
        ({"unresolved": 0, "settled_by": "rejected:answer"}, Outcome.REJECTED, Lifecycle.REJECTED),
        ({"unresolved": 0, "settled_by": "absent:look"}, Outcome.REJECTED, Lifecycle.SAFE_TO_RETRY),
    ],
)
def test_every_name_has_its_columns(columns, outcome, name):
    """The name follows from the columns, and only proven absence is called safe to retry."""
    assert lifecycle(operation(**columns), outcome) is name


def test_every_name_is_reached():
    """The words for people are all in use."""
    made = {
        lifecycle(operation(dispatch=d, looks=looks, step=step, unresolved=u, settled_by=by), outcome)
        for d, looks, step, u, by, outcome in itertools.product(
            Dispatch, (0, 1), ("", "review"), (0, 1), ("absent:look", "rejected:answer"), Outcome
        )
    }
    assert made == set(Lifecycle)


BLOCKED = ("get_outcome", "wait", "ask_operator")
NOT_SENT = {"unresolved": 0, "dispatch": Dispatch.NOT_STARTED}


@pytest.mark.parametrize(
    ("columns", "outcome", "steps"),
    [
        ({}, Outcome.UNKNOWN, BLOCKED),
        ({}, Outcome.UNOBSERVED, BLOCKED),
        ({}, Outcome.SUCCEEDED, BLOCKED),  # an attempt may still land, or evidence disagrees
        ({"unresolved": 0}, Outcome.UNKNOWN, BLOCKED),
        ({"unresolved": 0, "dispatch": Dispatch.NOT_STARTED, "held_by": "op_2"}, Outcome.UNOBSERVED, BLOCKED),
        ({"unresolved": 0, "dispatch": Dispatch.NOT_STARTED}, Outcome.UNOBSERVED, ("call_again", "get_outcome")),
        ({**NOT_SENT, "permission": Permission.PENDING}, Outcome.UNOBSERVED, BLOCKED),
        ({**NOT_SENT, "permission": Permission.EXPIRED}, Outcome.UNOBSERVED, ("call_again", "get_outcome")),
        ({**NOT_SENT, "permission": Permission.DENIED}, Outcome.UNOBSERVED, ("get_outcome", "ask_operator")),
        ({**NOT_SENT, "permission": Permission.REVOKED}, Outcome.UNOBSERVED, ("get_outcome", "ask_operator")),
        ({**NOT_SENT, "disposition": Disposition.ABANDONED}, Outcome.UNOBSERVED, ("get_outcome", "ask_operator")),
        ({"unresolved": 0}, Outcome.SUCCEEDED, ("use_result", "get_outcome")),
        ({"unresolved": 0}, Outcome.ACCEPTED, ("use_result", "get_outcome")),
        ({"unresolved": 0}, Outcome.REJECTED, ("get_outcome", "ask_operator")),
    ],
)
def test_what_an_agent_may_do(columns, outcome, steps):
    """Calling again is offered only where nothing left, and never while anything is unresolved."""
    o = operation(**columns)
    assert permitted(o, outcome, o.permission) == steps


@pytest.mark.parametrize(
    ("step", "due_at", "now", "reads"),
    [
        ("approve", 100.0, 100.0, Permission.PENDING),
        ("approve", 100.0, 100.1, Permission.EXPIRED),
        ("dispatch", 100.0, 100.1, Permission.EXPIRED),
        ("call", 100.0, 100.0, Permission.PENDING),
        ("call", 100.0, 100.1, Permission.EXPIRED),
        ("call", 0.0, 100.1, Permission.PENDING),
        ("review", 100.0, 100.1, Permission.PENDING),
    ],
)
def test_a_permission_reads_as_expired_once_its_time_is_over(step, due_at, now, reads):
    """Recorded or not: nobody is told that something may go which would not; where nobody was asked nothing ends."""
    waiting = operation(permission=Permission.PENDING, step=step, due_at=due_at, unresolved=0)
    assert permission_now(waiting, now) is reads
