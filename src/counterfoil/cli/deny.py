"""`counterfoil deny ID`: answer no, for good; it is never sent."""

from __future__ import annotations

import argparse

from counterfoil.cli import deciding


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where the answer is on record."""
    return deciding.decide(
        asked, "deny it, for good", lambda decisions, operation, who: decisions.deny(operation, **who)
    )
