"""`counterfoil reconcile [ID | --all | --unmatched]`: look now; a look that says nothing leaves everything as it is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser, unmatched

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    which = verb.add_mutually_exclusive_group(required=True)
    which.add_argument("operation", metavar="ID", nargs="?", help="its id, op_..., or its beginning")
    which.add_argument("--all", action="store_true", help="every unresolved operation; one JSON object a line")
    which.add_argument(
        "--unmatched", action="store_true", help="what the provider has and no receipt explains; changes nothing"
    )
    verb.add_argument(
        "--confirm", action="store_true", help="look once at what succeeded: a mismatch opens a discrepancy"
    )
    unmatched.options(verb)
    parser.actions_option(verb)
    parser.store_option(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where everything that was asked about is resolved now."""
    from counterfoil.cli.named import whole
    from counterfoil.cli.opening import for_acting
    from counterfoil.domain.errors import BadValue

    with exits.terminable(), for_acting(asked) as ledger:
        if asked.unmatched:
            return unmatched.report(asked, ledger)
        if asked.operation is not None:
            operation = whole(ledger, asked.operation)
            return _look(ledger, operation, as_json=asked.json, confirm=asked.confirm)
        if asked.confirm:
            raise BadValue("--confirm", "--all", wanted="goes with one ID: every success has its own budget of reads")
        codes = {_try_look(ledger, o.id, as_json=asked.json) for o in ledger.store.unresolved()}
        return exits.most_urgent(codes)


def _try_look(ledger: Ledger, operation: str, *, as_json: bool) -> int:
    """The same where one that cannot be looked at must not keep the others from it."""
    from counterfoil.cli import receipts
    from counterfoil.domain.errors import CounterfoilError, InvariantBroken, ReceiptBroken

    try:
        return _look(ledger, operation, as_json=as_json)
    except CounterfoilError as error:
        if isinstance(error, InvariantBroken) and not isinstance(error, ReceiptBroken):
            raise  # nothing more is done with a store that says what cannot be
        receipts.show_error(operation, error, json=as_json)
        return error.exit_code


def _look(ledger: Ledger, operation: str, *, as_json: bool, confirm: bool = False) -> int:
    from counterfoil.cli import receipts

    receipt = ledger.confirm(operation) if confirm else ledger.reconcile(operation)
    receipts.show(receipt, json=as_json)
    open_still = receipt.operation.unresolved or (confirm and receipt.because)
    return exits.UNSETTLED if open_still else exits.DONE
