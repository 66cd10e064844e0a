"""Rows 24 to 29 and 37 to 39: clocks and keys that run out, effects that come late or twice, looks that mislead."""

from __future__ import annotations

from counterfoil.lab.matrix.acts import answered_late, call, find, ordinary, sweep, sweeping
from counterfoil.lab.matrix.expected import (
    BLIND,
    DEADLINE,
    FLYING,
    KEYED,
    LOOKED,
    STRONG,
    absent,
    conflict,
    end_of,
    review,
    succeeded,
    unknown,
)
from counterfoil.lab.matrix.life import AGAIN, END, SWEEPS, Act, Life, Moment
from counterfoil.lab.matrix.row import Row
from counterfoil.lab.matrix.rows_people import APPROVED, ASKED, PAST
from counterfoil.lab.matrix.script import Strike

HOUR, DAY = 3600.0, 86_400.0
LATE, BEYOND = 55.0, 600.0
"""Within what the deployment states, and far beyond it."""


def _clock_set_back(code: str) -> tuple[Life, ...]:
    """What has ended stays ended, and no deadline moves, though a clock says that it is an hour ago."""
    back = -HOUR
    approval = Life(
        acts=(ASKED, APPROVED, Act(PAST, "caller", call(amount=2, key="order-2")), *sweeping(begins=PAST + 10.0)),
        asks=1, stepped=True, strikes=(Strike("clock_step", "before Propose", nth=3, seconds=back),),
        moments=(Moment(END, {"permission": "expired", "dispatch": "not_started", "all_sends": 0}),),
    )  # fmt: skip
    in_flight = Life(
        acts=ordinary(begins=11.0), sends=("reply_lost",), stepped=True,
        strikes=(Strike("clock_step", "after Claim", nth=2, seconds=back),),
        moments=(
            Moment(5.0, FLYING), Moment(DEADLINE, unknown(code, sends=1)), Moment(END, end_of(code, happened=True)),
        ),
    )  # fmt: skip
    return (approval, in_flight)


def _key_forgotten(code: str) -> tuple[Life, ...]:
    """Nobody was there until the key was over: it is sent again under no key that may be forgotten."""
    night = DAY + HOUR
    acts = (
        Act(0.0, "caller", call()), *(Act(night + at, "worker", sweep) for at in SWEEPS),
        Act(night + AGAIN, "caller", call()),
    )  # fmt: skip
    seeing = Life(
        acts=acts, sends=("reply_lost",),
        moments=(
            Moment(night, unknown(code, sends=1)), Moment(night + END, end_of(code, happened=True)),
        ),
    )  # fmt: skip
    if code not in KEYED:
        return (seeing,)
    end = review(1, 1, attempts=1) if code == "K" else end_of(code, happened=True, blind=True)
    blind = Life(acts=acts, sends=("reply_lost",), looks=BLIND, moments=(Moment(night + END, end),))
    if code == "N":
        return (seeing, blind)
    # Kept for less than a request may be on its way: the first one could come when its key is forgotten (F5).
    short = Life(
        acts=ordinary(begins=1.0), sends=("reset_late",), said={"delivery": LATE}, looks=BLIND[:1],
        looks_max=1, key_seconds=40.0,
        moments=(Moment(END, review(1, 1, attempts=1)),),
    )  # fmt: skip
    return (seeing, blind, short)


def _applied_late(code: str) -> tuple[Life, ...]:
    """Within the stated bound: unknown until it is found, or until the horizon is past."""
    end = end_of(code, happened=True) if code in STRONG else review(1, 1, attempts=1)
    return (
        Life(
            acts=ordinary(begins=11.0), sends=("applied_late",), said={"delivery": LATE},
            moments=(
                Moment(DEADLINE, unknown(code, sends=1, effects=0)),
                Moment(50.0, {"outcome": "unknown", "effects": 0, "unresolved": 1}), Moment(END, end),
            ),
        ),
    )  # fmt: skip


def _applied_beyond(code: str) -> tuple[Life, ...]:
    """The assumption is broken: what was concluded from it is contradicted, and a named person's."""
    concluded = absent(told="new, unknown") if code in STRONG else {"outcome": "unknown", "step": "review"}
    positive = Act(BEYOND + 50.0, "caller", answered_late)
    findings = succeeded("late_answer", told="new, unknown") if code not in STRONG else conflict("succeeded", 1, 1)
    return (
        Life(
            acts=(Act(0.0, "caller", call()), *sweeping(begins=11.0), positive),
            sends=("applied_beyond",), said={"delivery": BEYOND}, beyond=True,
            moments=(Moment(BEYOND - 10.0, concluded | {"effects": 0}), Moment(END, findings)),
        ),
    )  # fmt: skip


def _index_lags(code: str) -> tuple[Life, ...]:
    """What an index does not show yet is a note, and no proof; what shows at once has a horizon all the same."""
    if code == "LE":
        shown = Life(
            acts=ordinary(begins=11.0), sends=("reply_lost",), said={"index": 12.0},
            moments=(
                Moment(12.0, unknown(code, effects=1, looks=1)),
                Moment(END, end_of(code, happened=True)),
            ),
        )  # fmt: skip
        never = Life(
            acts=ordinary(begins=11.0), sends=("reply_lost",), said={"index": 2000.0},
            moments=(Moment(END, review(1, 1, looks=5)),),
        )  # fmt: skip
        return (shown, never)
    looks = ("behind",) if code in LOOKED else ()
    return (
        Life(
            acts=ordinary(begins=11.0), sends=("reply_lost",), looks=looks, beyond=True,
            moments=(
                Moment(50.0, {"outcome": "unknown", "looks": len(looks)}), Moment(END, end_of(code, happened=True)),
            ),
        ),
    )  # fmt: skip


def _doubled(code: str) -> tuple[Life, ...]:
    """The provider did it twice of its own accord: a look that shows two says so, to a person."""
    told = Life(
        acts=ordinary(), sends=("doubled_inside",), moments=(Moment(END, succeeded("answer", sends=1, effects=2)),)
    )  # fmt: skip
    end = review(1, 2, attempts=1)
    if code in LOOKED:
        end = conflict("succeeded", 1, 2, attempts=1)
    return (
        told,
        Life(acts=ordinary(begins=11.0), sends=("doubled_lost",), moments=(Moment(END, end),)),
    )  # fmt: skip


def _budget_out(code: str) -> tuple[Life, ...]:
    """Every look says nothing: no more of them than granted, and then a person; more only on a person's word."""
    looks = BLIND if code in LOOKED else ()
    end = end_of(code, happened=True, blind=True) if code in KEYED else review(1, 1, attempts=1)
    return (
        Life(
            acts=ordinary(begins=11.0), sends=("reply_lost",), looks=looks,
            moments=(
                Moment(DEADLINE, unknown(code, sends=1)), Moment(END, end | {"looks": len(looks), "owned": True}),
            ),
        ),
    )  # fmt: skip


def _contradicted(code: str) -> tuple[Life, ...]:
    """Found and absent, in either order of coming: found wins, both are kept, and it is a person's."""
    if code not in STRONG:
        return (_people_contradict(code),)
    absent_last = Life(
        acts=(
            Act(0.0, "caller", call()), Act(80.0, "worker", sweep), *sweeping("worker 2", begins=100.0),
        ),
        sends=("reply_lost",), looks=("behind", "shown"), beyond=True,
        strikes=(Strike("stop", "after Look", by="worker", seconds=100.0),),
        moments=(
            Moment(150.0, succeeded("look", told="new, unknown")),
            Moment(END, conflict("succeeded", 1, 1, looks=2)),
        ),
    )  # fmt: skip
    found_last = Life(
        acts=absent_last.acts, sends=("reply_lost",), looks=("shown", "behind"), beyond=True,
        strikes=absent_last.strikes,
        moments=(
            Moment(150.0, {"outcome": "rejected", "settled_by": "absent:look"}),
            Moment(END, conflict("succeeded", 1, 1, looks=2)),
        ),
    )  # fmt: skip
    return (absent_last, found_last)


def _people_contradict(code: str) -> Life:
    """Where no look proves absence, two people may say one thing and the other."""
    looks = BLIND if code in LOOKED else ()
    return Life(
        acts=ordinary(
            Act(500.0, "desk", find("succeeded")), Act(510.0, "desk", find("rejected", "user:ben")), begins=11.0
        ),
        sends=("reply_lost",), looks=looks,
        moments=(
            Moment(505.0, succeeded("operator", told="new, unknown")), Moment(END, conflict("succeeded", 1, 1)),
        ),
    )  # fmt: skip


def _misled(code: str) -> tuple[Life, ...]:
    """A refusal of the credentials, another account's list, a page without our control: none of it is absence."""
    looks = ("not_found", "wrong_account", "unauthorized", "empty") if code in LOOKED else ()
    return (
        Life(
            acts=ordinary(begins=80.0), sends=("reply_lost",), looks=looks,
            moments=(
                Moment(DEADLINE, unknown(code, sends=1)),
                Moment(END, end_of(code, happened=True, looks=len(looks) + (code in LOOKED))),
            ),
        ),
    )  # fmt: skip


ROWS = (
    Row(
        number=24, point="a clock is set back", requires="what has ended stays ended", never="revive an approval",
        lives=_clock_set_back, noticed="clock_goes_back",
    ),
    Row(
        number=25, point="the key's retention is over", requires="as without a key", never="repeat it",
        lives=_key_forgotten, noticed={"K": "retention_ignored", "*": "timeout_is_rejected"},
    ),
    Row(
        number=26, point="applied late, within the stated bound", requires="U until found or past the horizon",
        never="absent too early", lives=_applied_late,
        noticed={"*": "timeout_is_rejected", "K": "absence_without_horizon", "N": "absence_without_horizon",
                 "LS": "absence_without_horizon", "LE": "eventual_absence"},
    ),
    Row(
        number=27, point="applied later than anybody stated", requires="a discrepancy, with an owner", never="silence",
        lives=_applied_beyond, noticed="late_evidence_dropped",
    ),
    Row(
        number=28, point="the index lags", requires="absence is a note", never="conclude from it",
        lives=_index_lags,
        noticed={"*": "timeout_is_rejected", "K": "absence_without_horizon", "N": "absence_without_horizon",
                 "LS": "absence_without_horizon", "LE": "eventual_absence"},
    ),
    Row(
        number=29, point="the provider does it twice of its own accord",
        requires="succeeded; two shown by a look are a discrepancy", never="hide the second",
        lives=_doubled,
        noticed={"*": "duplicate_is_one", "0": "timeout_is_rejected", "B": "timeout_is_rejected"},
    ),
    Row(
        number=37, point="the read budget is spent", requires="a named person's", never="look on; close it",
        lives=_budget_out, noticed={"*": "read_budget_ignored", "0": "timeout_is_rejected", "B": "timeout_is_rejected"},
    ),
    Row(
        number=38, point="looks contradict each other", requires="found wins; both kept; a discrepancy",
        never="overwrite", lives=_contradicted, noticed="absent_overwrites_found",
    ),
    Row(
        number=39, point="404 of another account or a refused credential", requires="inconclusive; the next look",
        never="absent", lives=_misled,
        noticed={"*": "timeout_is_rejected", "K": "wrong_account_absent", "N": "wrong_account_absent",
                 "LS": "wrong_account_absent"},
    ),
)  # fmt: skip
