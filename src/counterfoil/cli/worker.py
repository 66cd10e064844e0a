"""`counterfoil worker`: act when no caller waits, until told to stop; one line for each step."""

from __future__ import annotations

import argparse
import threading
from collections import Counter
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser
from counterfoil.domain.schedule import APPROVE, CALL, REST, REVIEW

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
                print(_idle(ledger.store.pending()), flush=True)
            codes = sweeps.codes | ({exits.UNSETTLED} if ledger.store.unresolved() else set())
            return exits.most_urgent(codes)
        _announce(ledger, as_json=asked.json)
        stop = threading.Event()
        while not stop.wait(asked.interval if sweeps.swept else 0.0):
            sweeps.sweep()
    return exits.DONE


_IDLE = {
    REVIEW: ("operation needs a person", "operations need a person"),
    APPROVE: ("waits for an approval", "wait for an approval"),
    CALL: ("waits for its caller", "wait for their callers"),
    REST: ("is abandoned", "are abandoned"),
}
_LATER = ("has its next step later or in other hands", "have their next step later or in other hands")


def _idle(pending: list[Operation]) -> str:
    """What a sweep without a step leaves to others, or to later."""
    found = Counter(_IDLE.get(operation.step, _LATER) for operation in pending)
    said = [f"{found[says]} {says[found[says] > 1]}" for says in (*_IDLE.values(), _LATER) if found[says]]
    return f"nothing is due; {', '.join(said) or 'nothing is unresolved'}"


def _counted(actions: int) -> str:
    return "1 action" if actions == 1 else f"{actions} actions"


def _announce(ledger: Ledger, *, as_json: bool) -> None:
    """Say on standard error that it runs, and on what: standard output is for steps."""
    from counterfoil.cli.terminal import note

    if not as_json:
        note(f"working on {ledger.store.name}: {_counted(len(ledger.registry))}; Ctrl+C or SIGTERM ends it")


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
        self._unregistered: set[str] = set()
        self.swept = self.printed = 0
        self.codes: set[int] = set()

    def sweep(self) -> None:
        """Take every step that is due; a store that is busy is asked again by the next sweep."""
        from counterfoil.domain.errors import Unavailable

        self.swept += 1
        try:
            self._before = {operation.id: operation.seq for operation in self._ledger.store.pending()}
            self._said = {name: said for name, said in self._said.items() if not name or name in self._before}
            self._worker.sweep()
            self._say_unregistered()
        except Unavailable as error:
            self._stepped("", error)

    def _say_unregistered(self) -> None:
        """Name each action, once, of which something waits for a worker and which this one does not have."""
        from counterfoil.cli.terminal import note, safe

        waiting = Counter(
            operation.action
            for operation in self._ledger.store.pending()
            if operation.step not in _IDLE and operation.action not in self._ledger.registry
        )
        for action in sorted(waiting.keys() - self._unregistered):
            count = waiting[action]
            who = "1 operation waits" if count == 1 else f"{count} operations wait"
            note(f"{who} for a worker that has the action {safe(action)!r}: it is not registered here")
        self._unregistered |= waiting.keys()

    def _stepped(self, operation: str, what: Receipt | Exception) -> None:
        from counterfoil.cli import receipts

        if isinstance(what, Exception):
            self._failed(operation, what)
        elif what.operation.seq != self._before.get(operation):
            self._said.pop(operation, None)
            self.printed += 1
            happened = self._happened(operation)
            self._before[operation] = what.operation.seq
            receipts.show(what, json=self._as_json, happened=happened)

    def _happened(self, operation: str) -> list[str]:
        """What was decided meanwhile: passed up, expired, or handed to a person, and by whom."""
        from counterfoil.cli import sentences

        seen = self._before.get(operation)
        return [] if seen is None else sentences.since(self._ledger.history(operation).events, seen)

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
