"""Read everything that a contract's list shows in one account, for no operation's sake: nothing is recorded of it."""

from __future__ import annotations

from counterfoil.domain.action import Action, Draw
from counterfoil.domain.listing import Listed, listed
from counterfoil.domain.template import Names
from counterfoil.plans.effects import Look, Plan
from counterfoil.plans.reconcile import LOOK_SECONDS_MAX
from counterfoil.ports.provider import LookOrder


def survey(action: Action, draw: Draw, *, look: int, payload: bytes) -> Plan[Listed]:
    """Make one list look and return what it shows.

    Args:
        action: its contract names the look, and its credentials say whose account it is.
        draw: a random reference, for a request that asks for one.
        look: which of the contract's looks.
        payload: canonical JSON of the fields by which the list is asked for.
    """
    order = LookOrder(
        account=action.account, destination=action.destination, payload=payload, look=look,
        names=Names(control=action.control, negative=draw.negative), deadline_seconds=LOOK_SECONDS_MAX,
    )  # fmt: skip
    answers = yield Look(action=action, order=order)
    if not answers:
        return Listed(reason="not_made")
    return listed(action.contract.looks[look], answers[0], action.account)
