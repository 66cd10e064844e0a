"""What a contract lets anybody conclude or do at all, by the house's own rules and in the kindest circumstances."""

from __future__ import annotations

from counterfoil.domain.absence import absence
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.contract import Consistency, Contract, Look
from counterfoil.domain.reading import Reading, ReadingKind
from counterfoil.domain.retry import Situation, decide_retry
from counterfoil.domain.sure import believed, is_sure
from counterfoil.domain.words import Basis, Discrepancy, Finding

INCOMPLETE = "it never says that it shows everything"


def why_no_repeat(contract: Contract) -> tuple[str, ...]:
    """Why the same key is never sent again without a person's decision; empty where it may be.

    Asked right after the first was lost, with its worker gone and a delivery that takes no time.
    """
    lost = Attempt(
        number=1, token="", started_at=0.0, send_seconds=contract.send_deadline_seconds, finding=Finding.UNKNOWN,
        quiesced=True,
    )  # fmt: skip
    situation = Situation(
        contract=contract, attempts=(lost,), discrepancy=Discrepancy.NONE, now=0.0, longest_delivery=0.0
    )
    decision = decide_retry(situation, automatic=False, basis=Basis.SAME_KEY_REPLAY)
    return () if decision.allowed else decision.because


def why_no_absence(look: Look) -> tuple[str, ...]:
    """Why nothing that this look does not find is ever proven absent; empty where it may be.

    Args:
        look: as far as its source is to be believed.
    """
    controlled = "none" not in (look.controls.positive, look.controls.negative)
    reading = Reading(kind=ReadingKind.ABSENT, positive_control=controlled, negative_control=controlled)
    verdict = absence(
        look=look, reading=reading, looked_at=float("inf"), elapsed=float("inf"), deadline=0.0, longest_delivery=0.0,
        quiesced=True,
    )  # fmt: skip
    return verdict.missing + ((INCOMPLETE,) if look.complete in ("unknown", False) else ())


def repeats(contract: Contract) -> bool:
    """The same key may be sent again without a person's decision."""
    return not why_no_repeat(contract)


def may_find(look: Look) -> bool:
    """Something it shows can be ours: account, reference and content can all agree; else it is a candidate at most."""
    match = look.match
    compares = bool(match.material) or match.text is not None or match.noted
    return compares and "unknown" not in (match.account, match.reference)


def finds_at_all(contract: Contract) -> bool:
    """A look may show what was lost on the way back."""
    return contract.reconcile == "allowed" and any(map(may_find, contract.looks))


def finds(contract: Contract) -> bool:
    """What was lost on the way back can be found, by a look of which it is known what it shows."""
    known = [look for look in contract.looks if look.consistency is not Consistency.UNKNOWN and may_find(look)]
    return contract.reconcile == "allowed" and bool(known)


def disproves(contract: Contract) -> bool:
    """That nothing happened can be proven: by a look, or by a fence."""
    return disproves_by_fence(contract) or disproves_by_look(contract)


def disproves_by_fence(contract: Contract) -> bool:
    """The same of fences alone."""
    return any(is_sure(contract, fence) for fence in contract.fences)


def disproves_by_look(contract: Contract) -> bool:
    """The same of looks alone."""
    return contract.reconcile == "allowed" and any(
        not why_no_absence(believed(contract, look)) for look in contract.looks
    )


def documented(contract: Contract) -> bool:
    """Key, retention and what another payload under the key does are all known."""
    protection = contract.protection
    known = protection.kind.value not in ("none", "unknown") and protection.carrier not in ("none", "unknown")
    return known and protection.retention_seconds != "unknown" and contract.repeat.other_payload != "unknown"
