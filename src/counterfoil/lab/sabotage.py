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
    changed._send, changed._asend = send, asend  # noqa: SLF001 - likewise


def _approval_not_bound() -> None:
    """Take an approval for whatever is asked now, as where people approve a summary."""
    from counterfoil.domain import permission

    judge: Any = permission
    judge.changed = lambda *_: ()


def _expiry_ignored() -> None:
    """Let what was approved once be approved for good."""
    from counterfoil.domain import permission

    judge: Any = permission
    judge.expiry = lambda *_: None


def _approval_before_claim() -> None:
    """Judge an approval when it is read, before the claim's transaction: what is decided in between comes too late."""
    from counterfoil.domain import rules
    from counterfoil.domain.event import EventKind, History
    from counterfoil.plans import dispatch

    sought, claim_again, read = dispatch._sought, rules.claim_again, dict[str, History]()  # noqa: SLF001 - likewise

    def attempted(history: History) -> int:
        return sum(event.kind is EventKind.BEGUN for event in history.events)

    def seen(order: Any, history: History, *, automatic: bool) -> Any:
        read[history.operation.id] = history
        return sought(order, history, automatic=automatic)

    def claimed(*given: Any, **named: Any) -> Any:
        rule = claim_again(*given, **named)

        def judged(history: History, now: float) -> Any:
            early = read.get(history.operation.id, history)
            return rule(early if attempted(early) == attempted(history) else history, now)

        return judged

    dispatch._sought, rules.claim_again = seen, claimed  # noqa: SLF001 - likewise


def _without(reason: str) -> Callable[[Callable[..., tuple[str, ...]]], Callable[..., tuple[str, ...]]]:
    """Turn one reason of a judge off."""

    def turned(judge: Callable[..., tuple[str, ...]]) -> Callable[..., tuple[str, ...]]:
        return lambda *given, **named: tuple(said for said in judge(*given, **named) if reason not in said)

    return turned


def _approver_is_requester() -> None:
    """Let whoever asks answer."""
    from counterfoil.domain import consent

    judge: Any = consent
    judge.not_entitled = _without("asked for it")(judge.not_entitled)


def _abandon_does_not_block() -> None:
    """Send what people gave up as if they had not."""
    from counterfoil.domain import override, rules

    given_up = _without("was abandoned")
    rules._against_claim = given_up(rules._against_claim)  # noqa: SLF001 - likewise
    override._against_further = given_up(override._against_further)  # noqa: SLF001 - likewise


def _override_reusable() -> None:
    """Let one override stand for every later attempt."""
    from counterfoil.domain import override
    from counterfoil.domain.decision import Verb
    from counterfoil.domain.event import Event, EventKind

    deciders = override._deciders  # noqa: SLF001 - likewise

    def counted(events: tuple[Event, ...], verb: Verb) -> tuple[str, ...]:
        unused = tuple(event for event in events if event.kind is not EventKind.BEGUN)
        return deciders(unused if verb is Verb.OVERRIDE else events, verb)

    override._deciders = counted  # noqa: SLF001 - likewise


MUTANTS: Mapping[str, Callable[[], None]] = {
    "retry_on_timeout": _retry_on_timeout,
    "approval_not_bound": _approval_not_bound,
    "expiry_ignored": _expiry_ignored,
    "approval_before_claim": _approval_before_claim,
    "approver_is_requester": _approver_is_requester,
    "abandon_does_not_block": _abandon_does_not_block,
    "override_reusable": _override_reusable,
}
"""Every mutant by name, with what turns its rule off."""

EVERYWHERE = frozenset({"retry_on_timeout"})
"""What `demo` and `kill-loop` can notice: nobody is asked for anything in them."""

NOTICED: Mapping[str, tuple[frozenset[str], str]] = {
    "demo": (EVERYWHERE, "nobody approves anything in the demo"),
    "kill-loop": (EVERYWHERE, "nobody approves anything in the kill loop"),
    "bench": (frozenset(), "a benchmark meets no silence and judges nothing"),
    "approvals": (frozenset(MUTANTS), ""),
    "chaos": (EVERYWHERE, "nobody approves anything in the chaos"),
    "certify": (EVERYWHERE, "nobody approves anything while a worker is certified"),
}
"""What each command can notice, and why nothing else."""


def checked(mutant: str | None, name: str = "approvals") -> str | None:
    """Return the mutant's name as it is.

    Args:
        mutant: None where no rule is turned off.
        name: the command that must notice it.

    Raises:
        RunFailed: there is none of that name, or this command could not notice it.
    """
    if mutant is not None and mutant not in MUTANTS:
        raise RunFailed(f"--sabotage {mutant}: there is no such mutant; there are: {', '.join(sorted(MUTANTS))}")
    noticed, why = NOTICED[name]
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
