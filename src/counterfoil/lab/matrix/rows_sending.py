"""Rows 4 to 11: what becomes of a send."""

from __future__ import annotations

from typing import Any

from counterfoil.domain.words import Basis
from counterfoil.lab.matrix.acts import attempt, decide, ordinary
from counterfoil.lab.matrix.expected import (
    BLIND,
    DEADLINE,
    KEYED,
    LOOKED,
    READY,
    REPEATS,
    end_of,
    fresh,
    looks_of,
    rejected,
    review,
    unknown,
)
from counterfoil.lab.matrix.life import END, SEEN, Act, Life, Moment
from counterfoil.lab.matrix.row import Row

REPEATED = 76.0
"""After the first repeat, where all five looks said nothing and the worker began past the deadline."""


def silence(code: str, fate: str, *, happened: bool, seen: float = SEEN, **first: Any) -> tuple[Life, ...]:
    """A send of which nothing can be concluded: U, and then what its kind allows; where a key is, blind as well.

    Args:
        code: the kind's.
        fate: what becomes of the send.
        happened: it took effect.
        seen: when one looks at what it left.
        first: what else must be so then.
    """
    left = unknown(code, sends=1, effects=int(happened), attempts=1, observed=1, **first)
    return tuple(
        Life(
            acts=ordinary(begins=seen + 0.5), sends=(fate,), looks=blind, said={"applied": happened},
            moments=(
                Moment(seen, left),
                Moment(END, end_of(code, happened=happened, blind=bool(blind), sends=1 + bool(blind))),
            ),
        )
        for blind in looks_of(code)
    )  # fmt: skip


def _unreachable(code: str) -> tuple[Life, ...]:
    """Not a byte left, so it may go; where another attempt is unknown, that one still speaks."""
    never_left = READY | {"sends": 0, "effects": 0, "attempts": 1, "findings": ("not_sent",)}
    lives = [
        Life(
            acts=ordinary(), sends=(fate,),
            moments=(Moment(SEEN, never_left), Moment(END, fresh(attempts=2, bases=("", "not_sent")))),
        )
        for fate in ("connect_refused", "tls_failed")
    ]  # fmt: skip
    if code in KEYED:
        lives.append(_after_unknown(code, "connect_refused"))
    return tuple(lives)


def _after_unknown(code: str, fate: str) -> Life:
    """A first attempt that nobody knows about, and a repeat of it that did not leave: the first one still speaks."""
    findings = (*("unknown",) * 6, "not_sent")
    still = unknown(code, sends=1, effects=1, attempts=2, step="replay", findings=findings)
    return Life(
        acts=ordinary(begins=11.0), sends=("reply_lost", fate), looks=BLIND,
        moments=(
            Moment(DEADLINE, unknown(code, sends=1, effects=1)), Moment(REPEATED, still),
            Moment(END, end_of(code, happened=True, blind=True, attempts=3)),
        ),
    )  # fmt: skip


def _refused(code: str) -> tuple[Life, ...]:
    """A definite no is the end of its own attempt, and says nothing of an earlier one."""
    alone = Life(
        acts=ordinary(), sends=("refused",),
        moments=(Moment(SEEN, rejected(told="new, rejected")), Moment(END, rejected())),
    )  # fmt: skip
    if code == "B":
        return (alone,)  # nothing that may have left is ever sent again: there is no second attempt to refuse
    repeats, overridden = REPEATS.get(code, 1), code not in KEYED
    further = (Act(500.0, "desk", decide("override")), Act(501.0, "desk", attempt(Basis.OPERATOR_OVERRIDE)))
    second = Life(
        acts=ordinary(*(further if overridden else ()), begins=11.0), sends=("reply_lost", *("refused",) * repeats),
        looks=BLIND if code in LOOKED else (),
        moments=(
            Moment(DEADLINE, unknown(code, sends=1, effects=1)),
            Moment(END, review(1 + repeats, 1, attempts=1 + repeats, exposure=1)),
        ),
    )  # fmt: skip
    return (alone, second)


ROWS = (
    Row(
        number=4, point="connect refused, TLS failed: not one byte left",
        requires="not_sent, the fold of the earlier attempts; it may go again", never="count as rejected",
        lives=_unreachable,
        noticed={"*": "new_key_per_attempt", "K": "not_sent_is_ready", "N": "not_sent_is_ready"},
    ),
    Row(
        number=5, point="part of the request written", requires="U, for every kind",
        never="not_sent; a repeat but by key",
        lives=lambda code: (*silence(code, "cut_lost", happened=False), *silence(code, "cut_applied", happened=True)),
        noticed="timeout_is_rejected",
    ),
    Row(
        number=6, point="all written, not yet applied", requires="U; absent only past the horizon",
        never="absent before that",
        lives=lambda code: silence(code, "request_lost", happened=False, seen=DEADLINE),
        noticed="timeout_is_rejected",
    ),
    Row(
        number=7, point="applied, no response", requires="U; found, or repeated under its key",
        never="success without evidence", lives=lambda code: silence(code, "reply_lost", happened=True, seen=DEADLINE),
        noticed="retry_on_timeout",
    ),
    Row(
        number=8, point="response truncated", requires="U, and the bytes that came", never="believe the status line",
        lives=lambda code: tuple(
            life for happened in (True, False) for life in silence(code, "truncated", happened=happened, kept=True)
        ),
        noticed="status_line_is_success",
    ),
    Row(
        number=9, point="200 with a body that nobody can read", requires="U", never="succeeded",
        lives=lambda code: tuple(
            life for fate in ("html", "not_json") for happened in (True, False)
            for life in silence(code, fate, happened=happened)
        ),
        noticed="bad_json_is_success",
    ),
    Row(
        number=10, point="5xx, 429, 409 in progress, 202", requires="U, and Retry-After is honoured", never="rejected",
        lives=lambda code: (
            *silence(code, "error_after", happened=True), *silence(code, "error_before", happened=False),
            *silence(code, "unavailable_after", happened=True), *silence(code, "throttled", happened=False),
            *silence(code, "busy", happened=False), *silence(code, "accepted_dropped", happened=False),
        ),
        noticed="error_is_rejected",
    ),
    Row(
        number=11, point="a definite 4xx", requires="rejected, if every earlier attempt had no effect; else U",
        never="override an earlier attempt", lives=_refused,
        noticed={"*": "last_rejection_wins", "B": "claim_ignores_state"},
    ),
)  # fmt: skip
