"""Rows 1 to 3, 12 to 14, 36 and 40 to 42: the process dies, or is told to, between any two things it does."""

from __future__ import annotations

import asyncio

from counterfoil.cli.exits import Terminated
from counterfoil.lab.matrix.acts import call, decide, ordinary, sweep, sweeping
from counterfoil.lab.matrix.cancelled import cancelled_in_flight
from counterfoil.lab.matrix.expected import (
    BLIND,
    KEYED,
    LEFT,
    LOOKED,
    NO_ROW,
    READY,
    end_of,
    fresh,
    looks_of,
    review,
    succeeded,
    unknown,
)
from counterfoil.lab.matrix.life import AGAIN, END, SEEN, Act, Life, Moment
from counterfoil.lab.matrix.row import Row
from counterfoil.lab.matrix.script import Strike

CRASH, INTERRUPT, LOST = "crash", "interrupt", "ack_lost"
BEFORE_CLAIM = (Strike(CRASH, "before Claim"), Strike(CRASH, "before Claim", nth=2))
"""Before the executor takes the command up, and before the store does."""
CLAIMED = (Strike(CRASH, "after Claim"), Strike(CRASH, "after Claim", nth=2), Strike(CRASH, "before Send"))
ANSWERED = (
    Strike(CRASH, "mid_answer"), Strike(CRASH, "after Send"), Strike(CRASH, "before Settle"),
    Strike(CRASH, "before Settle", nth=2),
)  # fmt: skip
"""It has happened; the answer is on its way, is there, is about to be written down."""
SETTLED = (Strike(CRASH, "after Settle"), Strike(CRASH, "after Settle", nth=2))
TAKEN_UP = 3.5
"""When a worker has been by: a dead process is taken up at once."""
ENDLESS = 4
"""How often what strikes ever after does: more often than a life has processes for it."""


def left_behind(code: str, strike: Strike, *, happened: bool, left: bool, worker: str = "worker") -> tuple[Life, ...]:
    """A process died with its attempt in hand: it reads as unknown at once, and what follows is its kind's."""
    facts = LEFT | {"sends": int(left), "effects": int(happened), "attempts": 1}
    taken_up = unknown(code, sends=int(left), findings=("unknown",))
    return tuple(
        Life(
            acts=ordinary(begins=2.5, worker=worker), strikes=(strike,), looks=looks,
            moments=(
                Moment(SEEN, facts), Moment(TAKEN_UP, taken_up | ({"step": "look"} if code in LOOKED else {})),
                Moment(END, end_of(code, happened=happened, blind=bool(looks), left=left)),
            ),
        )
        for looks in looks_of(code)
    )  # fmt: skip


def _never_begun(code: str) -> tuple[Life, ...]:
    del code
    return tuple(
        Life(acts=ordinary(), strikes=(strike,), moments=(Moment(SEEN, NO_ROW), Moment(END, fresh(attempts=1))))
        for strike in BEFORE_CLAIM
    )  # fmt: skip


def _approved(code: str) -> tuple[Life, ...]:
    """Written down, approved, and the process that was to send it dies before its claim."""
    del code
    strike = Strike(CRASH, "before Amend", by="worker")
    ready = READY | {"step": "dispatch", "attempts": 0, "sends": 0}
    approve = Act(1.2, "desk", decide("approve"))
    first = (Act(0.0, "caller", call()), approve, Act(AGAIN, "caller", call()))
    sent = Life(
        acts=(*first, *sweeping(begins=2.0)), strikes=(strike,), asks=1,
        moments=(Moment(2.2, ready), Moment(END, succeeded("answer", attempts=1))),
    )  # fmt: skip
    over = Life(
        acts=(*first, Act(2.0, "worker", sweep), *sweeping(begins=320.0)), strikes=(strike,), asks=1,
        moments=(
            Moment(2.2, ready),
            Moment(END, {"permission": "pending", "dispatch": "not_started", "all_sends": 0, "attempts": 0}),
        ),
    )  # fmt: skip
    taken_back = Life(
        acts=(*first, Act(2.3, "desk", decide("revoke")), *sweeping(begins=2.0)), strikes=(strike,), asks=1,
        moments=(
            Moment(2.2, ready), Moment(END, {"permission": "revoked", "dispatch": "not_started", "all_sends": 0})
        ),
    )  # fmt: skip
    ends_meanwhile = Life(
        acts=(*first, *sweeping(begins=2.0)), asks=1,
        strikes=(Strike("stop", "before Amend", by="worker", seconds=400.0),),
        moments=(
            Moment(2.2, ready), Moment(950.0, {"permission": "expired", "dispatch": "not_started", "all_sends": 0})
        ),
    )  # fmt: skip
    return (sent, over, taken_back, ends_meanwhile)


def _claimed(code: str) -> tuple[Life, ...]:
    near = [life for strike in CLAIMED for life in left_behind(code, strike, happened=False, left=False)]
    return (*near, _from_afar(code))


def _from_afar(code: str) -> Life:
    """Another host takes it up: nobody is proven dead there, so it waits for the deadline, and may never conclude."""
    end = end_of(code, happened=False, blind=True, left=False) if code == "N" else review(0, 0, attempts=1)
    return Life(
        acts=ordinary(begins=2.5, worker="far"), strikes=(CLAIMED[-1],), looks=BLIND if code in KEYED else (),
        moments=(Moment(TAKEN_UP, LEFT | {"findings": ()}), Moment(END, end)),
    )  # fmt: skip


def _unrecorded(code: str) -> tuple[Life, ...]:
    return tuple(life for strike in ANSWERED for life in left_behind(code, strike, happened=True, left=True))


def _outcome_unacknowledged(code: str) -> tuple[Life, ...]:
    """It stands and nobody said so: written again, it recognises itself; also where it never stops being lost."""
    del code
    once = Life(
        acts=ordinary(), strikes=(Strike(LOST, "before Settle"),),
        moments=(
            Moment(SEEN, succeeded("answer", told="new, succeeded", observed=1)),
            Moment(END, succeeded("answer", observed=1)),
        ),
    )  # fmt: skip
    ever = Life(
        acts=ordinary(), strikes=(Strike(LOST, "before Settle", times=ENDLESS),),
        moments=(
            Moment(SEEN, succeeded("answer", told="NotRecorded", observed=1, spooled=1)),
            Moment(END, succeeded("answer", observed=1, spooled=0)),
        ),
    )  # fmt: skip
    return (once, ever)


def _claim_unacknowledged(code: str) -> tuple[Life, ...]:
    """It stands and nobody said so: nothing is sent, and it reads as unknown.

    Its own process knows that it has nothing in hand; for another one it lives, and may yet write.
    """
    facts = LEFT | {"sends": 0, "told": "StoreBusy", "attempts": 1}
    lost = (Strike(LOST, "before Claim"),)
    ours = [
        Life(
            acts=ordinary(begins=2.5, worker="caller/2"), strikes=lost, looks=looks,
            moments=(Moment(SEEN, facts), Moment(END, end_of(code, happened=False, blind=bool(looks), left=False))),
        )
        for looks in looks_of(code)
    ]  # fmt: skip
    replayed = code == "N"  # its key is for ever: a late write under it would be refused
    theirs = Life(
        acts=ordinary(begins=2.5), strikes=lost, looks=BLIND if replayed else (),
        moments=(
            Moment(SEEN, facts), Moment(END, succeeded("answer", attempts=2) if replayed else review(0, 0, attempts=1))
        ),
    )  # fmt: skip
    return (*ours, theirs)


def _in_a_look(code: str) -> tuple[Life, ...]:
    """The worker dies in a look, once and ever after: each was paid before it was made."""
    if code not in LOOKED:
        places = ("before Amend", "after Amend")
        return tuple(
            Life(
                acts=ordinary(begins=2.5), strikes=(CLAIMED[-1], Strike(CRASH, place, by="worker", times=times)),
                moments=(Moment(SEEN, LEFT), Moment(END, review(0, 0, looks=0, attempts=1))),
            )
            for place in places for times in (1, ENDLESS)
        )  # fmt: skip
    lives = [
        Life(
            acts=ordinary(begins=11.0), sends=("reply_lost",), strikes=(Strike(CRASH, place, by="worker"),),
            moments=(Moment(11.3, unknown(code, looks=1)), Moment(END, succeeded("look", looks=2, attempts=1))),
        )
        for place in ("before Look", "after Look")
    ]  # fmt: skip
    repeats = code in KEYED
    end = end_of(code, happened=True, blind=True) if repeats else review(1, 1)
    ever = Life(
        acts=ordinary(begins=11.0), sends=("reply_lost",), moments=(Moment(END, end | {"looks": 5}),),
        strikes=(Strike(CRASH, "before Look", by="worker", times=20),),
    )  # fmt: skip
    return (*lives, ever)


def _interrupted(code: str, *kinds: type[BaseException]) -> tuple[Life, ...]:
    """Told to end in the middle of a send: what is known is on record before it goes."""
    return tuple(
        Life(
            acts=ordinary(begins=2.5), strikes=(Strike(INTERRUPT, place),), interruption=kind, looks=looks,
            moments=(
                Moment(SEEN, unknown(code, sends=1, effects=int(happened), findings=("unknown",))),
                Moment(END, end_of(code, happened=happened, blind=bool(looks))),
            ),
        )
        for kind in kinds
        for place, happened in (("mid_socket", False), ("mid_answer", True))
        for looks in looks_of(code)
    )  # fmt: skip


def _anywhere(code: str) -> tuple[Life, ...]:
    """Kill -9 at every commit point of a call: as the point that it hit."""
    lives = [*_never_begun(code)]
    lives += [life for strike in CLAIMED for life in left_behind(code, strike, happened=False, left=False)[:1]]
    lives += left_behind(code, Strike(CRASH, "mid_socket"), happened=False, left=True)
    lives += [life for strike in ANSWERED for life in left_behind(code, strike, happened=True, left=True)[:1]]
    lives += [
        Life(
            acts=ordinary(), strikes=(strike,),
            moments=(Moment(SEEN, succeeded("answer", told="")), Moment(END, succeeded("answer", observed=1))),
        )
        for strike in SETTLED
    ]  # fmt: skip
    return tuple(lives)


ROWS = (
    Row(
        number=1, point="crash before the intent is durable", requires="no row; the same call makes it",
        never="any byte",
        lives=_never_begun, noticed="send_before_record",
    ),
    Row(
        number=2, point="crash after the intent, before the claim",
        requires="authorized and not started; it is claimed, and its approval judged again", never="skip the approval",
        lives=_approved, noticed="expiry_ignored",
    ),
    Row(
        number=3, point="crash after the claim, before the first byte",
        requires="started, which reads as unknown; then as U", never="a send by recovery, or `ready`",
        lives=_claimed, noticed="recovery_makes_ready",
    ),
    Row(
        number=12, point="response read, crash before the outcome is durable",
        requires="started, which reads as unknown; then as U", never="a repeat but by key",
        lives=_unrecorded, noticed="recovery_makes_ready",
    ),
    Row(
        number=13, point="the outcome's commit is not acknowledged", requires="the same write again recognises itself",
        never="evidence twice, or lost", lives=_outcome_unacknowledged, noticed="answer_not_insisted",
    ),
    Row(
        number=14, point="the claim's commit is not acknowledged", requires="started and unknown; nothing is sent",
        never="send", lives=_claim_unacknowledged, noticed="send_despite_lost_ack",
    ),
    Row(
        number=36, point="crash in the middle of a look, or of recovery",
        requires="the read is paid; U; the next one is due", never="a budget that begins anew",
        lives=_in_a_look,
        noticed={"*": "read_budget_ignored", "0": "recovery_makes_ready", "B": "recovery_makes_ready"},
    ),
    Row(
        number=40, point="SIGTERM or a cancellation in the middle of a send",
        requires="U on record, then it goes on", never="swallow it; call it cancelled",
        lives=lambda code: _interrupted(code, Terminated, asyncio.CancelledError), real=cancelled_in_flight,
        noticed="sigterm_is_cancelled",
    ),
    Row(
        number=41, point="KeyboardInterrupt, SystemExit or MemoryError in the middle of a send",
        requires="U on record, then it goes on", never="skip the record",
        lives=lambda code: _interrupted(code, KeyboardInterrupt, SystemExit, MemoryError), noticed="exception_only",
    ),
    Row(
        number=42, point="kill -9, out of memory: at any commit point", requires="as the point that it hit",
        never="anything else", lives=_anywhere, noticed="recovery_makes_ready",
    ),
)  # fmt: skip
