"""One person, or one worker, in a process of their own: each line on stdin is one thing to do at one moment."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.cases.people import WHO

import counterfoil
from counterfoil.domain.answer import Returned
from counterfoil.domain.errors import NoBasis, NotDecided
from counterfoil.plans.late import late
from counterfoil.runtime.drive import drive

SENDS = "COUNTERFOIL_TEST_SENDS"
"""The variable that names the file in which a send leaves its line; where there is none, no answer ever comes."""


def pay(order, amount=10):
    """What is guarded, in every process the same code."""
    sends = os.environ.get(SENDS)
    if sends is None:
        raise TimeoutError
    with Path(sends).open("a", encoding="utf-8") as file:
        file.write(f"{order}\n")
    return {"id": order}


def guarded(ledger):
    """The same action in every process."""
    return ledger.action(pay, key=lambda order, **_: order, **WHO)


def act(ledger, action, verb, operation, decided):
    """Do one thing about one operation."""
    match verb:
        case "work":
            ledger.work(operation)
        case "learn":
            plan = late(operation, action, 1, Returned(value={"id": "late"}), ledger._drawer.draw())
            drive(plan, ledger._executor)
        case "again":
            ledger.decisions.override(operation, **decided)
            ledger.attempt(operation, basis="operator_override", by=decided["by"])
        case _:
            getattr(ledger.decisions, verb)(operation, **decided)


def say(word):
    """Tell whoever started this process, at once."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main(path, who, verb):
    """Answer each line with `taken`, or with what was told."""
    with counterfoil.open(path, actor="agent:reader") as ledger:
        action = guarded(ledger).action
        say("ready")
        for line in sys.stdin:
            operation, seen, start = line.split()
            while time.monotonic() < float(start):
                pass  # the other one waits for the same moment; a sleep would not be as exact
            try:
                act(ledger, action, verb, operation, {"by": who, "reason": "race", "seen": int(seen)})
                say("taken")
            except (NotDecided, NoBasis) as error:
                say(f"told {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
