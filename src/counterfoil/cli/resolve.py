"""`counterfoil resolve ID`: record what a person found out, with the evidence it rests on."""

from __future__ import annotations

import argparse

from counterfoil.cli import exits, parser

OUTCOMES = ("succeeded", "rejected", "accepted")
EVIDENCE_MAX = 50
"""Fields of one finding; more is a document, and its name is the evidence."""
EVIDENCE_CHARS_MAX = 4000
"""Of one field."""
ATTEMPT_MAX = 32_767
"""More attempts than an operation's events can hold."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verb.add_argument("operation", metavar="ID", help="its id, op_...")
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
    from counterfoil.cli.decision import decide
    from counterfoil.cli.opening import for_acting
    from counterfoil.cli.terminal import print_json

    evidence = _evidence(asked.evidence)
    with exits.terminable(), for_acting(asked) as ledger:
        found = ledger.get(asked.operation)
        seen = ", ".join(f"{name}={value}" for name, value in evidence.items())
        decision = decide(asked, found.operation, f"record that it {_CLAUSES[asked.outcome]}, seen: {seen}")
        receipt = ledger.resolve(
            asked.operation, asked.outcome, evidence=dict(evidence), by=decision.by, reason=decision.reason,
            how=decision.how, attempt=asked.attempt,
        )  # fmt: skip
        if asked.json:
            print_json(receipts.as_json(receipt))
        else:
            print(receipts.as_line(receipt), flush=True)
        return exits.UNSETTLED if receipt.operation.unresolved else exits.DONE


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
