"""`counterfoil erase ID`: null the payload and the results of one resolved operation, because a person decided it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from counterfoil.domain.event import History


NOTHING = "there was nothing left to erase"


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.operation_argument(verb)
    parser.store_option(verb)
    parser.actions_option(verb)
    parser.decision_options(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where nothing of it is left."""
    from counterfoil.cli import receipts
    from counterfoil.cli.decision import decide
    from counterfoil.cli.named import whole
    from counterfoil.cli.opening import for_reading

    with exits.terminable(), for_reading(asked) as ledger:
        history = ledger.history(whole(ledger, asked.operation))
        decision = decide(
            asked, history.operation, "erase its payload and its results for good", first=lambda _: _erasable(history)
        )
        receipt = ledger.erase(history.operation.id, by=decision.by, reason=decision.reason, how=decision.how)
        left = history.operation.seq != receipt.operation.seq
        receipts.show(receipt, json=asked.json, happened=[] if left else [NOTHING])
    return exits.DONE


def _erasable(history: History) -> None:
    from counterfoil.domain.errors import NotDecided
    from counterfoil.domain.event import ERASE
    from counterfoil.domain.retention import against

    because = against(history)
    if because:
        raise NotDecided(history.operation.id, ERASE, because)
