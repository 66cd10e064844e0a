"""`counterfoil release ID`: lift a hold, so that its caller may ask again; nothing is sent by it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from counterfoil.cli import deciding

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.receipt import Receipt


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where the hold is lifted, 1 where it takes more people still."""
    return deciding.decide(
        asked,
        "let it go beside what holds it, which may be a second effect",
        lambda decisions, operation, who: decisions.release(operation, **who),
        knows=deciding.know_terms,
        done=_lifted,
    )


def _lifted(ledger: Ledger, receipt: Receipt) -> bool:
    """Whether nothing holds it back any more: it may go beside every one that is unresolved now."""
    from counterfoil.domain.override import holding

    held = receipt.operation
    terms = ledger.registered_for(held.id).terms(held.value)
    holders = tuple(o.id for o in ledger.store.holders(held.effect))
    return not holding(ledger.history(held.id), holders, terms)
