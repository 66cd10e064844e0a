"""What a provider shows of what is in it: to whom, how late, and how much at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterfoil.domain.answer import Replied
from counterfoil.lab.behaviour.asked import Asked, at, fill, referred
from counterfoil.lab.behaviour.model import Shown, Told
from counterfoil.lab.behaviour.service import Service, Thing, reply, values_of

OUTSIDER = "acct_other"
NEXT = "next"
"""The cursor of the one page there is after a short one: it shows all that is there."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What becomes of one look."""

    behind: bool = False
    """It shows nothing that is newer than the account itself, where the provider's reads may lag."""
    outsider: bool = False
    """The credentials open another account."""
    short: bool = False
    """What was made of late is on another page, where there may be one."""
    broken: bool = False
    """No read is answered but by an error."""


CLEAR = Sight()
NOT_THERE = Told(status=404)
_BROKEN = Told(status=503)


def show(service: Service, look: Shown, asked: Asked, now: float, sight: Sight = CLEAR) -> Replied:
    """Answer one read."""
    if sight.broken:
        return reply(_BROKEN, {})
    account = OUTSIDER if sight.outsider else asked.account
    if sight.outsider and look.outsider is not None:
        return reply(look.outsider, values_of(asked, None, ""))
    short = sight.short and look.pages == "short" and NEXT not in _given(look.next, asked)
    seen = [t for t in service.things if t.at <= now and _seen(t, account, look, sight, short=short)]
    seen = [t for t in seen if _asked_for(t, look, asked)]
    if look.one:
        return _one(look, asked, seen)
    items = [fill(look.item, values_of(asked, thing, "")) for thing in seen]
    page = {"items": items, "more": short, "whole": not short, "cursor": NEXT if short else None, "account": account}
    return reply(look.found, page)


def _one(look: Shown, asked: Asked, seen: list[Thing]) -> Replied:
    if seen:
        return reply(look.found, values_of(asked, seen[-1], ""))
    return reply(look.absent or NOT_THERE, values_of(asked, None, ""))


def _seen(thing: Thing, account: str, look: Shown, sight: Sight, *, short: bool) -> bool:
    if thing.made.account != account or thing.gone:
        return False
    fresh = thing.at > 0.0
    return not (fresh and (short or (sight.behind and look.consistency == "eventual")))


def _asked_for(thing: Thing, look: Shown, asked: Asked) -> bool:
    values = values_of(asked, thing, "")
    for place, reference in look.by.items():
        wanted = _given(place, asked)
        if wanted and str(referred(reference, values)) not in wanted:
            return False
    return True


def _given(place: str, asked: Asked) -> list[Any]:
    """What a request says at a place; nothing where there is no such place."""
    kind, _, name = place.partition(":")
    if kind == "path":
        return [asked.names[name]]
    found = asked.query.get(name, []) if kind == "query" else at(asked.document, name) if kind == "body" else None
    return found if isinstance(found, list) else [] if found is None else [found]
