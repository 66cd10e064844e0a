"""After a success: whether what a look shows is what the answer promised; it may contradict, and never lowers it."""

from __future__ import annotations

import msgspec

from counterfoil.domain.care import looks_granted
from counterfoil.domain.command import Amendment, Declined, NewEvent, Rule
from counterfoil.domain.contract import Consistency, Contract, Look
from counterfoil.domain.event import EventKind, History, Noted, encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.looking import paid_facts
from counterfoil.domain.reading import ReadingKind
from counterfoil.domain.words import Finding, Outcome

NOT_THERE = "not_there"
"""A look that shows every write answered before it does not show this one."""
NOT_SUCCEEDED = "only a success without an open question is confirmed"
NO_LOOK = "the contract allows no look"
SPENT = "the read budget is spent"


def pay(contract: Contract, look: int, *, by: str) -> Rule:
    """Count one read of a success before it is made; from the same budget as every other read.

    Args:
        contract: its read budget.
        look: which of its looks.
        by: who reads.
    """

    def rule(history: History, now: float) -> Amendment | Declined:
        del now
        operation = history.operation
        most = contract.read_budget.looks_max + looks_granted(history.events)
        failed = {
            NOT_SUCCEEDED: operation.outcome is not Outcome.SUCCEEDED or bool(operation.unresolved),
            NO_LOOK: contract.reconcile != "allowed",
            SPENT: operation.looks >= most,
        }
        because = tuple(reason for reason, fails in failed.items() if fails)
        if because:
            return Declined(because=because)
        paid = msgspec.structs.replace(operation, looks=operation.looks + 1)
        facts = paid_facts(contract, look, by=by, used=paid.looks, of=most)
        note = Noted(note="look", facts=facts, steady=history.read)
        return Amendment(operation=paid, events=(NewEvent(kind=EventKind.LOOKING, record=encode(note)),))

    return rule


def judged(evidence: Evidence, look: Look) -> Evidence:
    """Say of what a look found after a success whether it contradicts that; what may only lag behind does not.

    Args:
        evidence: as the look's own rules make it.
        look: the contract's clause.
    """
    kind, facts = evidence.rule.rpartition(".")[2], evidence.facts
    strong = look.consistency is Consistency.STRONG
    controlled = bool(facts.get("positive_control") and facts.get("negative_control"))
    unseen = kind == ReadingKind.ABSENT and strong and look.authoritative is True and controlled
    other_state = kind == ReadingKind.CANDIDATE and evidence.reason == "other_state" and strong
    if evidence.finding is not Finding.UNKNOWN or not (unseen or other_state or kind == ReadingKind.FOREIGN):
        return evidence
    return msgspec.structs.replace(evidence, contradicts=True, reason=evidence.reason or NOT_THERE)
