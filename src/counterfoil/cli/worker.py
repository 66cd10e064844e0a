"""`counterfoil worker`: act when no caller waits, until told to stop; one line for each step."""

from __future__ import annotations

import argparse
import threading
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from counterfoil.domain.operation import Operation
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.receipt import Receipt

INTERVAL_SECONDS, INTERVAL_SECONDS_MIN, INTERVAL_SECONDS_MAX = 1.0, 0.05, 3600.0
"""Between sweeps: a look waits for its own due time, so this only bounds how late one is noticed."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verb.add_argument("--once", action="store_true", help="take the steps that are due now, and end")
    verb.add_argument(
        "--interval", metavar="SECONDS", type=parser.seconds(INTERVAL_SECONDS_MIN, INTERVAL_SECONDS_MAX),
        default=INTERVAL_SECONDS, help=f"between sweeps (default {INTERVAL_SECONDS:g})",
    )  # fmt: skip
    parser.actions_option(verb)
    parser.store_option(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    from counterfoil.cli.opening import for_acting

    with exits.terminable(), for_acting(asked, new=True) as ledger:
        sweeps = Sweeps(ledger, as_json=asked.json)
        if asked.once:
            sweeps.sweep()
            if not sweeps.printed and not asked.json:
                print(_idle(ledger.store.unresolved()), flush=True)
            codes = sweeps.codes | ({exits.UNSETTLED} if ledger.store.unresolved() else set())
            return exits.most_urgent(codes)
        _announce(ledger, as_json=asked.json)
        stop = threading.Event()
        while not stop.wait(asked.interval if sweeps.swept else 0.0):
            sweeps.sweep()
    return exits.DONE


def _idle(unresolved: list[Operation]) -> str:
    """What a sweep without a step leaves to others, or to later."""
    from counterfoil.domain.schedule import REVIEW

    persons = sum(operation.step == REVIEW for operation in unresolved)
    waiting = len(unresolved) - persons
    said = [f"{persons} {'operation needs' if persons == 1 else 'operations need'} a person"] if persons else []
    if waiting:
        said.append(f"{waiting} {'has its' if waiting == 1 else 'have their'} next step later or in other hands")
    return f"nothing is due; {', '.join(said) or 'nothing is unresolved'}"


def _announce(ledger: Ledger, *, as_json: bool) -> None:
    """Say on standard error that it runs, and on what: standard output is for steps."""
    from counterfoil.cli.terminal import note

    if not as_json:
        note(f"working on {ledger.store.path}: {len(ledger.registry)} actions; Ctrl+C or SIGTERM ends it")


class Sweeps:
    """Sweeps a ledger and prints each change it makes or finds, once.

    Args:
        ledger: whose operations and actions.
        as_json: print JSON lines.
    """

    def __init__(self, ledger: Ledger, *, as_json: bool) -> None:
        from counterfoil.runtime.worker import Worker

        self._ledger, self._as_json = ledger, as_json
        self._worker = Worker(ledger, self._stepped)
        self._before: dict[str, int] = {}
        self._said: dict[str, str] = {}
        self.swept = self.printed = 0
        self.codes: set[int] = set()

    def sweep(self) -> None:
        """Take every step that is due; a store that is busy is asked again by the next sweep."""
        from counterfoil.domain.errors import Unavailable

        self.swept += 1
        try:
            unresolved = self._ledger.store.unresolved()
            self._before = {operation.id: operation.seq for operation in unresolved}
            self._said = {name: said for name, said in self._said.items() if not name or name in self._before}
            self._worker.sweep()
        except Unavailable as error:
            self._stepped("", error)

    def _stepped(self, operation: str, what: Receipt | Exception) -> None:
        from counterfoil.cli import receipts

        if isinstance(what, Exception):
            self._failed(operation, what)
        elif what.operation.seq != self._before.get(operation):
            self._said.pop(operation, None)
            self.printed += 1
            receipts.show(what, json=self._as_json)

    def _failed(self, operation: str, error: Exception) -> None:
        """Say it once, not at every sweep that meets it again."""
        from counterfoil.cli import receipts
        from counterfoil.domain.errors import CounterfoilError

        self.codes.add(error.exit_code if isinstance(error, CounterfoilError) else exits.DEFECT)
        if self._said.get(operation) == str(error):
            return
        self._said[operation] = str(error)
        self.printed += 1
        receipts.show_error(operation, error, json=self._as_json)
