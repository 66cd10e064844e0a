"""Cases in which permission ends at some moment: before each effect of a plan, and while clocks step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from counterfoil.lab.approvals_bound import SENT
from counterfoil.lab.approvals_scene import DEPUTY, SECONDS, Case, Desk, Scene, asking
from counterfoil.lab.failure import RunFailed

CALLED = ("Validate", "Form", "Propose", "Form", "Amend", "Send", "Settle")
"""What a call of an approved operation asks for, in order."""
SWEPT = ("Now", "Validate", "Form", "Amend", "Send", "Settle")
"""What the worker's step on it asks for."""
ASKED = ("Validate", "Form", "Propose", "Form", "Amend")
"""What a call of an operation asks for that still waits for people."""
CLAIM = "Amend"
"""The claim: what ends permission before it ends the attempt, and what comes after it lets the attempt finish."""

End = Callable[[Scene, Desk, str], object]


def _revoked(scene: Scene, desk: Desk, operation: str) -> None:
    scene.tries(desk.revoke, operation)


def _expired(scene: Scene, _desk: Desk, _operation: str) -> None:
    # To the deadline of a send the store's clock counts as well: an hour later nothing may be written any more.
    scene.clock.step(1.0)


def _denied(scene: Scene, desk: Desk, operation: str) -> None:
    scene.tries(desk.deny, operation)
    scene.tries(desk.approve, operation, by=DEPUTY)


def _ends(scene: Scene, end: End, effects: tuple[str, ...], before: int) -> None:
    """Approved, and over right before one effect of the plan that would send it."""
    desk = scene.desk()
    operation = scene.approved(desk, asking(seconds=0.5))
    with desk.interposed(before, lambda: end(scene, desk, operation)) as hand:
        scene.tries(desk.sweep if effects is SWEPT else desk.call)
    if len(hand.seen) < before or hand.seen[before - 1] != effects[before - 1]:
        raise RunFailed(f"the plan asked for {', '.join(hand.seen)}, and not for {', '.join(effects)}")


def _deny_before(scene: Scene, before: int) -> None:
    """One of two people has approved; the other says no right before one effect of a call."""
    desk = scene.desk()
    operation = scene.approved(desk, asking(people=2))
    with desk.interposed(before, lambda: scene.tries(desk.deny, operation)):
        scene.tries(desk.call)
    scene.tries(desk.approve, operation, by=DEPUTY)
    scene.tries(desk.call)


def _moments() -> Iterator[Case]:
    ends: tuple[tuple[str, End, str, str], ...] = (
        ("revoked", _revoked, "revoked", "revoked"), ("expired", _expired, "pending", "expired"),
    )  # fmt: skip
    for word, end, called, swept in ends:
        for who, effects, after in (("call", CALLED, called), ("worker", SWEPT, swept)):
            for number, effect in enumerate(effects, 1):
                late = number > effects.index(CLAIM) + 1
                play = partial(_ends, end=end, effects=effects, before=number)
                name = f"{who}: {word} before effect {number} ({effect})"
                if late:
                    lasts = "revoked" if word == "revoked" else "authorized"
                    told = "claimed before, so it may finish"
                    yield Case(name, play, told, sent=1, permission=lasts, outcome="succeeded")
                else:
                    yield Case(name, play, "nothing is sent", permission=after, mutates=True)
    for number, effect in enumerate(ASKED, 1):
        play = partial(_deny_before, before=number)
        yield Case(f"call: denied before effect {number} ({effect})", play, "nothing is sent", permission="denied")


# -- clocks ------------------------------------------------------------------------------------------------------------


def _forth(scene: Scene) -> None:
    """The clock jumps over the end and back; what has ended stays so."""
    desk = scene.desk()
    scene.approved(desk)
    scene.clock.step(SECONDS + 1)
    desk.ledger.store.now()
    scene.clock.step(-2 * SECONDS)
    desk.call()


def _forth_recorded(scene: Scene) -> None:
    """The worker has recorded the expiry; the clock goes back and everything is started again."""
    desk = scene.desk()
    scene.approved(desk)
    scene.clock.step(SECONDS + 1)
    desk.sweep()
    scene.clock.step(-2 * SECONDS)
    desk.sweep()
    scene.desk().sweep()


def _forth_restarted(scene: Scene) -> None:
    """The same, called again afterwards: it is asked anew."""
    _forth_recorded(scene)
    scene.desk().call()


def _forth_elsewhere(scene: Scene) -> None:
    """Past the end only something older is written to; the clock goes back and another process is started."""
    desk = scene.desk()
    scene.adopt(desk.ledger)
    older = desk.call("order-1041").id
    desk.approve(desk.call().id)
    scene.clock.step(SECONDS + 1)
    desk.ledger.decisions.assign(older, "night shift", by=DEPUTY, reason="looks into it")
    scene.clock.step(-2 * SECONDS)
    scene.desk().call()
    scene.desk().sweep()


def _other_clock(scene: Scene) -> None:
    """A process whose clock is ahead has written to it; for one whose clock is behind it has ended as well."""
    desk, ahead = scene.desk(), scene.desk()
    operation = scene.approved(desk)
    scene.clock.step(SECONDS + 1)
    ahead.ledger.decisions.assign(operation, "night shift", by=DEPUTY, reason="looks into it")
    scene.clock.step(-2 * SECONDS)
    desk.call()


def _back(scene: Scene) -> None:
    """The clock steps back by a day: the approval was never over."""
    desk = scene.desk()
    scene.approved(desk)
    scene.clock.step(-24 * SECONDS)
    desk.call()


def _at_the_end(scene: Scene) -> None:
    """Used in the very moment in which it ends."""
    desk = scene.desk()
    scene.approved(desk)
    scene.clock.step(SECONDS)
    desk.call()


def _unanswered(scene: Scene) -> None:
    """Nobody answers in time; whoever answers late is told."""
    desk = scene.desk()
    scene.adopt(desk.ledger)
    operation = desk.call().id
    scene.clock.step(SECONDS + 1)
    scene.tries(desk.approve, operation)
    desk.sweep()
    scene.tries(desk.approve, operation)
    desk.sweep()


OVER = "an expiry is never revived"

CASES: tuple[Case, ...] = (
    *_moments(),
    Case("clock: forth over the end and back", _forth, OVER, mutates=True),
    Case("clock: forth, recorded, back", _forth_recorded, OVER, permission="expired", mutates=True),
    Case("clock: forth, recorded, back, called", _forth_restarted, OVER, mutates=True),
    Case("clock: forth, another recorded, back, called", _forth_elsewhere, OVER, mutates=True),
    Case("clock: another process is ahead", _other_clock, OVER, mutates=True),
    Case("clock: back by a day", _back, "it was never over", **SENT),
    Case("clock: at the very end", _at_the_end, "it is good to the last moment", **SENT),
    Case("clock: nobody answers", _unanswered, "no answer is no approval", permission="expired"),
)
