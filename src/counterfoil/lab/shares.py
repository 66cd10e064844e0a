"""Children that do a share of a run and tell it in lines of JSON."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from counterfoil.lab.sabotage import command


def cores() -> int:
    """How many shares may run at once."""
    return os.cpu_count() or 1


def told_by(sabotage: str | None, module: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """Run one module and give each of its lines as it comes; it is ended with whoever reads."""
    yield from told_by_all(sabotage, module, [arguments])


def told_by_all(sabotage: str | None, module: str, shares: Sequence[Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Run one module several times at once and give each line as it comes.

    Args:
        sabotage: the rule that is turned off in each; None: none.
        module: run as by `python -m`.
        shares: the arguments of each.
    """
    children = [
        subprocess.Popen(command(sabotage, module, *arguments), stdout=subprocess.PIPE, text=True)
        for arguments in shares
    ]
    try:
        with selectors.DefaultSelector() as ready:
            for child in children:
                assert child.stdout is not None  # noqa: S101 - it was asked for
                ready.register(child.stdout, selectors.EVENT_READ)
            while ready.get_map():
                for key, _ in ready.select():
                    yield from _line(ready, key)
    finally:
        for child in children:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()


def _line(ready: selectors.BaseSelector, key: selectors.SelectorKey) -> Iterator[dict[str, Any]]:
    line = key.fileobj.readline()  # type: ignore[union-attr]
    if line:
        yield json.loads(line)
    else:
        ready.unregister(key.fileobj)
