"""The laboratory: real processes that keep the truth apart, faults on the wire, and the figures that follow."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the laboratory and return its exit code (`counterfoil.lab.commands`).

    Args:
        arguments: without the program's name; default: those of this process.
    """
    from counterfoil.lab.commands import run

    return run(arguments)
