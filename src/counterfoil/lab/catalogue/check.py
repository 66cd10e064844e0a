"""Check one contract against its behaviour: every case as it stands, then every clause weakened in turn."""

from __future__ import annotations

import time as real
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import PayloadRefused
from counterfoil.domain.soundness import check as lint
from counterfoil.domain.words import Outcome
from counterfoil.lab.behaviour.asked import Asked
from counterfoil.lab.behaviour.model import Behaviour
from counterfoil.lab.catalogue.bench import Bench
from counterfoil.lab.catalogue.equivalent import equivalent
from counterfoil.lab.catalogue.fences import fences
from counterfoil.lab.catalogue.journal import Journal
from counterfoil.lab.catalogue.playing import Result, play
from counterfoil.lab.catalogue.sayable import asked_for, untested
from counterfoil.lab.catalogue.scenarios import SCENARIOS, Case, cases
from counterfoil.lab.catalogue.weaken import ABSENCE, ANSWER, END, FENCE, MATCH, REPEAT, Weakened, weakened

_FIRST = {
    REPEAT: ("key_expiry", "ended", "lost_response", "concurrent_duplicate", "replayed_error", "late_arrival"),
    ABSENCE: ("eventual_read", "ended", "late_arrival", "foreign_object", "concurrent_duplicate"),
    MATCH: ("foreign_object", "other_state"),
    END: ("followed", "other_state"),
    ANSWER: ("concurrent_duplicate", "mismatch", "other_state", "refused", "replayed_error"),
}
"""Where each kind of weakening shows soonest."""


@dataclass(slots=True)
class Checked:
    """What came of one contract."""

    id: str
    provider: str
    mechanism: str
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """What the operations came to, by `scenario: outcome`."""
    unsafe: list[str] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)
    """What the contract says of the provider that the behaviour does not have."""
    weakened: int = 0
    caught: dict[str, str] = field(default_factory=dict)
    """By clause, what noticed it."""
    equivalent: dict[str, str] = field(default_factory=dict)
    """By clause, the rule by which it cannot matter."""
    survivors: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Nothing unsafe, nothing made up, and every weakening noticed."""
        return not (self.unsafe or self.misfits or self.survivors)


def check(contract: Contract, behaviour: Behaviour, folder: Path, journal: Journal | None = None) -> Checked:
    """Check one contract.

    Args:
        contract: of the catalogue.
        behaviour: its provider's, written without it.
        folder: empty; its receipts stand there.
        journal: takes what really happened.
    """
    began = real.perf_counter()
    found = Checked(contract.id, contract.provider, contract.protection.kind.value)
    bench = Bench(folder, behaviour)
    try:
        try:
            asked = asked_for(contract, behaviour)
        except PayloadRefused as refused:
            found.misfits.append(f"it is played with a payload that its request has no use for: {refused}")
            return found
        if asked is None:
            found.misfits.append(f"the provider has no route for its request, only {behaviour.method} {behaviour.path}")
            return found
        _as_it_stands(found, bench, contract, journal)
        found.misfits += untested(contract, behaviour, asked)
        for weak in weakened(contract):
            _weaken(found, bench, weak, contract, asked)
    finally:
        bench.close()
        found.seconds = round(real.perf_counter() - began, 3)
    return found


def _as_it_stands(found: Checked, bench: Bench, contract: Contract, journal: Journal | None) -> None:
    settled, ends = False, set[Outcome]()
    for case in cases(contract, bench.behaviour):
        result = play(bench, contract, case)
        if journal is not None:
            journal.add(found.cases, result)
        found.cases += 1
        found.outcomes[f"{case.scenario}: {result.run.outcome}"] += 1
        found.unsafe += [f"{case.scenario}: {said}" for said in result.unsafe]
        found.misfits += [f"the provider has no route for {one}" for one in sorted(set(result.run.crossings.astray))]
        if case.scenario == "answered":
            found.misfits += _of_answered(result)
        settled |= case.scenario == "lost_response" and result.run.outcome is Outcome.SUCCEEDED
        ends |= {result.run.outcome} if case.scenario == "followed" else set()
    if contract.looks and contract.reconcile == "allowed" and not settled:
        found.misfits.append("none of its looks ever finds what was lost on the way back")
    named = {Outcome(end.finding) for end in contract.terminal}
    found.misfits += [f"nothing that is followed ever ends {end}" for end in sorted(named - ends)]
    found.unsafe += [f"fence: {said}" for said in fences(contract, bench.behaviour)]
    found.misfits = sorted(set(found.misfits))


def _of_answered(result: Result) -> Iterator[str]:
    """Where nothing goes wrong it is done once, and known."""
    if result.run.outcome not in (Outcome.SUCCEEDED, Outcome.ACCEPTED):
        yield f"where nothing goes wrong its outcome is {result.run.outcome}"
    if len(result.effects) != 1:
        yield f"where nothing goes wrong there are {len(result.effects)} effects"


def _weaken(found: Checked, bench: Bench, weak: Weakened, contract: Contract, asked: Asked) -> None:
    rule = equivalent(weak, contract, bench.behaviour, asked)
    if rule:
        found.equivalent[weak.clause] = rule
        return
    found.weakened += 1
    caught = _caught(bench, weak, contract)
    if caught:
        found.caught[weak.clause] = caught
    else:
        found.survivors.append(weak.clause)


def _caught(bench: Bench, weak: Weakened, contract: Contract) -> str:
    """What notices a weakened contract: the linter, or the first case that is unsafe under it."""
    new = set(lint(weak.contract)) - set(lint(contract))
    if new:
        return f"lint: {min(found.path for found in new)}"
    if weak.guards == FENCE:
        said = fences(weak.contract, bench.behaviour)
        return f"fence: {said[0]}" if said else ""
    for case in _in_order(weak, bench.behaviour):
        unsafe = play(bench, weak.contract, case).unsafe
        if unsafe:
            return f"{case.scenario}: {unsafe[0]}"
    return ""


def _in_order(weak: Weakened, behaviour: Behaviour) -> Iterator[Case]:
    first = _FIRST.get(weak.guards, ())
    for name in (*first, *(name for name in SCENARIOS if name not in first)):
        yield from SCENARIOS[name](weak.contract, behaviour)
