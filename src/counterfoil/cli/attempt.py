"""`counterfoil attempt ID`: dispatch one operation again, on a basis that is on record, or fence it off."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from counterfoil.domain.event import History

BASES = ("not_sent", "absence_proven", "same_key_replay", "rejected_without_effect", "operator_override")
"""What may be asked for; each is judged under the store's lock, an override by what `counterfoil override` recorded."""


OVERRIDDEN = "an override is decided, and only --basis operator_override uses it"


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.operation_argument(verb)
    how = verb.add_mutually_exclusive_group()
    how.add_argument("--basis", choices=BASES, help="the one basis to judge; default: each in turn")
    how.add_argument(
        "--fence", nargs="?", type=int, const=0, metavar="N",
        help="make the original impossible instead, by a fence of the contract (the first)",
    )  # fmt: skip
    parser.actions_option(verb)
    parser.store_option(verb)
    parser.decision_options(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 only where the effect took place."""
    from counterfoil.cli import receipts
    from counterfoil.cli.decision import decide
    from counterfoil.cli.named import whole
    from counterfoil.cli.opening import for_acting
    from counterfoil.domain.errors import NoBasis
    from counterfoil.domain.override import override_stands
    from counterfoil.domain.words import Outcome

    with exits.terminable(), for_acting(asked) as ledger:
        found = ledger.get(whole(ledger, asked.operation))
        does = "dispatch it again" if asked.fence is None else "make it impossible, if it has not happened"
        decision = decide(asked, found.operation, does)
        if asked.fence is not None:
            receipt = ledger.fence(
                found.id, index=asked.fence, by=decision.by, reason=decision.reason, how=decision.how
            )
            receipts.show(receipt, json=asked.json, happened=[_made(ledger.history(found.id))])
            return exits.UNSETTLED if receipt.operation.unresolved else exits.DONE
        try:
            receipt = ledger.attempt(
                found.id, basis=asked.basis, by=decision.by, reason=decision.reason, how=decision.how
            )
        except NoBasis as error:
            if asked.basis is None and override_stands(ledger.history(found.id).events):
                raise NoBasis(found.id, (*error.because, OVERRIDDEN)) from None
            raise
        receipts.show(receipt, json=asked.json, happened=[_made(ledger.history(found.id))])
        happened = receipt.outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED)
        return exits.DONE if happened and not receipt.operation.unresolved else exits.UNSETTLED


def _made(history: History) -> str:
    """Which attempt was made, and on which basis."""
    from counterfoil.domain.event import EventKind, begun_of

    begun = [begun_of(event) for event in history.events if event.kind is EventKind.BEGUN][-1]
    if begun.fence is not None:
        return f"attempt {begun.attempt.number}, a fence"
    return f"attempt {begun.attempt.number} on basis {begun.basis}" if begun.basis else "the first attempt"
