"""Cases in which one approval is used more than once: in turn, at once, after a kill, after each kind of answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from counterfoil import contracts
from counterfoil.domain.terms import OneShot
from counterfoil.domain.words import AttemptClass
from counterfoil.lab.approvals_bound import SENT
from counterfoil.lab.approvals_moment import CALLED, CLAIM
from counterfoil.lab.approvals_scene import (
    DEPUTY,
    EXACT,
    HAND_SECONDS,
    LEAD,
    LOSSY,
    REASON,
    Case,
    Desk,
    Scene,
    asking,
    ruling,
)

ROUNDS = 12
"""Races of one case: each has a key of its own."""
UNKNOWN: dict[str, Any] = {"sent": 1, "permission": "authorized", "outcome": "unknown"}
OWN_KEY = asking(attempts=(AttemptClass.FIRST, AttemptClass.AFTER_NOT_SENT, AttemptClass.SAME_KEY))
"""An approval that would allow the provider's own key to be used again, were it not used up."""


def at_once(*acts: Callable[[], object]) -> None:
    """Do several things at the same moment, and wait until all are done."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> None:
        barrier.wait()
        act()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _in_turn(scene: Scene) -> None:
    desk = scene.desk()
    scene.approved(desk)
    for _ in range(3):
        desk.call()
    desk.sweep()
    scene.desk().call()


def _two_threads(scene: Scene) -> None:
    desk, other = scene.desk(), scene.desk()
    scene.approved(desk)
    at_once(*(partial(scene.tries, d.call) for d in (desk, other, desk, other)))


def _two_threads_sweep(scene: Scene) -> None:
    desk, other = scene.desk(), scene.desk()
    scene.approved(desk)
    uses: tuple[Callable[[], object], ...] = (desk.sweep, other.sweep, desk.call)
    at_once(*(partial(scene.tries, use) for use in uses))


def _two_processes(scene: Scene) -> None:
    """Two processes stand before their claims, both let go at once."""
    scene.approved(scene.desk(opened={"live": True}))
    before = str(CALLED.index(CLAIM) + 1)
    hands = [scene.hand("--before", before) for _ in range(2)]
    for hand in hands:
        hand.let_go()
    for hand in hands:
        hand.wait(HAND_SECONDS)


def _killed_before_claim(scene: Scene) -> None:
    """Approved, killed before the claim, called again."""
    desk = scene.desk(opened={"live": True})
    scene.adopt(desk.ledger)
    scene.hand("--approve", "--before", str(CALLED.index(CLAIM) + 1)).kill()
    desk.call()
    desk.call()


def _killed_before_send(scene: Scene) -> None:
    """Approved, claimed, killed before the send: nobody knows, so nothing goes again."""
    desk = scene.desk(opened={"live": True})
    scene.adopt(desk.ledger)
    scene.hand("--approve", "--before", str(CALLED.index("Send") + 1)).kill()
    desk.call()
    desk.sweep()
    scene.tries(desk.attempt, desk.call().id, "not_sent")


def _not_sent(scene: Scene) -> None:
    """The claim was too late for its send: proven not sent, so the approval may be used after all."""
    desk = scene.desk()
    scene.approved(desk)
    with desk.interposed(CALLED.index("Send") + 1, lambda: scene.clock.step(60.0)):
        desk.call()
    desk.call()
    desk.call()


def _declared_anew(scene: Scene) -> None:
    """The same, and the contract changes: asked anew and approved, the worker of the new deployment sends it."""
    desk = scene.desk()
    scene.approved(desk)
    with desk.interposed(CALLED.index("Send") + 1, lambda: scene.clock.step(60.0)):
        desk.call()
    found = contracts.load(EXACT)
    other = scene.desk(msgspec.structs.replace(found, send_deadline_seconds=found.send_deadline_seconds + 1))
    other.approve(other.call().id)
    other.sweep()
    other.sweep()


def _unknown(scene: Scene, basis: str = "same_key_replay") -> None:
    """The reply was lost: nobody knows, and the approval is used."""
    desk = scene.desk(LOSSY)
    operation = scene.approved(desk, OWN_KEY)
    desk.call()
    desk.call()
    scene.tries(desk.attempt, operation, basis)


def _unknown_swept(scene: Scene) -> None:
    """The same for the worker, which cannot look and would use the provider's key."""
    desk = scene.desk(msgspec.structs.replace(contracts.load(LOSSY), looks=(), reconcile="forbidden"))
    scene.approved(desk, OWN_KEY)
    desk.call()
    for _ in range(3):
        scene.clock.step(5.0)
        desk.sweep()


# -- overrides ---------------------------------------------------------------------------------------------------------


def _lost(scene: Scene, **rule: OneShot) -> tuple[Desk, str]:
    """Approved and sent; the reply was lost."""
    desk = scene.desk(LOSSY)
    operation = scene.approved(desk, ruling(approval=OWN_KEY.rules[0].approval, **rule))
    desk.call()
    return desk, operation


def _overridden(scene: Scene) -> None:
    """Overridden once, attempted three times."""
    desk, operation = _lost(scene)
    desk.override(operation)
    for _ in range(3):
        scene.tries(desk.attempt, operation)


def _not_overridden(scene: Scene) -> None:
    desk, operation = _lost(scene)
    scene.tries(desk.attempt, operation)


def _absolute(scene: Scene) -> None:
    desk, operation = _lost(scene, one_shot=OneShot.ABSOLUTE)
    scene.tries(desk.override, operation)
    scene.tries(desk.attempt, operation)


def _overridden_then(scene: Scene, end: str) -> None:
    """Overridden, and then given up or taken back."""
    desk, operation = _lost(scene)
    desk.override(operation)
    decisions = desk.ledger.decisions
    scene.tries(getattr(decisions, end), operation, by=DEPUTY, reason=REASON)
    scene.tries(desk.attempt, operation)


def _abandoned_approved(scene: Scene) -> None:
    """Given up: a new override of what was abandoned is refused as well."""
    desk, operation = _lost(scene)
    desk.ledger.decisions.abandon(operation, by=LEAD, reason=REASON)
    scene.tries(desk.override, operation)
    scene.tries(desk.attempt, operation)
    scene.tries(desk.call)


def _abandoned_and_back(scene: Scene) -> None:
    """Given up with two unknown attempts; news of one brings it back, and only what is decided then counts."""
    desk, operation = _lost(scene)
    desk.override(operation)
    desk.attempt(operation)
    desk.override(operation)
    desk.ledger.decisions.abandon(operation, by=LEAD, reason=REASON)
    desk.ledger.resolve(operation, "rejected", attempt=1, evidence={"statement": "none"}, by=LEAD, reason=REASON)
    scene.tries(desk.attempt, operation)
    desk.override(operation)
    desk.attempt(operation)
    scene.tries(desk.attempt, operation)


ONCE = "sent once"
# The provider knows the key of the first send and does nothing more for the second.
TWICE: dict[str, Any] = {"sent": 2, "effects": 1, "permission": "authorized", "outcome": "unknown"}

CASES: tuple[Case, ...] = (
    Case("use: three times in turn", _in_turn, ONCE, **SENT),
    Case("use: in four threads at once", _two_threads, ONCE, **SENT),
    Case("use: by two workers and a caller at once", _two_threads_sweep, ONCE, **SENT),
    Case("use: in two processes at once", _two_processes, ONCE, **SENT),
    Case("use: killed between approval and claim", _killed_before_claim, ONCE, **SENT),
    Case(
        "use: killed between claim and send",
        _killed_before_send,
        "unknown, so never again",
        sent=0,
        permission="authorized",
        outcome="unknown",
    ),
    Case("use: after not_sent", _not_sent, "its use was given back", **SENT),
    Case("use: after not_sent, declared anew", _declared_anew, "it was approved anew", **SENT),
    Case("use: after an unknown outcome, by its caller", _unknown, "its use is not given back", **UNKNOWN),
    Case("use: after an unknown outcome, by the worker", _unknown_swept, "its use is not given back", **UNKNOWN),
    Case("override: none, attempted", _not_overridden, "refused", **UNKNOWN),
    Case("override: one, three attempts", _overridden, "once more", **TWICE),
    Case("override: under absolute one-shot", _absolute, "refused", **UNKNOWN),
    Case("override: then abandoned", partial(_overridden_then, end="abandon"), "nothing more is sent", **UNKNOWN),
    Case(
        "override: then revoked",
        partial(_overridden_then, end="revoke"),
        "nothing more is sent",
        sent=1,
        permission="revoked",
        outcome="unknown",
    ),
    Case("override: abandoned before", _abandoned_approved, "nothing more is sent", **UNKNOWN),
    Case("override: abandoned, and back by news", _abandoned_and_back, "once more each", **{**TWICE, "sent": 3}),
)
