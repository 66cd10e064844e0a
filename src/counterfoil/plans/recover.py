"""Take up what a worker left behind: an attempt nobody reports on is unknown, and stays so until evidence."""

from __future__ import annotations

import msgspec

from counterfoil.domain import looking, patience, rules, schedule
from counterfoil.domain.action import Action, Draw, Order
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.consent import expire
from counterfoil.domain.event import History, attempts_of, destination_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.intent import Intent
from counterfoil.domain.payload import SALT_BYTES, frozen_payload
from counterfoil.domain.words import Finding, Source, Standing
from counterfoil.plans import observing
from counterfoil.plans.dispatch import further, stands
from counterfoil.plans.effects import Ended, Hand, Now, Plan, Uptime
from counterfoil.plans.follow import follow
from counterfoil.plans.reconcile import reconcile

DEAD = "dead"
"""What a hand answers of a worker that cannot write any more; anything else proves nothing."""


def recover(history: History, action: Action, draw: Draw) -> Plan[History]:
    """Record of every attempt whose worker is dead or past its deadline that its outcome is unknown (invariant 3).

    Where the kernel proves its worker dead the attempt is quiesced too: it cannot write any more.
    """
    attempts, _ = attempts_of(history.events)
    for attempt in attempts:
        if not attempt.left:
            continue
        evidence = yield from _left(attempt)
        if evidence is not None:
            said = observing.sealed(evidence, draw.salts[:SALT_BYTES])
            observed = rules.observe(evidence, said.line, said.body, action.contract, jitter=draw.jitter)
            rule = rules.while_left(attempt.number, observed)
            reply = yield Amend(operation=history.operation.id, rule=rule)
            assert isinstance(reply, Amended | Declined)  # noqa: S101 - an Amend has no third answer
            history = reply.history or history
    return history


def _left(attempt: Attempt) -> Plan[Evidence | None]:
    """The evidence of an attempt left behind; None while its worker may still report."""
    hand = yield Hand(attempt)
    dead = hand == DEAD
    if not dead:
        if attempt.finding is not None:
            return None  # unknown is on record; only proof of death would add to it
        # Also of a worker that is alive: its claim may have been acknowledged to nobody, or it is paused.
        now = yield Now()
        if now <= attempt.deadline:
            return None
    left = Evidence(
        source=Source.TRANSPORT,
        finding=Finding.UNKNOWN,
        attempt=attempt.number,
        quiesced=dead,
        rule="house.worker_dead" if dead else "house.deadline_passed",
        reason="worker_died" if dead else "deadline_passed",
    )
    return observing.dated(left, (yield Uptime())) if dead else left


def work(history: History, order: Order, draw: Draw, *, by: str) -> Plan[Ended]:
    """Do the next automatic step: recover, look, follow, replay, send what was approved, or hand it to a person."""
    action = order.action
    history = yield from recover(history, action, draw)
    match history.operation.step:
        case schedule.LOOK | schedule.FOLLOW as step:
            if step == schedule.FOLLOW:
                ended = yield from follow(history, action, draw, by=by)
            else:
                ended = yield from reconcile(history, action, draw, asked=False, by=by)
            stuck = bool(ended.because) and not looking.LATER.intersection(ended.because)
        case schedule.REPLAY:
            ended = yield from further(order, draw, history, automatic=True)
            stuck = ended.standing is not Standing.NEW and patience.NOT_YET not in ended.because
        case schedule.DISPATCH:
            return (yield from _sent_or_ended(history, order, draw))
        case schedule.APPROVE | schedule.CALL:
            return (yield from _ended(history))
        case _:
            return stands(history)
    return (yield from _hand_over(ended, action)) if stuck else ended


def _sent_or_ended(history: History, order: Order, draw: Draw) -> Plan[Ended]:
    """Send what was approved, while it is; its end is recorded before a refused check or a hold could keep it off."""
    now = yield Now()
    if now > history.operation.due_at:
        return (yield from _ended(history))
    return (yield from further(order, draw, history, automatic=True))


def _ended(history: History) -> Plan[Ended]:
    """Nobody answered in time, or whoever asked did not come again: that is on record as itself."""
    reply = yield Amend(operation=history.operation.id, rule=expire())
    assert isinstance(reply, Amended | Declined)  # noqa: S101 - an Amend without a claim has no third answer
    return stands(reply.history or history)


def _hand_over(ended: Ended, action: Action) -> Plan[Ended]:
    """The step that was owed cannot be taken: the next one, or a person, with the reasons on record."""
    reply = yield Amend(operation=ended.operation.id, rule=rules.hand_over(action.contract, ended.because))
    assert isinstance(reply, Amended | Declined)  # noqa: S101 - an Amend has no third answer
    after = reply.history.operation if reply.history else ended.operation
    return msgspec.structs.replace(ended, operation=after)


def order_of(history: History, action: Action) -> Order:
    """The order of a stored operation, as it was frozen: nothing of it is taken from the present."""
    o = history.operation
    intent = Intent(
        tenant=o.tenant, actor=o.actor, action=o.action, account=o.account,
        destination=destination_of(history.events, action.destination), key=o.key,
        payload=frozen_payload(history) or b"", fingerprint=o.fingerprint, effect=o.effect,
    )  # fmt: skip
    return Order(intent=intent, action=action, value=o.value)
