"""Fences, put to the test: what the provider answers to one must say which of the two came first."""

from __future__ import annotations

from counterfoil.domain import reply
from counterfoil.domain.canonical import canonical
from counterfoil.domain.contract import Contract, Fence
from counterfoil.lab.behaviour.model import Behaviour
from counterfoil.lab.behaviour.natures import natures
from counterfoil.lab.behaviour.service import Service
from counterfoil.lab.catalogue.clock import Clock
from counterfoil.lab.catalogue.crossing import Crossings

KEY = "op_" + "f5" * 16
"""As long as the ledger's own, so that it has a UUID too."""


def fences(contract: Contract, behaviour: Behaviour) -> list[str]:
    """Each way in which a fence's answer is wrong: it has won and the original takes place, or lost and nothing did."""
    found = []
    for nature in natures(behaviour, "other"):
        for fence in contract.fences:
            found += [said for first in (True, False) if (said := _unsafe(contract, nature, fence, first=first))]
    return found


def _unsafe(contract: Contract, nature: Behaviour, fence: Fence, *, first: bool) -> str:
    """Send the fence before or after the original."""
    service = Service(nature)
    crossings = Crossings(contract, service, Clock())
    payload, account = canonical(nature.played.payload), nature.played.account
    assert contract.request is not None  # noqa: S101 - only such a contract is played
    original = crossings.asked(crossings.rendered(contract.request, payload, KEY, account), account, 1)
    barrier = crossings.asked(crossings.rendered(fence.request, payload, KEY, account), account)
    if original is None or barrier is None:
        return "it goes where the provider has no route"
    order = (barrier, original) if first else (original, barrier)
    answers = [service.arrive(asked, float(at))[0] for at, asked in enumerate(order)]
    status = answers[0 if first else 1].status
    happened = any(effect.wire for effect in service.effects)
    if reply.matches(status, fence.won) and happened:
        return "a fence says that it has won, and the original takes place"
    if first and not reply.matches(status, fence.won):
        return "a fence that came first is not said to have won"
    if reply.matches(status, fence.lost) and not happened:
        return "a fence says that it has lost, and nothing took place"
    return ""
