"""`counterfoil show ID`: the receipt: what was authorized, attempted, observed, is unknown, and may be done next."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser
from counterfoil.domain.errors import BadValue, InvariantBroken, NoSuchOperation
from counterfoil.domain.event import History
from counterfoil.domain.identifier import row_number

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

NAMED_MAX = 4
"""Candidates named where a prefix fits more than one operation."""
PREFIX_CHARS_MIN = 4
"""After `op_`: a shorter one is a slip of the keyboard."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verb.add_argument("operation", metavar="ID", help="its id, op_..., or the beginning of it that fits no other")
    verb.add_argument("--payload", action="store_true", help="with the payload, and what replays return")
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
            print_json(document(history, outcome=outcome, payload=asked.payload))
            return exits.DONE
        from counterfoil.cli.marks import Legible
        from counterfoil.cli.sheet import Sheet

        out = console()
        sheet = Sheet(ledger, history, payload=asked.payload)
        out.print(Legible(sheet.page(out.width)))
    return exits.DONE


def readable(ledger: Ledger, named: str) -> History:
    """Read one operation by its id or a beginning of it.

    Raises:
        NoSuchOperation: no operation has it.
        BadValue: the beginning fits more than one, or is too short.
        InvariantBroken: a record of it cannot be read.
    """
    from counterfoil.domain.audit import Law, audit

    operation = _whole(ledger, named)
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


def _whole(ledger: Ledger, named: str) -> str:
    """The one id that begins like this."""
    prefix = named if named.startswith("op_") else f"op_{named}"
    if row_number(prefix) is not None:
        return prefix
    if len(prefix) < PREFIX_CHARS_MIN + len("op_"):
        raise BadValue("ID", named, wanted=f"an operation's id, or at least {PREFIX_CHARS_MIN} characters of it")
    rows = ledger.store.query(
        "SELECT id FROM operation WHERE substr(id, 1, ?) = ? ORDER BY n LIMIT ?", (len(prefix), prefix, NAMED_MAX + 1)
    )
    found = [str(row[0]) for row in rows]
    if not found:
        raise NoSuchOperation(named)
    if len(found) > 1:
        more = " and more" if len(found) > NAMED_MAX else ""
        raise BadValue("ID", named, wanted=f"it fits {', '.join(found[:NAMED_MAX])}{more}; write more of it")
    return found[0]
