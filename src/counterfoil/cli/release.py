"""`counterfoil release ID`: lift a hold, so that its caller may ask again; nothing is sent by it."""

from __future__ import annotations

import argparse

from counterfoil.cli import deciding


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
        done=lambda _, receipt: not receipt.operation.held_by,
    )
