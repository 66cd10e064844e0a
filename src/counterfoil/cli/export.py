"""`counterfoil export ID`: one operation as one JSON document."""

from __future__ import annotations

import argparse
from pathlib import Path

from counterfoil.cli import exits, parser


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.operation_argument(verb)
    verb.add_argument("--out", metavar="FILE", type=Path, help="a private file (0600), written whole or not at all")
    verb.add_argument("--payload", action="store_true", help="with the payload, and what replays return")
    parser.store_option(verb)
    parser.actions_option(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    from counterfoil.cli.list import read
    from counterfoil.cli.opening import for_reading
    from counterfoil.cli.show import readable
    from counterfoil.cli.terminal import note, print_json
    from counterfoil.runtime import export

    with for_reading(asked) as ledger:
        history = readable(ledger, asked.operation)
        outcome = read(ledger, history.operation).outcome
        refused = ledger.store.refusals(history.operation.n)
        made = export.document(
            history, outcome=outcome, payload=asked.payload, refused=refused,
            compensated_by=ledger.compensated_by(history),
        )  # fmt: skip
        if asked.out is not None:
            export.write(asked.out, made, store=ledger.store.path)
    if asked.out is None:
        print_json(made) if asked.json else print(export.text(made), end="", flush=True)
    elif asked.json:
        print_json({"operation_id": made["operation_id"], "out": str(asked.out)})
    else:
        note(f"{made['operation_id']} is in {asked.out}")
    return exits.DONE
