"""`counterfoil abandon ID`: stop working on an unresolved operation; its outcome and its hold stay what they are."""

from __future__ import annotations

import argparse

from counterfoil.cli import deciding


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where it is on record, although the operation stays unresolved."""
    return deciding.decide(
        asked,
        "stop working on it; its outcome stays what it is, and so does what it holds",
        lambda decisions, operation, who: decisions.abandon(operation, **who),
    )
