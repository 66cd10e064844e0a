"""`counterfoil attempt ID`: dispatch one operation again, on a basis that is on record and never on a guess."""

from __future__ import annotations

import argparse

from counterfoil.cli import exits, parser

BASES = ("not_sent", "absence_proven", "same_key_replay", "rejected_without_effect", "operator_override")
"""What may be asked for; each is judged under the store's lock, an override by what `counterfoil override` recorded."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.operation_argument(verb)
    verb.add_argument("--basis", choices=BASES, help="the one basis to judge; default: each in turn")
    parser.actions_option(verb)
    parser.store_option(verb)
    parser.decision_options(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 only where the effect took place."""
    from counterfoil.cli import receipts
    from counterfoil.cli.decision import decide
    from counterfoil.cli.named import whole
    from counterfoil.cli.opening import for_acting
    from counterfoil.domain.words import Outcome

    with exits.terminable(), for_acting(asked) as ledger:
        found = ledger.get(whole(ledger, asked.operation))
        decision = decide(asked, found.operation, "dispatch it again")
        receipt = ledger.attempt(found.id, basis=asked.basis, by=decision.by, reason=decision.reason, how=decision.how)
        receipts.show(receipt, json=asked.json)
        happened = receipt.outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED)
        return exits.DONE if happened and not receipt.operation.unresolved else exits.UNSETTLED
