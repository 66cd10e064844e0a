"""`counterfoil wait ID --until WHEN | --for 2h`: put the next step off; no outcome ever comes of waiting."""

from __future__ import annotations

import argparse

from counterfoil.cli import deciding, parser
from counterfoil.domain.care import WAIT_SECONDS_MAX


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)
    when = verb.add_mutually_exclusive_group(required=True)
    when.add_argument(
        "--until",
        metavar="WHEN",
        type=parser.moment,
        help="a time, e.g. 2027-03-01T09:00+01:00; UTC where it does not say",
    )
    when.add_argument("--for", dest="seconds", metavar="2h", type=_seconds, help="so long from now: 90s, 15m, 2h, 3d")


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where it is on record, although the operation stays unresolved."""
    from counterfoil.cli.marks import duration, moment

    said = f"until {moment(asked.until)} UTC" if asked.seconds is None else f"for {duration(asked.seconds)}"
    return deciding.decide(
        asked,
        f"put its next step off {said}",
        lambda decisions, operation, who: decisions.wait_until(
            operation, asked.until if asked.seconds is None else decisions.now() + asked.seconds, **who
        ),
    )


def _seconds(text: str) -> float:
    from counterfoil.runtime.policy_entries import seconds

    found = seconds(text)
    if found is None or not 0 < found <= WAIT_SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no duration such as 90s, 15m, 2h or 3d, of a year at most")
    return found
