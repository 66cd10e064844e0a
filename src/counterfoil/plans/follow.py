"""Follow what was accepted to the end that its contract names: budgeted looks, and after the deadline a person."""

from __future__ import annotations

from counterfoil.domain import rules
from counterfoil.domain.action import Action, Draw
from counterfoil.domain.event import History
from counterfoil.plans.dispatch import stands
from counterfoil.plans.effects import Ended, Now, Plan
from counterfoil.plans.reconcile import reconcile

FOLLOWED = "it was followed until the contract's deadline, and how it ends was not seen"


def follow(history: History, action: Action, draw: Draw, *, by: str) -> Plan[Ended]:
    """Look once for how it ends; past the deadline nothing is read and its outcome stays `accepted`.

    Args:
        history: the operation as it stands.
        action: its action; its contract names the ends and the looks that show them.
        draw: a random reference for the negative control, and salts.
        by: who looks.
    """
    now = yield Now()
    if now > rules.followed_until(history, action.contract):
        return stands(history, because=(FOLLOWED,))
    return (yield from reconcile(history, action, draw, asked=False, by=by))
