"""`counterfoil resolve ID`: record what a person found out, with the evidence it rests on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from counterfoil.domain.event import History
    from counterfoil.domain.evidence import Evidence
    from counterfoil.domain.operation import Operation
    from counterfoil.runtime.ledger import Ledger

OUTCOMES = ("succeeded", "rejected", "accepted")
EVIDENCE_MAX = 50
"""Fields of one finding; more is a document, and its name is the evidence."""
EVIDENCE_CHARS_MAX = 4000
"""Of one field."""
ATTEMPT_MAX = 32_767
"""More attempts than an operation's events can hold."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.operation_argument(verb)
    verb.add_argument("--outcome", choices=OUTCOMES, required=True, help="what was found")
    verb.add_argument(
        "--evidence", metavar="NAME=VALUE", action="append", required=True, type=_field,
        help="what was seen, e.g. refund_id=re_123; may be given again",
    )  # fmt: skip
    verb.add_argument(
        "--attempt", metavar="N", type=parser.count(1, ATTEMPT_MAX),
        help="which attempt it speaks of (default: the operation as a whole)",
    )  # fmt: skip
    parser.actions_option(verb)
    parser.store_option(verb)
    parser.decision_options(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where the operation is resolved now."""
    from counterfoil.cli import receipts
    from counterfoil.cli.deciding import FORESEEN, know_contract, opened
    from counterfoil.cli.decision import decide
    from counterfoil.cli.named import whole

    evidence = _evidence(asked.evidence)
    with exits.terminable(), opened(asked) as ledger:
        history = ledger.store.load(whole(ledger, asked.operation))
        know_contract(ledger, history)
        stood = history.operation
        clause = _clause(asked.outcome, evidence, stood, _finding(asked, ledger, history, evidence, FORESEEN))
        decision = decide(asked, stood, clause, first=lambda by: _finding(asked, ledger, history, evidence, by))
        receipt = ledger.resolve(
            stood.id, asked.outcome, evidence=dict(evidence), by=decision.by, reason=decision.reason,
            how=decision.how, attempt=asked.attempt, seen=stood.seq,
        )  # fmt: skip
        receipts.show(receipt, json=asked.json, happened=_against(asked.outcome, receipt.operation))
        return exits.UNSETTLED if receipt.operation.unresolved else exits.DONE


def _finding(
    asked: argparse.Namespace, ledger: Ledger, history: History, evidence: dict[str, str], by: str
) -> Evidence:
    """What they would have found, so that what is none is refused before they are asked."""
    from counterfoil.runtime.resolving import finding_of

    contract = ledger.registered(history.operation.action).action.contract
    said = {"by": by, "reason": "", "how": "", "attempt": asked.attempt}
    return finding_of(history, asked.outcome, evidence=dict(evidence), contract=contract, **said)


def _clause(outcome: str, evidence: dict[str, str], stood: Operation, found: Evidence) -> str:
    """The finding as it is confirmed, with what it is going to settle."""
    from counterfoil.domain.words import Discrepancy

    seen = ", ".join(f"{name}={value}" for name, value in evidence.items())
    settles = " and settle the evidence that disagrees" if found.settles else ", which settles nothing"
    return f"record that it {_CLAUSES[outcome]}{settles if stood.discrepancy is Discrepancy.OPEN else ''}, seen: {seen}"


def _against(outcome: str, after: Operation) -> list[str]:
    """Why evidence still contradicts evidence, where the finding is not the outcome that stands."""
    from counterfoil.domain.words import Discrepancy

    if after.discrepancy is not Discrepancy.OPEN or outcome == after.outcome.value:
        return []
    stands = f"the outcome stays {after.outcome.value}, by evidence that a finding does not lower"
    return [f"{stands}: only a finding that agrees with it settles the contradiction"]


_CLAUSES = {
    "succeeded": "succeeded",
    "accepted": "was accepted",
    "rejected": "was rejected (its effect did not take place)",
}


def _field(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not NAME=VALUE")
    if len(text) > EVIDENCE_CHARS_MAX:
        raise argparse.ArgumentTypeError(f"{name[:40]!r} is longer than {EVIDENCE_CHARS_MAX} characters")
    return name.strip(), value


def _evidence(fields: list[tuple[str, str]]) -> dict[str, str]:
    from counterfoil.domain.errors import BadValue

    if len(fields) > EVIDENCE_MAX:
        raise BadValue("--evidence", len(fields), wanted=f"at most {EVIDENCE_MAX} fields")
    found = dict(fields)
    if len(found) < len(fields):
        names = [name for name, _ in fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadValue("--evidence", twice, wanted="names each field once")
    return found
