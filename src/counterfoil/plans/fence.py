"""Make the original impossible, because a person decided it: one other write, recorded before its first byte."""

from __future__ import annotations

from counterfoil.domain.action import Asked, Draw, Order
from counterfoil.domain.event import History
from counterfoil.domain.payload import gone_said
from counterfoil.plans.dispatch import ELSEWHERE, again, stands
from counterfoil.plans.effects import Ended, Plan


def fence(order: Order, draw: Draw, history: History, *, asked: Asked) -> Plan[Ended]:
    """Send one fence of the contract, once, under a claim and a permission of its own; unanswered it is unknown itself.

    Args:
        order: the stored operation's.
        draw: salts, and the fence's own token.
        history: the operation as it stands.
        asked: the person who decided it, why, and which of the contract's fences it is.
    """
    if not stands(history).sendable:
        return stands(history, because=gone_said(history))
    intent = order.intent
    if (order.action.tenant, order.action.account) != (intent.tenant, intent.account):
        return stands(history, because=(ELSEWHERE,))
    return (yield from again(order, draw, history, asked=asked))
