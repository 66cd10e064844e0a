"""Mutants of whoever works when no caller waits."""

from __future__ import annotations

from typing import Any


def recovery_at_start_only() -> None:
    """Look after what was left once, when the worker starts."""
    from counterfoil.runtime.worker import Worker

    sweep = Worker.sweep
    changed: Any = Worker
    swept: set[int] = set()

    def once(self: Any) -> int:
        if id(self) in swept:
            return 0
        swept.add(id(self))
        return sweep(self)

    changed.sweep = once


def sweep_stops_at_error() -> None:
    """Let the first error of the store end the worker for good."""
    from counterfoil.domain.errors import Unavailable
    from counterfoil.runtime.worker import Worker

    sweep, step = Worker.sweep, Worker._step  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = Worker
    ended: set[int] = set()

    def stepped(self: Any, operation: Any) -> int:
        told = self._report

        def report(name: str, what: Any) -> None:
            if isinstance(what, Unavailable):
                ended.add(id(self))
            told(name, what)

        self._report = report
        try:
            return step(self, operation)
        finally:
            self._report = told

    changed._step = stepped  # noqa: SLF001 - likewise
    changed.sweep = lambda self: 0 if id(self) in ended else sweep(self)
