"""Everything a contract must come through: what goes wrong on the way, at the provider, and in what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from counterfoil.domain.answer import Replied
from counterfoil.domain.contract import Contract
from counterfoil.domain.reach import repeats
from counterfoil.lab.behaviour.model import Behaviour
from counterfoil.lab.behaviour.natures import natures
from counterfoil.lab.behaviour.service import Fate
from counterfoil.lab.behaviour.showing import CLEAR, Sight
from counterfoil.lab.catalogue.bench import DELIVERY_SECONDS
from counterfoil.lab.catalogue.crossing import Crossing

HOUR = 3600.0
LATEST_SECONDS = 17 * HOUR
"""Where nobody assumes how late a request may be, it is as late as three quarters of a day's retention."""
BECOMES_SECONDS = 90.0
"""Between the first look and the second: one shows it open, the other how it ends."""
BROKEN = Sight(broken=True)
LOST = Crossing(arrives=(), answered=False)
UNHEARD = Crossing(answered=False)
BROKE = Crossing(reset=True)
BETWEEN: tuple[Replied, ...] = (
    Replied(status=200, headers=(("content-type", "text/html"),), body=b"<!doctype html><title>One moment</title>"),
    *(Replied(status=status, headers=(("content-type", "text/html"),), body=b"<h1>Error</h1>")
      for status in (408, 429, 500, 502, 503, 504)),
)  # fmt: skip
"""What anything between us and the provider may answer, whether the request has gone through or not."""


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which things go."""

    scenario: str
    nature: Behaviour
    script: tuple[Crossing, ...] = ()
    sight: Sight = CLEAR
    assumed: bool = True
    away: float = 0.0
    """Seconds in which no worker runs."""
    other: tuple[str, Any] | None = None
    """Somebody else's request with this difference came first, under the very same key and name."""
    elsewhere: bool = False
    """What there is of it stands in another account, and that is what is looked at."""
    ended: bool = False
    """What came of it ends at once."""
    turns: bool = False
    """What is left open turns into the effect in the end."""
    fenced: bool = False
    """A person fences it off, once its call has come back."""
    becomes: str = ""
    """The state that what is left open is in after `BECOMES_SECONDS`, and from then on."""


def cases(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """Every case, those that most contracts would fail first."""
    for scenario in SCENARIOS.values():
        yield from scenario(contract, behaviour)


def _answered(_: Contract, behaviour: Behaviour) -> Iterator[Case]:
    (nature,) = natures(behaviour)
    yield Case("answered", nature)


def _lost_request(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    (nature,) = natures(behaviour)
    for sight in _sights(contract):
        yield Case("lost_request", nature, (LOST,), sight)


def _lost_response(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    for nature in _repeated(contract, behaviour, "same", "retention"):
        for sight in _sights(contract):
            yield Case("lost_response", nature, (UNHEARD,), sight)
    yield Case("lost_response", next(natures(behaviour)), (BROKE,))


def _late_arrival(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """The first comes while others look for it, or after a second one has come."""
    deadline = contract.send_deadline_seconds
    for nature in _repeated(contract, behaviour, "same", "retention"):
        for late, assumed in (
            (deadline + 5.0, True), (deadline + DELIVERY_SECONDS - 1.0, True), (HOUR, False), (LATEST_SECONDS, False),
        ):  # fmt: skip
            for sight in _sights(contract):
                first = Crossing(arrives=(late,), answered=False)
                yield Case("late_arrival", nature, (first, UNHEARD), sight, assumed)


def _key_expiry(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """The worker comes back when the key has ended, or ends before the repeat is there."""
    for nature in natures(behaviour, "retention"):
        retention = nature.key.retention
        if isinstance(retention, str) or nature.key.at == "none":
            continue
        late = Crossing(arrives=(2.0,), answered=False)
        for assumed in (True, False):
            yield Case("key_expiry", nature, (UNHEARD,), BROKEN, assumed, retention + 1.0)
            if retention > contract.send_deadline_seconds:
                yield Case("key_expiry", nature, (UNHEARD, late), BROKEN, assumed, retention - 1.0)


def _mismatch(_: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """The key is bound to somebody else's request already."""
    if behaviour.key.at == "none":
        return
    for nature in natures(behaviour, "other"):
        for where, value in behaviour.played.differs.items():
            yield Case("mismatch", nature, other=(where, value))


def _concurrent(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """It is written twice on the way, or a repeat comes while the first is still being done."""
    quick, slow = Fate(slow=0.1), Fate(slow=contract.send_deadline_seconds + 40.0)
    for nature in natures(behaviour, "in_flight"):
        yield Case("concurrent_duplicate", nature, (Crossing(arrives=(0.0, 0.01), fate=quick),))
    for nature in natures(behaviour, "same"):
        yield Case("concurrent_duplicate", nature, (Crossing(arrives=(0.0, 0.15)),))
    for nature in _repeated(contract, behaviour, "in_flight", "same"):
        yield Case("concurrent_duplicate", nature, (Crossing(fate=slow, answered=False),), BROKEN)


def _replayed_error(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """It ends in an error, with an effect or without; so do its repeats, or they do not."""
    for nature in _repeated(contract, behaviour, "after_error", "same"):
        for told in behaviour.answers.errors:
            for works in (True, False):
                for sight in _sights(contract):
                    first = Crossing(fate=Fate(told=told, works=works))
                    yield Case("replayed_error", nature, (first,), sight)
    (nature,) = natures(behaviour)
    for reply in BETWEEN:
        for arrives in ((0.0,), ()):
            yield Case("replayed_error", nature, (Crossing(arrives=arrives, instead=reply),))


def _refused(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """It is refused, or its repeat is, which says nothing of the first."""
    (nature,) = natures(behaviour)
    for told in behaviour.answers.refusals:
        refused = Crossing(fate=Fate(told=told, works=False))
        yield Case("refused", nature, (refused,))
        if repeats(contract):
            yield Case("refused", nature, (UNHEARD, refused), BROKEN)


def _eventual_read(_: Contract, behaviour: Behaviour) -> Iterator[Case]:
    for nature in natures(behaviour, "consistency", "pages"):
        if any(look.consistency == "eventual" for look in nature.looks):
            yield Case("eventual_read", nature, (UNHEARD,), Sight(behind=True))
        if any(look.pages == "short" for look in nature.looks):
            yield Case("eventual_read", nature, (UNHEARD,), Sight(short=True))


def _foreign(_: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """Something of somebody else stands where ours would."""
    (nature,) = natures(behaviour)
    if not nature.looks:
        return
    for where, value in behaviour.played.differs.items():
        yield Case("foreign_object", nature, (LOST, LOST, LOST), other=(where, value))
    if says_whose(behaviour):
        yield Case("foreign_object", nature, (LOST, LOST, LOST), Sight(outsider=True), elsewhere=True)
        yield Case("foreign_object", nature, (UNHEARD,), Sight(outsider=True))


def _other_state(_: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """What comes of it is there, and is not, or not yet, what was promised."""
    (nature,) = natures(behaviour)
    for state, is_effect in behaviour.states.items():
        if is_effect == "done":
            continue
        for answered in (True, False):
            for turns in (True, False) if is_effect == "open" else (False,):
                once = Crossing(answered=answered, fate=Fate(state=state))
                yield Case("other_state", nature, (once,), turns=turns)


def _followed(_: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """What is left open ends, in each way in which it may."""
    (nature,) = natures(behaviour)
    opened = [state for state, is_effect in behaviour.states.items() if is_effect == "open"]
    ends = [state for state, is_effect in behaviour.states.items() if is_effect != "open"]
    for state in opened:
        for end in ends:
            for answered in (True, False):
                once = Crossing(answered=answered, fate=Fate(state=state))
                yield Case("followed", nature, (once,), becomes=end)


def _fenced(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """A fence comes before the original, after it, or beside it, and its own answer may be lost."""
    late = Crossing(arrives=(contract.send_deadline_seconds + 20.0,), answered=False)
    for nature in natures(behaviour, "other", "in_flight") if contract.fences else ():
        for first in (LOST, UNHEARD, late):
            for fence in (Crossing(), UNHEARD, LOST, BROKE):
                yield Case("fenced", nature, (first, fence), fenced=True)


def _ended(contract: Contract, behaviour: Behaviour) -> Iterator[Case]:
    """It happened, and what came of it has ended when somebody looks, or repeats."""
    for nature in natures(behaviour, "ends"):
        if nature.ends != "never":
            for sight in _sights(contract):
                yield Case("ended", nature, (UNHEARD,), sight, ended=True)


def _repeated(contract: Contract, behaviour: Behaviour, *varied: str) -> Iterator[Behaviour]:
    """How repeats are taken differs only where any can be made."""
    return natures(behaviour, *(varied if repeats(contract) else ()))


def _sights(contract: Contract) -> tuple[Sight, ...]:
    """Reads that fail leave nothing but a repeat, where any can be made."""
    return (CLEAR, BROKEN) if repeats(contract) else (CLEAR,)


def says_whose(behaviour: Behaviour) -> bool:
    """Whether what is shown names its account; where it does not, the credentials alone say whose it is."""
    return any("$account" in repr((look.item, look.found)) for look in behaviour.looks)


SCENARIOS = {
    "answered": _answered,
    "lost_request": _lost_request,
    "lost_response": _lost_response,
    "late_arrival": _late_arrival,
    "key_expiry": _key_expiry,
    "mismatch": _mismatch,
    "concurrent_duplicate": _concurrent,
    "replayed_error": _replayed_error,
    "refused": _refused,
    "eventual_read": _eventual_read,
    "foreign_object": _foreign,
    "other_state": _other_state,
    "followed": _followed,
    "fenced": _fenced,
    "ended": _ended,
}
"""Each scenario by its name."""
