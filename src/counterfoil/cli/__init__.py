"""The command line: one file per verb; `counterfoil` is `main`."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (`counterfoil.cli.exits`); a known error is one sentence, no traceback.

    Args:
        arguments: without the program's name; default: those of this process.
    """
    from counterfoil.cli.parser import run

    return run(arguments)
