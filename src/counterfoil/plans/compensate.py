"""Link a compensation to what it undoes, before it is claimed."""

from __future__ import annotations

from counterfoil.domain import compensation
from counterfoil.domain.action import Order
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.errors import BadValue
from counterfoil.plans.effects import Plan


def announce(order: Order) -> Plan[None]:
    """Note on the operation that an order undoes that it is about to be; the same order again notes nothing.

    Raises:
        BadValue: it is not known to have happened, or is another tenant's; nothing was sent.
    """
    reply = yield Amend(operation=order.compensates, rule=compensation.ask(order.intent))
    assert isinstance(reply, Amended | Declined)  # noqa: S101 - an Amend without a claim has no third answer
    if isinstance(reply, Declined) and reply.because != (compensation.ALREADY,):
        raise BadValue("compensates", order.compensates, wanted="; ".join(reply.because))
