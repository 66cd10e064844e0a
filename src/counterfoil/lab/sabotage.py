"""Mutants: one safety rule turned off from outside, in a process that the laboratory starts.

``python -m counterfoil.lab.sabotage MUTANT MODULE ARGUMENT ...`` turns the rule off and runs the module as if by
``python -m``. The product has no hook for it: its own code is replaced in that one process.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping
from typing import Any

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.processes import module


def _retry_on_timeout() -> None:
    """Send again when an attempt's answer is silence, as retry layers do."""
    from counterfoil.domain.answer import Answer, Silent
    from counterfoil.plans.effects import Send
    from counterfoil.runtime.executor import Executor

    blocking, awaited = Executor._send, Executor._asend  # noqa: SLF001 - a mutant replaces what nobody may call

    def is_silence(answer: Answer) -> bool:
        return isinstance(answer, Silent) and answer.may_have_left

    def send(self: Executor, effect: Send) -> Answer:
        answer = blocking(self, effect)
        return blocking(self, effect) if is_silence(answer) else answer

    async def asend(self: Executor, effect: Send) -> Answer:
        answer = await awaited(self, effect)
        # Where a thread sends for the event loop, that thread has come through `send` already.
        again = is_silence(answer) and self.registered(effect.action.name).awaited
        return await awaited(self, effect) if again else answer

    changed: Any = Executor
    changed._send, changed._asend = send, asend  # noqa: SLF001 - the same


MUTANTS: Mapping[str, Callable[[], None]] = {"retry_on_timeout": _retry_on_timeout}
"""Every mutant by name, with what turns its rule off."""


def checked(mutant: str | None) -> str | None:
    """Return the mutant's name as it is; raises `RunFailed` where there is none of that name."""
    if mutant is not None and mutant not in MUTANTS:
        raise RunFailed(f"--sabotage {mutant}: there is no such mutant; there are: {', '.join(sorted(MUTANTS))}")
    return mutant


def command(mutant: str | None, name: str, *arguments: str) -> list[str]:
    """The argument list that runs a module, sabotaged or as it is."""
    if mutant is None:
        return module(name, *arguments)
    return module("counterfoil.lab.sabotage", mutant, name, *arguments)


def main() -> None:
    """Turn one rule off, then run a module in this process."""
    mutant, *sys.argv = sys.argv[1:]
    checked(mutant)
    MUTANTS[mutant]()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
