"""`counterfoil escalate ID --to NAME`: pass it up to somebody, on record."""

from __future__ import annotations

import argparse

from counterfoil.cli import deciding
from counterfoil.cli.terminal import safe


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)
    verb.add_argument("--to", metavar="NAME", required=True, help="to whom; they are told by you, not by this command")


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where it is on record."""
    return deciding.decide(
        asked,
        f"pass it up to {safe(asked.to)}",
        lambda decisions, operation, who: decisions.escalate(operation, to=asked.to, **who),
    )
