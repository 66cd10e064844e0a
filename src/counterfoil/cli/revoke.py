"""`counterfoil revoke ID`: take permission back; what was claimed before may finish."""

from __future__ import annotations

import argparse

from counterfoil.cli import deciding


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where it is on record."""
    return deciding.decide(
        asked,
        "take its permission back, for good",
        lambda decisions, operation, who: decisions.revoke(operation, **who),
    )
