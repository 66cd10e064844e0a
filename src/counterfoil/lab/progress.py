"""A bar on standard error where that is a terminal, and nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Give a function that is told what is going on; each call is one step.

    Args:
        total: how many steps there are.
    """
    if not sys.stderr.isatty():
        yield lambda _said: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from counterfoil.cli.terminal import console

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=total)

        def step(said: str) -> None:
            bar.update(task, description=said)
            bar.advance(task)

        yield step
