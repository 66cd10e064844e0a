"""What a contract makes possible at all, by the product's own word and in the kindest of circumstances."""

from __future__ import annotations

from counterfoil.domain.absence import absence
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.contract import Contract, Look
from counterfoil.domain.reading import Reading, ReadingKind
from counterfoil.domain.retry import Situation, decide_retry
from counterfoil.domain.words import Basis, Discrepancy, Finding


def repeats(contract: Contract) -> bool:
    """Whether the same key may ever be sent again without a person's decision."""
    return not why_no_repeat(contract)


def why_no_repeat(contract: Contract) -> tuple[str, ...]:
    """Why a repeat is refused right after the first was lost, with every earlier worker dead; empty where it is not."""
    lost = Attempt(
        number=1, token="", started_at=0.0, send_seconds=contract.send_deadline_seconds, finding=Finding.UNKNOWN,
        quiesced=True,
    )  # fmt: skip
    situation = Situation(
        contract=contract, attempts=(lost,), discrepancy=Discrepancy.NONE, now=0.0, longest_delivery=0.0,
    )  # fmt: skip
    decision = decide_retry(situation, automatic=False, basis=Basis.SAME_KEY_REPLAY)
    return () if decision.allowed else decision.because


def why_no_absence(look: Look) -> tuple[str, ...]:
    """Why nothing that this look does not find is ever proven absent; empty where it may be."""
    controlled = "none" not in (look.controls.positive, look.controls.negative)
    reading = Reading(kind=ReadingKind.ABSENT, positive_control=controlled, negative_control=controlled)
    verdict = absence(
        look=look, reading=reading, looked_at=float("inf"), deadline=0.0, longest_delivery=0.0, quiesced=True
    )
    incomplete = ("it never says that it shows everything",) if look.complete in ("unknown", False) else ()
    return verdict.missing + incomplete
