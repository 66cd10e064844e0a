"""`counterfoil show ID`: the receipt: what was authorized, attempted, observed, is unknown, and may be done next."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser
from counterfoil.cli.named import whole
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import History

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.operation_argument(verb)
    verb.add_argument("--payload", action="store_true", help="with the payload, and what replays return")
    verb.add_argument("--all", action="store_true", help="with every basis of another attempt, and why it is blocked")
    parser.store_option(verb)
    parser.actions_option(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    from counterfoil.cli.opening import for_reading
    from counterfoil.cli.terminal import console, print_json

    with for_reading(asked) as ledger:
        history = readable(ledger, asked.operation)
        if asked.json:
            from counterfoil.cli.list import read
            from counterfoil.runtime.export import document

            outcome = read(ledger, history.operation).outcome
            refused = ledger.store.refusals(history.operation.n)
            undone = ledger.compensated_by(history)
            print_json(
                document(history, outcome=outcome, payload=asked.payload, refused=refused, compensated_by=undone)
            )
            return exits.DONE
        from counterfoil.cli.hint import hints
        from counterfoil.cli.marks import Legible
        from counterfoil.cli.sheet import Sheet

        out = console()
        sheet = Sheet(
            ledger, history, hints(asked, ledger.store.path), payload=asked.payload, whole=asked.all,
            actions=asked.actions or os.environ.get(parser.ACTIONS, ""),
        )  # fmt: skip
        out.print(Legible(sheet.page(out.width)))
    return exits.DONE


def readable(ledger: Ledger, named: str) -> History:
    """Read one operation by its id or a beginning of it.

    Raises:
        NoSuchOperation: no operation has it.
        BadValue: the beginning fits more than one, or is too short.
        InvariantBroken: a record of it cannot be read.
    """
    from counterfoil.domain.audit import audit
    from counterfoil.domain.violation import Law

    operation = whole(ledger, named)
    try:
        history = ledger.history(operation)
    except ValueError as error:  # a word that is none of the house's
        raise InvariantBroken(f"{operation}: {error}") from error
    broken = next((v for v in audit(history) if v.law is Law.RECORD), None)
    if broken is not None:
        raise InvariantBroken(f"{broken.operation} event {broken.seq}: {broken.problem}")
    if not history.events:
        raise InvariantBroken(f"{history.operation.id} has no events")
    return history
