"""Rows 15 to 18: the store cannot be written, for a moment or for hours; a real file system says so."""

from __future__ import annotations

from counterfoil.lab.matrix.acts import call, decide, ordinary, sweep, sweeping
from counterfoil.lab.matrix.expected import BLIND, KEYED, LEFT, NO_ROW, READY, end_of, fresh, succeeded
from counterfoil.lab.matrix.life import AGAIN, END, SEEN, SWEEPS, Act, Life, Moment
from counterfoil.lab.matrix.row import Row
from counterfoil.lab.matrix.script import Strike

DISK = ("full", "io_error", "read_only")
AT_CLAIM, AT_OUTCOME = "before Claim", "before Settle"
MOMENT, LONGER = 0.06, 2.5
"""Shorter than a caller insists, and longer."""
HOURS = 3 * 3600.0


def _at_claim(*faults: str, told: str) -> tuple[Life, ...]:
    """Whoever asked is told, nothing is sent, and the same call goes when the fault is over."""
    return tuple(
        Life(
            acts=ordinary(), watched=True, strikes=(Strike(fault, AT_CLAIM, nth=2, seconds=MOMENT),),
            moments=(Moment(SEEN, NO_ROW | {"told": told}), Moment(END, fresh(attempts=1))),
        )
        for fault in faults
    )  # fmt: skip


def _at_second_claim(fault: str) -> Life:
    """The same at the claim of what people have approved."""
    return Life(
        acts=(
            Act(0.0, "caller", call()), Act(0.5, "desk", decide("approve")), *sweeping(begins=2.0),
            Act(AGAIN, "caller", call()),
        ),
        asks=1, watched=True, strikes=(Strike(fault, "before Amend", by="worker", nth=2, seconds=MOMENT),),
        moments=(
            Moment(2.5, READY | {"step": "dispatch", "sends": 0}), Moment(END, succeeded("answer", attempts=1)),
        ),
    )  # fmt: skip


def _at_outcome(*faults: str) -> tuple[Life, ...]:
    """The answer is written again for a while, then put beside the store, and taken in when the fault is over."""
    lives = []
    for fault in faults:
        insisted = Life(
            acts=ordinary(begins=5.0), watched=True, strikes=(Strike(fault, AT_OUTCOME, nth=2, seconds=MOMENT),),
            moments=(
                Moment(SEEN, succeeded("answer", told="new, succeeded", observed=1, spooled=0)),
                Moment(END, succeeded("answer", observed=1)),
            ),
        )  # fmt: skip
        spooled = Life(
            acts=ordinary(begins=5.0), watched=True, strikes=(Strike(fault, AT_OUTCOME, nth=2, seconds=LONGER),),
            moments=(
                Moment(SEEN, LEFT | {"told": "NotRecorded", "spooled": 1, "sends": 1}),
                Moment(END, succeeded("answer", observed=1, spooled=0)),
            ),
        )  # fmt: skip
        lives += [insisted, spooled]
    return tuple(lives)


def _kept_nowhere(code: str) -> tuple[Life, ...]:
    """There is no place beside the store either: its caller is told, and it reads as unknown."""
    return tuple(
        Life(
            acts=ordinary(begins=5.0, worker="caller/2"), watched=True, spools=False, looks=looks,
            strikes=(Strike("full", AT_OUTCOME, nth=2, seconds=LONGER),),
            moments=(
                Moment(SEEN, LEFT | {"told": "NotRecorded", "spooled": 0, "sends": 1}),
                Moment(END, end_of(code, happened=True, blind=bool(looks))),
            ),
        )
        for looks in ([(), BLIND] if code == "K" else [BLIND if code == "N" else ()])
    )  # fmt: skip


def _locked(code: str) -> tuple[Life, ...]:
    """Another process has the file: nothing is decided, and what is tried again is judged anew."""
    del code
    stale = Life(
        acts=(
            Act(0.0, "caller", call()), Act(0.5, "desk", decide("approve")), *sweeping(begins=2.0),
        ),
        asks=1, strikes=(Strike("stop", "before Amend", by="worker", nth=2, seconds=400.0),),
        moments=(Moment(END, {"permission": "expired", "dispatch": "not_started", "all_sends": 0}),),
    )  # fmt: skip
    return (
        *_at_claim("locked", told="StoreBusy"), *_at_outcome("locked"), _at_second_claim("locked"), stale
    )  # fmt: skip


def _down(code: str) -> tuple[Life, ...]:
    """For hours: nothing new is claimed, what was in flight reads as unknown, and the same worker goes on after it."""
    looks = BLIND if code in KEYED else ()
    return (
        Life(
            acts=(
                Act(0.0, "caller", call()), *sweeping(begins=11.0), Act(60.0, "caller", call(amount=2, key="order-2")),
                *(Act(HOURS + at, "worker", sweep) for at in SWEEPS), Act(HOURS + AGAIN, "caller", call()),
            ),
            sends=("reply_lost",), looks=looks, strikes=(Strike("outage", AT_OUTCOME, seconds=HOURS),),
            moments=(
                Moment(70.0, LEFT | {"all_sends": 1, "told": "StoreBusy", "operations": 1}),
                Moment(HOURS + END, end_of(code, happened=True, blind=bool(looks))),
            ),
        ),
    )  # fmt: skip


ROWS = (
    Row(
        number=15, point="disk full, I/O error or read-only at intent or claim", requires="an error; nothing is sent",
        never="send",
        lives=lambda _: (*_at_claim(*DISK, told="StoreFull"), _at_second_claim("full")),
        noticed="send_despite_lost_ack",
    ),
    Row(
        number=16, point="the same at the outcome", requires="the answer is kept, tried again, put beside the store",
        never="drop it silently", lives=lambda code: (*_at_outcome(*DISK), *_kept_nowhere(code)),
        noticed="answer_not_insisted",
    ),
    Row(
        number=17, point="the file is locked by another process",
        requires="nothing is decided; what is tried again is judged anew", never="go by what was read before",
        lives=_locked, noticed="clock_before_claim",
    ),
    Row(
        number=18, point="the store is down for hours",
        requires="nothing is claimed; in flight is U; sweeps go on without a restart", never="strand anything",
        lives=_down, noticed="sweep_stops_at_error",
    ),
)  # fmt: skip
