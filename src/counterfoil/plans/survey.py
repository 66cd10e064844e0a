"""Read everything that a contract's list shows in one account, for no operation's sake: nothing is recorded of it."""

from __future__ import annotations

import msgspec

from counterfoil.domain.action import Action, Draw
from counterfoil.domain.listing import Listed, listed
from counterfoil.domain.page import next_page
from counterfoil.domain.template import Names
from counterfoil.plans.effects import Look, Plan
from counterfoil.plans.reconcile import LOOK_SECONDS_MAX
from counterfoil.ports.provider import LookOrder

PAGES_MAX = 100
"""Of one list: what is longer is said to be incomplete."""


def survey(action: Action, draw: Draw, *, look: int, payload: bytes) -> Plan[Listed]:
    """Make one list look, page by page, and return what it shows.

    Args:
        action: its contract names the look, and its credentials say whose account it is.
        draw: a random reference, for a request that asks for one.
        look: which of the contract's looks.
        payload: canonical JSON of the fields by which the list is asked for.
    """
    clause, asked, found = action.contract.looks[look], {""}, Listed()
    names = Names(control=action.control, negative=draw.negative)
    while len(asked) <= PAGES_MAX:
        order = LookOrder(
            account=action.account, destination=action.destination, payload=payload, look=look,
            names=names, deadline_seconds=LOOK_SECONDS_MAX,
        )  # fmt: skip
        answers = yield Look(action=action, order=order)
        page = listed(clause, answers[0], action.account) if answers else Listed(reason="not_made")
        found = Listed(things=(*found.things, *page.things), reason=page.reason)
        cursor = next_page(clause, answers[0]) if answers else ""
        if cursor in asked:  # none, or one that leads in a circle
            break
        asked.add(cursor)
        names = msgspec.structs.replace(names, cursor=cursor)
    return found
