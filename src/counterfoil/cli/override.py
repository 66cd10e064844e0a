"""`counterfoil override ID`: decide that one more attempt may go although nothing proves that it is safe."""

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
    """Do it and return the exit code: 0 where nobody else must decide it; nothing is sent by it."""
    return deciding.decide(
        asked,
        "allow one more attempt, which may be a second effect",
        lambda decisions, operation, who: decisions.override(operation, **who),
        knows=deciding.know_both,
        done=_enough,
    )


def _enough(ledger: Ledger, receipt: Receipt) -> bool:
    from counterfoil.domain.override import override_stands

    return override_stands(ledger.history(receipt.id).events)
