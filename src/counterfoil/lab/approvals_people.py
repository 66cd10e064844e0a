"""Cases about who approves what: the wrong person, what they did not see, two at once, an approval moved elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from counterfoil.domain.approval import binding, proposed_of
from counterfoil.domain.event import EventKind, chain
from counterfoil.domain.operation import Operation
from counterfoil.lab.approvals_bound import SENT, change
from counterfoil.lab.approvals_scene import (
    AGENT,
    ASKS,
    DEPUTY,
    KEY,
    LEAD,
    LOSSY,
    MIA,
    REASON,
    Case,
    Desk,
    Scene,
    asking,
    ruling,
)
from counterfoil.lab.approvals_use import OWN_KEY, ROUNDS, UNKNOWN, at_once
from counterfoil.lab.scoreboard import SEQ_BITS

EVENTS = 1 << SEQ_BITS
"""An event's row number is its operation's times this, and its own."""

# -- who may -----------------------------------------------------------------------------------------------------------


def _by(
    scene: Scene, people: tuple[str, ...], *, actor: str = AGENT, of: int = 1, approvers: tuple[str, ...] = ()
) -> None:
    """These approve, one after the other; then it is called, and the worker sweeps."""
    desk = scene.desk(opened={"actor": actor})
    scene.adopt(desk.ledger, asking(people=of, approvers=approvers))
    operation = desk.call().id
    for person in people:
        scene.tries(desk.approve, operation, by=person)
    desk.call()
    desk.sweep()


def _found(scene: Scene) -> None:
    """An agent says that it failed, and asks for another attempt."""
    desk = scene.desk(LOSSY)
    scene.adopt(desk.ledger, ruling(approval=None))
    operation = desk.call().id
    for agent in (AGENT, "Agent :other"):
        scene.tries(desk.ledger.resolve, operation, "rejected", evidence={"note": "failed"}, by=agent, reason=REASON)
        scene.tries(desk.ledger.attempt, operation, basis="rejected_without_effect", by=agent)
    scene.tries(desk.ledger.attempt, operation)
    desk.sweep()
    desk.call()


def _seen(scene: Scene) -> None:
    """Somebody wrote to it since it was seen."""
    desk = scene.desk()
    scene.adopt(desk.ledger)
    receipt = desk.call()
    desk.ledger.decisions.assign(receipt.id, "night shift", by=DEPUTY, reason=REASON)
    scene.tries(desk.approve, receipt.id, seen=receipt.operation.seq)
    desk.call()


def _shown(scene: Scene) -> None:
    """It was asked anew since, under another policy; what was shown is what was asked before."""
    desk = scene.desk()
    scene.adopt(desk.ledger)
    operation = desk.call().id
    bound = binding(proposed_of(desk.ledger.history(operation).events[0]))
    scene.adopt(desk.ledger, msgspec.structs.replace(ASKS, name="another"))
    desk.call()
    scene.tries(desk.approve, operation, bound=bound)
    desk.call()


# -- at once -----------------------------------------------------------------------------------------------------------


def _race(scene: Scene, others: Callable[[Desk, str, int], object], *, approved: bool) -> None:
    """Approval or use against the other decision, many times; whoever wins, the other one is told."""
    desk = scene.desk()
    scene.adopt(desk.ledger)
    for number in range(ROUNDS):
        key = f"order-{number}"
        receipt = desk.call(key)
        if approved:
            receipt = desk.approve(receipt.id)
        seen = receipt.operation.seq
        use = partial(desk.call, key) if approved else partial(desk.approve, receipt.id, seen=seen)
        at_once(partial(scene.tries, use), partial(scene.tries, others, desk, receipt.id, seen))
        desk.call(key)


def _deny(desk: Desk, operation: str, seen: int) -> object:
    return desk.deny(operation, seen=seen)


def _revoke(desk: Desk, operation: str, seen: int) -> object:
    del seen
    return desk.revoke(operation)


# -- the worker, after its proposer has gone ---------------------------------------------------------------------------


def _proposer_killed(scene: Scene, *, revoked: bool) -> None:
    desk = scene.desk(opened={"live": True})
    scene.adopt(desk.ledger)
    scene.hand().kill()
    operation = desk.ledger.store.waiting()[0].id
    desk.approve(operation)
    if revoked:
        desk.revoke(operation)
    for _ in range(3):
        desk.sweep()


def _changed_and_called(scene: Scene, end: Callable[[Desk, str], object]) -> None:
    """Approved, ended, and then called and swept."""
    desk = scene.desk()
    operation = scene.approved(desk)
    scene.tries(end, desk, operation)
    scene.tries(desk.approve, operation)
    desk.call()
    desk.sweep()


# -- an approval from elsewhere ----------------------------------------------------------------------------------------


def _replay(scene: Scene, desk: Desk, source: str, target: str) -> None:
    """Copy an approval's row from one operation to another, with everything that makes it look at home there."""
    load = desk.ledger.store.load
    event = next(e for e in load(source).events if e.kind is EventKind.DECIDED and b'"approve"' in e.record)
    history = load(target)
    o: Operation = history.operation
    seq, at = o.seq + 1, max(o.updated_at, event.at)
    link = chain(history.head, o.id, seq, event.kind.value, at, event.record)
    values = (o.n * EVENTS + seq, event.kind.value, at, event.record, None, link)
    change(scene, "INSERT INTO event (id, kind, at, record, body, hash) VALUES (?, ?, ?, ?, ?, ?)", *values)
    step = "UPDATE operation SET permission = 'authorized', seq = ?, updated_at = ? WHERE n = ?"
    change(scene, step, seq, at, o.n)
    if not o.unresolved:
        change(
            scene, "UPDATE operation SET step = 'dispatch', disposition = 'open', due_at = ? WHERE n = ?", at + 60, o.n
        )


def _of_another(scene: Scene, **other: Any) -> None:
    """An approval of another operation, or of another tenant's, stands in this one's history."""
    desk = scene.desk()
    source = scene.approved(desk)
    target_desk = scene.desk(opened=other)
    target = target_desk.call("order-1043", order="order-1043", amount=99_999).id
    _replay(scene, desk, source, target)
    scene.tries(target_desk.call, "order-1043", order="order-1043", amount=99_999)
    scene.tries(target_desk.ledger.work, target)


def _of_its_own(scene: Scene, end: str) -> None:
    """Its own approval stands in its history once more, after it had ended or was used."""
    desk = scene.desk(LOSSY if end == "used" else "lab.lookup")
    operation = scene.approved(desk, OWN_KEY)
    match end:
        case "used":
            desk.call()
        case "revoked":
            desk.revoke(operation)
        case _:
            scene.clock.step(2 * 3600.0)
            desk.sweep()
    _replay(scene, desk, operation, operation)
    scene.tries(desk.sweep)
    scene.tries(desk.attempt, operation, "same_key_replay")
    scene.tries(desk.call)


# -- holds -------------------------------------------------------------------------------------------------------------


def _held(scene: Scene, *, released: bool, called: bool) -> None:
    """The first of two equal effects is unknown and holds the second; neither needs an approval."""
    desk = scene.desk(LOSSY, effect_by=("/order",))
    scene.adopt(desk.ledger, ruling(approval=None))
    desk.call()
    held = desk.call("order-1042 again", order=KEY).id
    if released:
        desk.ledger.decisions.release(held, by=LEAD, reason=REASON)
    desk.sweep()
    if called:
        scene.tries(desk.call, "order-1042 again")


def _held_approved(scene: Scene) -> None:
    """The second of two equal effects is approved: an approval lifts no hold."""
    desk = scene.desk(LOSSY, effect_by=("/order",))
    scene.approved(desk)
    desk.call()
    held = desk.call("order-1042 again").id
    scene.tries(desk.approve, held)
    desk.call("order-1042 again")
    desk.sweep()


ENDED, TOLD = "nothing is sent", "refused"

CASES: tuple[Case, ...] = (
    Case("who: the requester", partial(_by, people=(MIA,), actor=MIA), TOLD),
    Case("who: the requester, at a terminal", partial(_by, people=(f"{MIA} (uid 1000)",), actor=MIA), TOLD),
    Case("who: an agent", partial(_by, people=("agent:other",)), TOLD),
    Case("who: one person twice, where two are asked", partial(_by, people=(LEAD, LEAD), of=2), TOLD),
    Case("who: one person at two desks", partial(_by, people=(LEAD, f"{LEAD} (uid 7)"), of=2), TOLD),
    Case("who: the requester, spelled otherwise", partial(_by, people=("Mia", f" user:{MIA}"), actor=MIA), TOLD),
    Case("who: an agent, spelled otherwise", partial(_by, people=("AGENT:other", "agent :other")), TOLD),
    Case(
        "who: one person in three spellings",
        partial(_by, people=(LEAD, f"user:{LEAD}", LEAD.title(), "le\u0430d"), of=3),
        TOLD,
    ),
    Case("who: two people", partial(_by, people=(LEAD, DEPUTY), of=2), "sent as approved", **SENT),
    Case("who: somebody whom the policy does not list", partial(_by, people=(LEAD,), approvers=("cfo",)), TOLD),
    Case(
        "who: somebody whom the policy lists, as a terminal names them",
        partial(_by, people=("user:cfo (uid 7)",), approvers=("CFO",)),
        "sent as approved",
        **SENT,
    ),
    Case(
        "who: somebody whom the policy lists",
        partial(_by, people=("cfo",), approvers=("cfo",)),
        "sent as approved",
        **SENT,
    ),
    Case("who: an agent finds that it failed", _found, "sent once", sent=1, permission="authorized", outcome="unknown"),
    Case("who: what they saw has changed", _seen, TOLD),
    Case("who: they were shown another question", _shown, TOLD),
    Case("at once: approved and denied", partial(_race, others=_deny, approved=False), "one wins", None, "*", "*"),
    Case("at once: called and revoked", partial(_race, others=_revoke, approved=True), "one wins", None, "*", "*"),
    Case(
        "worker: approved, proposer killed", partial(_proposer_killed, revoked=False), "sent once by the worker", **SENT
    ),
    Case(
        "worker: approved, proposer killed, revoked",
        partial(_proposer_killed, revoked=True),
        ENDED,
        permission="revoked",
        mutates=True,
    ),
    Case(
        "who: approved, revoked, approved again",
        partial(_changed_and_called, end=Desk.revoke),
        ENDED,
        permission="revoked",
        mutates=True,
    ),
    Case("replay: another operation's approval", _of_another, ENDED, permission="authorized"),
    Case(
        "replay: another tenant's approval",
        partial(_of_another, tenant="other"),
        ENDED,
        permission="authorized",
    ),
    Case(
        "replay: its own approval, revoked before",
        partial(_of_its_own, end="revoked"),
        ENDED,
        permission="authorized",
    ),
    Case(
        "replay: its own approval, expired before",
        partial(_of_its_own, end="expired"),
        ENDED,
    ),
    Case("replay: its own approval, used before", partial(_of_its_own, end="used"), "sent once", **UNKNOWN),
    Case(
        "hold: held, not released",
        partial(_held, released=False, called=True),
        "the first alone is sent",
        sent=1,
        permission="authorized",
    ),
    Case(
        "hold: held, released",
        partial(_held, released=True, called=False),
        "the release sends nothing",
        sent=1,
        permission="authorized",
    ),
    Case(
        "hold: held, released, called",
        partial(_held, released=True, called=True),
        "the caller sends it",
        sent=2,
        permission="authorized",
        outcome="unknown",
    ),
    Case("hold: held, approved", _held_approved, "an approval lifts no hold", sent=1, permission="authorized"),
)
