"""Rows 19 to 23 and 35: two processes at once, one of them paused, slow, old, or asked twice."""

from __future__ import annotations

from counterfoil.lab.matrix.acts import answered_late, call, decide, find, ordinary, sweep, sweeping
from counterfoil.lab.matrix.expected import (
    BLIND,
    FLYING,
    KEYED,
    LEFT,
    READY,
    conflict,
    end_of,
    fresh,
    looks_of,
    succeeded,
    unknown,
)
from counterfoil.lab.matrix.life import AGAIN, END, SEEN, Act, Life, Moment
from counterfoil.lab.matrix.row import Row
from counterfoil.lab.matrix.script import Strike

LONG = 400.0
"""Past every deadline and horizon."""


def _paused_before_write(code: str) -> tuple[Life, ...]:
    """It wakes long after its deadline: not a byte leaves, and that is evidence of its own attempt only."""
    replayed = code == "N"  # its key is for ever: a late write under it would be refused
    wakes = Moment(LONG + 50.0, READY | {"sends": 0, "attempts": 1})
    end = fresh(attempts=2)
    if replayed:
        wakes = Moment(LONG + 50.0, succeeded("answer", attempts=2, told="new, succeeded"))
        end = succeeded("answer", attempts=2)
    return (
        Life(
            acts=ordinary(begins=11.0), looks=BLIND if code in KEYED else (),
            strikes=(Strike("stop", "before Send", seconds=LONG),),
            moments=(
                Moment(5.0, FLYING | {"sends": 0}), Moment(10.8, LEFT),
                Moment(12.0, unknown(code, sends=0, findings=("unknown",))),
                wakes, Moment(END, end),
            ),
        ),
    )  # fmt: skip


def _late_response(code: str) -> tuple[Life, ...]:
    """The answer comes when nobody waits: it settles what is unknown, and contradicts what a person concluded."""
    once = Life(
        acts=ordinary(begins=100.0), sends=("reply_late",), said={"late": 15.0},
        moments=(
            Moment(10.8, unknown(code, sends=1, effects=1)),
            Moment(20.0, succeeded("late_answer", told="new, unknown", attempts=1)),
            Moment(END, succeeded("late_answer", attempts=1)),
        ),
    )  # fmt: skip
    against = Life(
        acts=(
            Act(0.0, "caller", call()), Act(12.0, "desk", find("rejected")), Act(50.0, "caller", answered_late),
            *sweeping(begins=60.0), Act(AGAIN, "caller", call()),
        ),
        sends=("reply_lost",),
        moments=(
            Moment(40.0, {"outcome": "rejected", "settled_by": "rejected:operator", "unresolved": 0}),
            Moment(END, conflict("succeeded", 1, 1, findings=("unknown", "rejected", "succeeded"), attempts=1)),
        ),
    )  # fmt: skip
    return (once, against)


def _two_at_once(code: str) -> tuple[Life, ...]:
    """One of two claims is the claim; the other is answered with what stands there, and goes no further."""
    del code
    callers = Life(
        acts=(*ordinary(), Act(0.1, "caller 2", call())),
        strikes=(Strike("stop", "before Claim", nth=2, seconds=0.6),),
        moments=(
            Moment(0.5, succeeded("answer", told="new, succeeded")),
            Moment(SEEN, succeeded("answer", told="existing, succeeded", attempts=1)),
            Moment(END, succeeded("answer", attempts=1, operations=1)),
        ),
    )  # fmt: skip
    workers = Life(
        acts=(
            Act(0.0, "caller", call()), Act(0.5, "desk", decide("approve")), Act(2.0, "worker", sweep),
            *sweeping("worker 2", begins=3.0), Act(AGAIN, "caller", call()),
        ),
        asks=1, strikes=(Strike("stop", "before Amend", by="worker", nth=2, seconds=5.0),),
        moments=(
            Moment(2.5, READY | {"step": "dispatch", "sends": 0}),
            Moment(END, succeeded("answer", attempts=1)),
        ),
    )  # fmt: skip
    return (callers, workers)


def _own_recovery(code: str) -> tuple[Life, ...]:
    """The worker of the same process sweeps while that very process sends: it has it in hand."""
    return tuple(
        Life(
            acts=ordinary(worker="caller/2"), sends=("request_lost",), looks=looks,
            moments=(
                Moment(5.5, FLYING | {"sends": 1, "findings": ()}), Moment(9.5, FLYING),
                Moment(END, end_of(code, happened=False, blind=bool(looks), sends=1 + bool(looks))),
            ),
        )
        for looks in looks_of(code)
    )  # fmt: skip


def _draining(code: str) -> tuple[Life, ...]:
    """A worker that is being ended has read what it would send; another one sends it; the old one sends nothing."""
    del code
    acts = (
        Act(0.0, "caller", call()), Act(0.5, "desk", decide("approve")), Act(2.0, "worker", sweep),
        *sweeping("worker 2", begins=3.0), Act(AGAIN, "caller", call()),
    )  # fmt: skip
    moments = (
        Moment(2.5, READY | {"step": "dispatch", "sends": 0}),
        Moment(4.0, succeeded("answer", told="pending, unobserved")), Moment(END, succeeded("answer", attempts=1)),
    )  # fmt: skip
    wakes = Life(
        acts=acts, asks=1, moments=moments, strikes=(Strike("stop", "before Amend", by="worker", seconds=30.0),),
    )  # fmt: skip
    ended = Life(
        acts=acts, asks=1, moments=moments, strikes=(Strike("interrupt", "before Amend", by="worker"),),
    )  # fmt: skip
    return (wakes, ended)


def _again_and_again(code: str) -> tuple[Life, ...]:
    """The same message during its call, after it, out of order with another: one operation, one send."""
    during = Life(
        acts=(
            *ordinary(worker="caller/2", begins=11.0), Act(3.0, "caller 2", call()), Act(4.0, "caller 2", call()),
            *(Act(700.0 + n, "caller 2", call()) for n in range(3)),
        ),
        sends=("reply_lost",), looks=(),
        moments=(
            Moment(5.0, FLYING | {"operations": 1, "sends": 1, "told": "unresolved, unobserved"}),
            Moment(END, end_of(code, happened=True, operations=1)),
        ),
    )  # fmt: skip
    swapped = Life(
        acts=(
            *(Act(n * 1.0, "caller", call(amount=1 + n % 2, key=f"order-{1 + n % 2}")) for n in range(6)),
            Act(AGAIN, "caller", call()),
        ),
        moments=(Moment(END, succeeded("answer", operations=2, all_sends=2, all_effects=2)),),
    )  # fmt: skip
    return (during, swapped)


ROWS = (
    Row(
        number=19, point="paused past its deadline, wakes before the first byte",
        requires="U meanwhile; then not_sent is on record, and nothing leaves", never="write",
        lives=_paused_before_write, noticed="no_deadline_before_write",
    ),
    Row(
        number=20, point="the response comes when nobody waits any more",
        requires="appended; it settles U, and contradicts what was concluded",
        never="change what is settled in silence",
        lives=_late_response, noticed="late_evidence_dropped",
    ),
    Row(
        number=21, point="two callers or workers at once", requires="one claim; the other goes by what stands there",
        never="the loser goes on", lives=_two_at_once, noticed="loser_goes_on",
    ),
    Row(
        number=22, point="recovery meets what its own process is sending",
        requires="in hand is in hand, whatever the clock says", never="take it up",
        lives=_own_recovery, noticed="recovery_ignores_hand",
    ),
    Row(
        number=23, point="rolling restart: the old worker is about to claim", requires="one claim, the new one's",
        never="the old one sends", lives=_draining, noticed="loser_goes_on",
    ),
    Row(
        number=35, point="a message delivered twice, late, out of order", requires="the same operation answers",
        never="a second operation", lives=_again_and_again, noticed="claim_ignores_state",
    ),
)  # fmt: skip
