"""`counterfoil investigate ID --channel TEXT`: record by which other way it is looked into."""

from __future__ import annotations

import argparse

from counterfoil.cli import deciding, parser
from counterfoil.cli.terminal import safe
from counterfoil.domain.care import LOOKS_GRANTED_MAX


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)
    verb.add_argument(
        "--channel", metavar="TEXT", required=True, help='by which way, e.g. "the provider\'s support, ticket 4711"'
    )
    verb.add_argument("--whom", metavar="NAME", default="", help="who looks (default: whoever decides)")
    verb.add_argument(
        "--looks", metavar="N", type=parser.count(0, LOOKS_GRANTED_MAX), default=0,
        help="reads to add to its budget (default 0)",
    )  # fmt: skip


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where it is on record."""
    reads = f", with {asked.looks} more reads" if asked.looks else ""
    return deciding.decide(
        asked,
        f"record that it is looked into by {safe(asked.channel)}{reads}",
        lambda decisions, operation, who: decisions.investigate(
            operation, channel=asked.channel, whom=asked.whom, looks=asked.looks, **who
        ),
        knows=deciding.know_contract if asked.looks else None,
    )
