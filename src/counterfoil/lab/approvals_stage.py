"""Where the cases are played: one process, of the product as it is or with one of its rules turned off.

It judges nothing: what came of a case is counted by whoever started it, from the receipts and the provider's logs.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from counterfoil.lab import approvals_bound, approvals_moment, approvals_people, approvals_use
from counterfoil.lab.approvals_scene import Case, Scene, Where
from counterfoil.lab.journal import Journal

CASES: Mapping[str, Case] = {
    case.name: case
    for case in (*approvals_bound.CASES, *approvals_moment.CASES, *approvals_use.CASES, *approvals_people.CASES)
}
"""Every case by its name, in the order in which they are played."""

PLAYED = "played.jsonl"


def folder_of(top: Path, case: str) -> Path:
    """Where one case keeps its receipts."""
    return top / "cases" / "".join(c if c.isalnum() or c in "._" else "-" for c in case)


def play(top: Path, case: Case, *, port: int, mutant: str | None) -> list[str]:
    """Play one case and return the refusals it met.

    Args:
        top: gets a folder for it.
        case: which.
        port: the provider's.
        mutant: for the processes that the case starts.
    """
    folder = folder_of(top, case.name)
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as house:
        scene = Scene(Where(folder, port, mutant), house)
        scene.tries(case.play, scene)
        return scene.refused


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the cases that are asked for, or all."""
    parser = argparse.ArgumentParser(prog="counterfoil.lab.approvals_stage", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="gets a folder per case")
    parser.add_argument("--port", type=int, required=True, help="where the provider listens")
    parser.add_argument("--mutant", help="the rule that is off here, for the processes started from here")
    parser.add_argument("--case", action="append", default=[], choices=CASES, help="only this one; may be repeated")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("error")
    journal = Journal(asked.folder / PLAYED)
    for name in asked.case or CASES:
        refused = play(asked.folder, CASES[name], port=asked.port, mutant=asked.mutant)
        journal.append({"case": name, "refused": refused})
    journal.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
