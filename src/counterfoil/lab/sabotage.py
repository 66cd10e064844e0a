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
    from counterfoil.domain.event import Decided, Event, EventKind

    deciders = override._deciders  # noqa: SLF001 - likewise

    def counted(events: tuple[Event, ...], verb: Verb) -> tuple[Decided, ...]:
        unused = tuple(event for event in events if event.kind is not EventKind.BEGUN)
        return deciders(unused if verb is Verb.OVERRIDE else events, verb)

    override._deciders = counted  # noqa: SLF001 - likewise


def _synchronous_normal() -> None:
    """Answer before the log is synced, as SQLite does by itself where speed is what counts."""
    from counterfoil.lab.images.weakened import weaken

    weaken("NORMAL")


MUTANTS: Mapping[str, Callable[[], None]] = {
    "retry_on_timeout": _retry_on_timeout,
    "approval_not_bound": _approval_not_bound,
    "expiry_ignored": _expiry_ignored,
    "approval_before_claim": _approval_before_claim,
    "approver_is_requester": _approver_is_requester,
    "abandon_does_not_block": _abandon_does_not_block,
    "override_reusable": _override_reusable,
    "synchronous_normal": _synchronous_normal,
}
"""Every mutant by name, with what turns its rule off."""

EVERYWHERE = frozenset({"retry_on_timeout"})
"""What `demo` and `kill-loop` can notice: nobody is asked for anything in them."""
UNSYNCED = frozenset({"synchronous_normal"})
"""What only a power cut shows: a killed process leaves the system's cache as it was."""

NOTICED: Mapping[str, tuple[frozenset[str], str]] = {
    "demo": (EVERYWHERE, "nobody approves anything in the demo"),
    "kill-loop": (EVERYWHERE, "nobody approves anything in the kill loop"),
    "bench": (frozenset(), "a benchmark meets no silence and judges nothing"),
    "approvals": (frozenset(MUTANTS) - UNSYNCED, "the power stays on"),
    "images": (EVERYWHERE | UNSYNCED, "nothing is done to an approval"),
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


def main() -> None:
    """Turn one rule off, then run a module in this process."""
    mutant, *sys.argv = sys.argv[1:]
    checked(mutant)
    MUTANTS[mutant]()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
