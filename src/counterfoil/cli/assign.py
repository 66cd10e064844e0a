"""`counterfoil assign ID OWNER`: name who acts on it from now on."""

from __future__ import annotations

import argparse

from counterfoil.cli import deciding
from counterfoil.cli.terminal import safe


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)
    verb.add_argument("owner", metavar="OWNER", help="who acts on it from now on")


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where it is on record."""
    return deciding.decide(
        asked,
        f"make {safe(asked.owner)} its owner",
        lambda decisions, operation, who: decisions.assign(operation, asked.owner, **who),
    )
