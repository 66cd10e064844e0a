"""Mutants: one safety rule turned off from outside, in a process that the laboratory starts.

``python -m counterfoil.lab.sabotage MUTANT MODULE ARGUMENT ...`` turns the rule off and runs the module as if by
``python -m``. The product has no hook for it: its own code is replaced in that one process.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.mutants.catalogue import CATALOGUE, MATRIX, WORLDS
from counterfoil.lab.processes import module

MUTANTS: Mapping[str, Callable[[], None]] = {m.slug: m.off for m in CATALOGUE if m.off is not None}
"""Every mutant by name, with what turns its rule off."""

EVERYWHERE = frozenset({"retry_on_timeout"})
"""What every command notices in which replies are lost."""
TEN = EVERYWHERE | {
    "send_before_record", "new_key_per_attempt", "timeout_is_rejected", "error_is_rejected", "accepted_is_success",
    "bad_json_is_success", "recovery_makes_ready", "claim_ignores_state", "absence_without_horizon",
}  # fmt: skip
"""What virtual worlds, the kill loop and the chaos all notice, every time: on the provider's wire, in what the receipts
say of it, or in what is found by judging them anew. `make sabotaged` tries each of them in each."""
KILLED = TEN | {"recovery_at_start_only", "not_found_is_absent", "transport_retries"}
"""What shows where one process at a time is killed and started again."""
ASKED = EVERYWHERE | frozenset({
    "approval_not_bound", "expiry_ignored", "approval_before_claim", "approver_is_requester",
    "abandon_does_not_block", "override_reusable",
})  # fmt: skip
"""What the cases of `approvals` are about."""
CONTRACTS = EVERYWHERE | frozenset({
    "timeout_is_rejected", "error_is_rejected", "bad_json_is_success", "retention_ignored", "last_rejection_wins",
})  # fmt: skip
"""What shows in what the product concludes by a contract."""
UNSYNCED = frozenset({"synchronous_normal"})
"""What only a power cut shows: a killed process leaves the system's cache as it was."""
UNCELLED = frozenset({"abandon_does_not_block", "stale_sweep"})
"""What takes more of one operation than a cell has."""
IN_WORLDS = frozenset(m.slug for m in CATALOGUE if m.subject == WORLDS and m.off is not None)
"""What virtual worlds are about."""
IN_CELLS = IN_WORLDS - UNCELLED | frozenset(m.slug for m in CATALOGUE if m.subject == MATRIX) | {"transport_retries"}
"""What the crash matrix is about: its worlds, and what it plays on a real wire."""
WIRE = frozenset({"retry_on_timeout", "transport_retries", "secret_in_error"})
"""What shows when one reply is lost on a real wire."""

NOTICED: Mapping[str, tuple[frozenset[str], str]] = {
    "demo": (WIRE, "nobody approves anything in the demo, and little goes wrong in it"),
    "kill-loop": (KILLED, "nobody approves anything in the kill loop, and its provider lies little"),
    "bench": (frozenset(), "a benchmark meets no silence and judges nothing"),
    "approvals": (ASKED, "nothing but approvals is put to the test there"),
    "images": (EVERYWHERE | UNSYNCED, "nothing is done to an approval"),
    "simulate": (IN_WORLDS, "no virtual world has a wire, a disk or a terminal"),
    "exhaust": (IN_WORLDS, "one operation meets nothing of it"),
    "matrix": (IN_CELLS, "no cell has what it is about"),
    "mutants": (frozenset(), "it turns every rule off itself"),
    "chaos": (TEN, "nobody approves anything in the chaos"),
    "contracts": (CONTRACTS, "nothing in a contract is about it"),
    "certify": (EVERYWHERE, "nobody approves anything while a worker is certified"),
}
"""What each command can notice, and why nothing else."""


def checked(mutant: str | None, name: str | None = None) -> str | None:
    """Return the mutant's name as it is.

    Args:
        mutant: None where no rule is turned off.
        name: the command that must notice it; None: one of them does.

    Raises:
        RunFailed: there is none of that name, or this command could not notice it.
    """
    if mutant is not None and mutant not in MUTANTS:
        raise RunFailed(f"--sabotage {mutant}: there is no such mutant; there are: {', '.join(sorted(MUTANTS))}")
    noticed, why = (frozenset(MUTANTS), "") if name is None else NOTICED[name]
    if mutant is not None and mutant not in noticed:
        raise RunFailed(f"--sabotage {mutant}: {why}, so it could not notice")
    return mutant


def command(mutant: str | None, name: str, *arguments: str) -> list[str]:
    """The argument list that runs a module, sabotaged or as it is."""
    if mutant is None:
        return module(name, *arguments)
    return module("counterfoil.lab.sabotage", mutant, name, *arguments)


class Everywhere:
    """A rule turned off in every Python that a command of somebody else's starts, by way of its environment.

    Python imports a module called `sitecustomize` before anything else, from wherever PYTHONPATH names first.

    Args:
        folder: gets that module, and a mark of each process that took it.
        mutant: None where no rule is turned off: then nothing is written, and the environment is empty.
    """

    def __init__(self, folder: Path, mutant: str | None) -> None:
        self._mutant, self._took = mutant, folder / "sabotage" / "took"
        self.environment: Mapping[str, str] = {}
        if mutant is not None:
            self._took.parent.mkdir()
            (self._took.parent / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
            path = os.pathsep.join(filter(None, [str(self._took.parent), os.environ.get("PYTHONPATH", "")]))
            self.environment = {"PYTHONPATH": path, _NAMED: mutant}

    def check(self) -> None:
        """Make sure that the rule was off.

        Raises:
            RunFailed: no process took the module: whatever came out says nothing about the rule.
        """
        if self._mutant is not None and not self._took.exists():
            raise RunFailed(f"--sabotage {self._mutant}: the command runs no Python that has counterfoil.lab")


_NAMED = "COUNTERFOIL_LAB_SABOTAGE"
_SITE = f"""\
import os
import pathlib

from counterfoil.lab.sabotage import MUTANTS

MUTANTS[os.environ["{_NAMED}"]]()
pathlib.Path(__file__).with_name("took").touch()
"""


def main() -> None:
    """Turn one rule off, then run a module in this process."""
    mutant, *sys.argv = sys.argv[1:]
    checked(mutant)
    MUTANTS[mutant]()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
