"""`counterfoil approve ID`: show exactly what is asked, and allow that; nothing is sent by it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from counterfoil.cli import deciding
from counterfoil.domain.words import Permission

if TYPE_CHECKING:
    from counterfoil.domain.event import History
    from counterfoil.runtime.ledger import Ledger


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    deciding.add(verb)
    verb.add_argument(
        "--bound", metavar="ab1:...",
        help="the binding of what was seen, as `show --json` says it; default: of what is shown now",
    )  # fmt: skip


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where it may go now, 1 where it takes more people still."""
    return deciding.decide(
        asked,
        "allow exactly this",
        lambda decisions, operation, who: decisions.approve(operation, **who, bound=asked.bound),
        before=lambda ledger, history: _shown(ledger, history, quiet=asked.json and asked.decider is not None),
        done=lambda _, receipt: receipt.permission is Permission.AUTHORIZED,
    )


def _shown(ledger: Ledger, history: History, *, quiet: bool) -> None:
    """Show the question on standard error: it is what the person decides about, and no part of the answer.

    Raises:
        InvariantBroken: what is on record is not whole; nobody can say what would be approved.
    """
    from counterfoil.cli.asking import page
    from counterfoil.cli.marks import Legible
    from counterfoil.cli.terminal import console
    from counterfoil.domain.audit import audit
    from counterfoil.domain.decision import authority
    from counterfoil.domain.errors import InvariantBroken

    broken = next(iter(audit(history)), None)
    if broken is not None:
        raise InvariantBroken(f"{broken.operation} event {broken.seq}: {broken.problem}")
    standing = authority(history)
    if standing.proposed is not None and not quiet:
        holders = [o.id for o in ledger.store.holders(history.operation.effect) if o.id != history.operation.id]
        console(sys.stderr).print(Legible(page(history, standing, now=ledger.store.now(), holders=holders)))
