"""Rows 30 to 34: approvals that end, change or cross, and people who click twice or at once."""

from __future__ import annotations

from typing import Any

from counterfoil.domain.words import Basis
from counterfoil.lab.matrix.acts import attempt, call, decide, moved_to, ordinary, sweeping
from counterfoil.lab.matrix.expected import BLIND, FLYING, LOOKED, OVER, READY, REPEATS, WAITS, review, succeeded
from counterfoil.lab.matrix.life import AGAIN, END, SEEN, Act, Life, Moment
from counterfoil.lab.matrix.row import Row
from counterfoil.lab.matrix.script import Strike

PENDING: dict[str, Any] = {
    "permission": "pending", "dispatch": "not_started", "outcome": "unobserved", "unresolved": 0, "step": "approve",
    "permitted": WAITS, "all_sends": 0,
}  # fmt: skip
ASKED = Act(0.0, "caller", call())
APPROVED = Act(0.5, "desk", decide("approve"))
PAST = 350.0
"""Past the end of every approval here."""


def _over(code: str) -> tuple[Life, ...]:
    """Expired, and revoked, between approval and claim: nothing leaves, and a new call asks anew."""
    del code
    again = Act(AGAIN, "caller", call())
    expired = Life(
        acts=(ASKED, APPROVED, *sweeping(begins=PAST), again), asks=1,
        moments=(
            Moment(SEEN, READY | {"step": "dispatch", "all_sends": 0}),
            Moment(950.0, {"permission": "expired", "dispatch": "not_started", "all_sends": 0, "step": ""}),
            Moment(END, PENDING | {"told": "pending, unobserved"}),
        ),
    )  # fmt: skip
    revoked = Life(
        acts=(ASKED, APPROVED, Act(0.8, "desk", decide("revoke")), *sweeping(begins=1.0), again), asks=1,
        moments=(
            Moment(SEEN, {"permission": "revoked", "dispatch": "not_started", "all_sends": 0, "permitted": OVER}),
            Moment(END, {"permission": "revoked", "all_sends": 0, "told": "existing, unobserved"}),
        ),
    )  # fmt: skip
    at_the_claim = Life(
        acts=(ASKED, APPROVED, *sweeping(begins=2.0), Act(4.0, "desk", decide("revoke")), again), asks=1,
        strikes=(Strike("stop", "before Amend", by="worker", seconds=5.0),),
        moments=(Moment(END, {"permission": "revoked", "dispatch": "not_started", "all_sends": 0}),),
    )  # fmt: skip
    ends_at_the_claim = Life(
        acts=(ASKED, APPROVED, *sweeping(begins=2.0)), asks=1,
        strikes=(Strike("stop", "before Amend", by="worker", seconds=PAST),),
        moments=(Moment(END, {"permission": "expired", "dispatch": "not_started", "all_sends": 0}),),
    )  # fmt: skip
    return (expired, revoked, at_the_claim, ends_at_the_claim)


def _revoked_too_late(code: str) -> tuple[Life, ...]:
    """The claim is the commit point: what was claimed may finish, and nothing goes after it, under no key either."""
    acts = (ASKED, APPROVED, *sweeping(begins=2.0), Act(4.0, "desk", decide("revoke")), Act(AGAIN, "caller", call()))
    claimed = Moment(5.0, FLYING | {"permission": "revoked", "sends": 0})
    pause = (Strike("stop", "before Send", by="worker", seconds=5.0),)
    finished = Life(
        acts=acts, asks=1, strikes=pause,
        moments=(claimed, Moment(END, succeeded("answer", attempts=1, permission="revoked"))),
    )  # fmt: skip
    lost = Life(
        acts=acts, asks=1, strikes=pause, sends=("reply_lost",), looks=BLIND if code in LOOKED else (),
        moments=(claimed, Moment(END, review(1, 1, attempts=1, permission="revoked"))),
    )  # fmt: skip
    return (finished, lost)


def _changed(code: str) -> tuple[Life, ...]:
    """Another payload under the same key is refused; another destination is asked about anew."""
    del code
    payload = Life(
        acts=(
            ASKED, APPROVED, Act(0.8, "caller", call(amount=2)), *sweeping(begins=2.0), Act(AGAIN, "caller", call()),
        ),
        asks=1,
        moments=(
            Moment(SEEN, READY | {"told": "KeyConflict", "operations": 1, "all_sends": 0}),
            Moment(END, succeeded("answer", operations=1, all_sends=1)),
        ),
    )  # fmt: skip
    place = Life(
        acts=(
            ASKED, APPROVED, Act(0.8, "caller", moved_to("elsewhere")), Act(0.9, "caller", call()),
            Act(AGAIN, "caller", call()),
        ),
        asks=1, moments=(Moment(END, PENDING | {"operations": 1}),),
    )  # fmt: skip
    return (payload, place)


def _twice(code: str) -> tuple[Life, ...]:
    """One click too many is one decision: of an approval, of an approval that takes two, of an override."""
    approved = Life(
        acts=(
            ASKED, APPROVED, Act(0.6, "desk", decide("approve", seen=1)), *sweeping(begins=2.0),
            Act(AGAIN, "caller", call()),
        ),
        asks=1, moments=(Moment(SEEN, READY | {"decided": ("approve",)}), Moment(END, succeeded("answer", attempts=1))),
    )  # fmt: skip
    alone = Life(
        acts=(
            ASKED, APPROVED, *(Act(0.6 + n / 10, "desk", decide("approve")) for n in range(3)), *sweeping(begins=2.0),
            Act(50.0, "caller", call()),
        ),
        asks=2, moments=(Moment(100.0, PENDING | {"decided": ("approve",)}),),
    )  # fmt: skip
    if code == "B":
        return (approved, alone)  # what may have left is never sent again there, whoever clicks
    return (approved, alone, _overridden_twice(code))


def _overridden_twice(code: str) -> Life:
    """One override is one attempt, however often it is asked for."""
    sends = 2 + REPEATS.get(code, 0)
    clicks = tuple(Act(500.0 + n, "desk", attempt(Basis.OPERATOR_OVERRIDE)) for n in (1, 20, 21))
    return Life(
        acts=ordinary(Act(500.0, "desk", decide("override")), *clicks, begins=11.0),
        sends=("request_lost",) * sends, looks=BLIND if code in LOOKED else (),
        moments=(Moment(END, review(sends, 0, attempts=sends)),),
    )  # fmt: skip


def _crossed(code: str) -> tuple[Life, ...]:
    """Two people decide at once on what both saw: the first word stands, the second is told how things stand now."""
    del code
    lives = []
    for first, second, permission, sends in (
        ("approve", "deny", "authorized", 1), ("deny", "approve", "denied", 0), ("approve", "approve", "authorized", 1),
    ):  # fmt: skip
        late = Act(0.6, "desk 2", decide(second, "user:ben", seen=1))
        lives.append(
            Life(
                acts=(ASKED, Act(0.5, "desk", decide(first, seen=1)), late, *sweeping(begins=2.0)), asks=1,
                moments=(
                    Moment(SEEN, {
                        "permission": permission, "decided": (first,), "told": "NotDecided", "all_sends": 0,
                    }),
                    Moment(END, {"permission": permission, "all_sends": sends, "all_effects": sends}),
                ),
            )
        )  # fmt: skip
    return (*lives, *_crossed_elsewhere())


def _crossed_elsewhere() -> tuple[Life, ...]:
    """The same where both words would do by themselves: two yeses to what takes two, two owners."""
    two = Life(
        acts=(
            ASKED, Act(0.5, "desk", decide("approve", seen=1)),
            Act(0.6, "desk 2", decide("approve", "user:ben", seen=1)),
            Act(2.0, "desk 2", decide("approve", "user:ben")), *sweeping(begins=3.0),
        ),
        asks=2,
        moments=(
            Moment(SEEN, PENDING | {"decided": ("approve",), "told": "NotDecided"}),
            Moment(END, {"permission": "authorized", "decided": ("approve", "approve"), "all_sends": 1}),
        ),
    )  # fmt: skip
    owners = Life(
        acts=(
            ASKED, Act(0.5, "desk", decide("assign", seen=1, owner="ada")),
            Act(0.6, "desk 2", decide("assign", "user:ben", seen=1, owner="ben")),
        ),
        asks=1, moments=(Moment(SEEN, PENDING | {"owner": "ada", "told": "NotDecided", "decided": ("assign",)}),),
    )  # fmt: skip
    return (two, owners)


ROWS = (
    Row(
        number=30, point="the approval expires or is revoked before the claim",
        requires="expired or revoked; nothing leaves; a new call asks anew", never="send",
        lives=_over, noticed="expiry_ignored",
    ),
    Row(
        number=31, point="revoked after the claim, before the first byte",
        requires="what is claimed may finish; nothing after it", never="another attempt",
        lives=_revoked_too_late, noticed="timeout_is_rejected",
    ),
    Row(
        number=32, point="payload or destination changed after the approval", requires="refused, or asked anew",
        never="send", lives=_changed, noticed="conflict_returns_receipt",
    ),
    Row(
        number=33, point="an operator clicks twice", requires="one decision", never="two attempts; two people",
        lives=_twice, noticed={"*": "override_reusable", "B": "two_clicks_two_people"},
    ),
    Row(
        number=34, point="two operators decide against each other", requires="the first stands; the second is told",
        never="the last word wins", lives=_crossed, noticed="decided_unseen",
    ),
)  # fmt: skip
