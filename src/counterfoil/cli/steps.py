"""What may be done next with one operation, and what may not: a blocked step is information, with the rule for it.

Judged by the same rules that carry a step out; showing it decides nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from counterfoil.cli.hint import WHO, Hints
from counterfoil.cli.step import Step
from counterfoil.cli.terminal import safe
from counterfoil.cli.unsent import asked, for_people, not_sent
from counterfoil.domain import absence, seen
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.contract import Contract, digest
from counterfoil.domain.decision import GIVEN_UP
from counterfoil.domain.elapsed import reading_of, since_first_claim
from counterfoil.domain.event import (
    EventKind,
    History,
    assumed_delivery,
    attempts_of,
    evidence_of,
    first_begun,
)
from counterfoil.domain.fence import against_fence
from counterfoil.domain.operation import Operation
from counterfoil.domain.override import overridden_by, override_share, override_stands
from counterfoil.domain.payload import gone_said
from counterfoil.domain.retry import Situation, decide_retry
from counterfoil.domain.schedule import WAITING
from counterfoil.domain.terms import OneShot
from counterfoil.domain.words import Basis, Dispatch, Disposition, Outcome, Permission, Source
from counterfoil.runtime.export import body_of

CONDITIONS = (
    (absence.NOT_AUTHORITATIVE, "the look is authoritative"),
    (absence.NOT_STRONG, "the look shows every write answered before it"),
    (absence.LAG_UNKNOWN, "its lag is known"),
    (absence.NOT_NEVER, "absent there means that it never happened"),
    (absence.BY_ID, "it does not search by an id known only after success"),
    (absence.NO_POSITIVE, "a known item was found in the same look"),
    (absence.NO_NEGATIVE, "a random reference was not found in the same look"),
    (absence.NOT_STABLE, "pages that were read miss nothing between them"),
    (absence.NO_DELIVERY, "longest_delivery is assumed"),
    (absence.NOT_QUIESCED, "every earlier attempt is quiesced"),
    (absence.TOO_EARLY, "it was made late enough"),
    (absence.NOT_ELAPSED, "enough time had passed by a clock that nobody can set"),
)
"""What "not found" has to fulfil before it is evidence: as the calculator names its failing, and as it reads met."""


NOT_AT_HAND = "the contract the receipt pins is not at hand here: --actions FILE.yaml brings it (a module is not asked)"
OVERRIDDEN = "as many people as it took have decided it, and it goes once"


_OF_TIME = frozenset({absence.TOO_EARLY, absence.NOT_ELAPSED})


class Negative(msgspec.Struct, frozen=True, kw_only=True):
    """The latest look that found nothing and proved nothing."""

    seq: int
    missing: tuple[str, ...]
    earliest: float | None
    """Seconds since the epoch after which a negative may count; None: never, as things are."""

    @property
    def met(self) -> tuple[str, ...]:
        """The conditions that held."""
        return tuple(said for failing, said in CONDITIONS if failing not in {*self._not_asked, *self.missing})

    @property
    def not_asked(self) -> tuple[str, ...]:
        """Those that nobody asked: how late it is matters only where lateness proves something."""
        return tuple(said for failing, said in CONDITIONS if failing in self._not_asked - {*self.missing})

    @property
    def _not_asked(self) -> frozenset[str]:
        return _OF_TIME if self.earliest is None else frozenset()


def contract_at_hand(history: History, actions: str = "") -> Contract | None:
    """The very contract the receipt pins, where the catalogue or an actions file has it; None where neither does.

    Args:
        history: the operation with its events.
        actions: the actions that were named; a module is not imported only to be asked.
    """
    from counterfoil import contracts
    from counterfoil.domain.errors import CounterfoilError

    begun = first_begun(history.events)
    if begun is None:
        return None
    for named in (begun.contract_id, *_named_by(actions)):
        with contextlib.suppress(CounterfoilError):  # whoever sends is told what is wrong with it
            found = contracts.load(named)
            if digest(found) == begun.contract:
                return found
    return None


def _named_by(actions: str) -> tuple[str, ...]:
    from counterfoil.domain.errors import CounterfoilError
    from counterfoil.runtime.actions import contracts_of

    if not actions.endswith((".yaml", ".yml")):
        return ()
    try:
        return contracts_of(Path(actions))
    except CounterfoilError:
        return ()


def negative(history: History) -> Negative | None:
    """The conditions that were missing when a look last found nothing; None where no look did."""
    for event in reversed(history.events):
        if event.kind is EventKind.OBSERVED and evidence_of(event).source is Source.LOOK:
            facts = body_of(event).get("facts") or {}
            if "missing" not in facts:
                return None
            missing = tuple(str(m) for m in facts["missing"])
            if all(reading_of(e) is None for e in history.events if e.kind is EventKind.LOOKING):
                missing += (absence.NOT_ELAPSED,)  # looked for by a version that did not ask
            return Negative(seq=event.seq, missing=missing, earliest=facts.get("earliest"))
    return None


def _fields(contract: Contract | None) -> str:
    """What the contract reads in a finding: its names for the object, and what must be as it was asked for."""
    if contract is None:
        return ""
    compared = ", ".join(sorted(seen.comparable(contract)))
    return f"; its object is named by {seen.names(contract)[0]}" + (f", and {compared} compared" if compared else "")


def steps(  # noqa: PLR0913 - everything that a step is judged by
    history: History, contract: Contract | None, to: Hints, *, outcome: Outcome, now: float, every: bool = True,
    policy: str | None = None,
) -> list[Step]:  # fmt: skip
    """Name every step with whether it may be taken now.

    Args:
        history: the operation with its events.
        contract: the one the receipt pins; None where it is not at hand.
        to: makes the commands.
        every: each basis that is blocked, with its rule; else one line for all of them.
        outcome: as it reads now.
        now: seconds since the epoch.
        policy: the digest of the policy in force; None where that is not known.
    """
    operation = history.operation
    attempts, _ = attempts_of(history.events)
    gone = gone_said(history)
    if gone and not operation.unresolved:
        return [Step(name="send again, on any basis", allowed=False, because="; ".join(gone))]
    if not attempts or (operation.dispatch is Dispatch.NOT_STARTED and not operation.unresolved):
        return list(not_sent(history, to, now, policy))
    found = [] if _happened(outcome) and not operation.unresolved else [_look(history, contract, to)]
    if operation.unresolved:
        said = "kept as an operator's finding, beside what was observed" + _fields(contract)
        words = ("resolve", operation.id, f"--outcome OUTCOME --evidence NAME=VALUE {WHO}")
        # The finding is judged by the contract the receipt pins; where that is not at hand the actions bring it.
        command = to.act(*words) if contract is None else to.read(*words)
        found.append(Step(name="resolve with evidence", allowed=True, because=said, command=command))
        if every:
            found += for_people(history, to)
    elif operation.step in WAITING:
        found += asked(history, to, now, policy)
    if contract is None:
        found.append(_unjudged(history, to))
        return found
    if gone:
        found.append(Step(name="send again, on any basis", allowed=False, because="; ".join(gone)))
        return found
    if contract.fences and operation.unresolved:
        found.append(_fence(history, contract, to, attempts))
    again = list(_again(history, contract, to, attempts, now))
    return found + (_gathered(again) if every else _shortened(again))


def _unjudged(history: History, to: Hints) -> Step:
    """A further attempt whose contract nobody has here: only what people decided about it is known."""
    if override_stands(history.events) and not _ended(history.operation):
        basis = Basis.OPERATOR_OVERRIDE.value
        command = to.act("attempt", history.operation.id, f"--basis {basis} {WHO}")
        return Step(name=f"send again, {basis}", allowed=True, because=OVERRIDDEN, command=command)
    return Step(name="send again", allowed=False, because=NOT_AT_HAND)


def _shortened(found: list[Step]) -> list[Step]:
    """What is blocked on one line, and what may be done in full."""
    kept = [step for step in _gathered(found) if step.allowed]
    blocked = [step for step in found if not step.allowed]
    if blocked:
        which = "on any basis" if not kept else f"on {len(blocked)} other bases"
        kept.append(Step(name=f"send again, {which}", allowed=False, because="show --all names the rule for each"))
    return kept


def _gathered(found: list[Step]) -> list[Step]:
    """One rule that blocks several bases is said once."""
    blocked: dict[str, list[Step]] = {}
    for step in found:
        if not step.allowed:
            blocked.setdefault(step.because, []).append(step)
    kept = [msgspec.structs.replace(step, name=f"send again, {step.name}") for step in found if step.allowed]
    for because, alike in blocked.items():
        which = ", ".join(step.name for step in alike)
        name = "on any basis" if len(alike) == len(Basis) else which
        kept.append(Step(name=f"send again, {name}", allowed=False, because=because))
    return kept


def _happened(outcome: Outcome) -> bool:
    return outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED)


def _look(history: History, contract: Contract | None, to: Hints) -> Step:
    operation = history.operation
    command = to.act("reconcile", operation.id)
    against = _against_look(history, contract)
    if against:
        return Step(name="look", allowed=False, because=against)
    assert contract is not None  # noqa: S101 - it was asked
    of = f"a read; {operation.looks} of {contract.read_budget.looks_max} used"
    return Step(name="look", allowed=True, because=of, command=command)


def _against_look(history: History, contract: Contract | None) -> str:
    if not history.operation.unresolved:
        return "the operation is resolved"
    if contract is None:
        return NOT_AT_HAND
    if contract.reconcile != "allowed" or not contract.looks:
        return "the contract names no look" if not contract.looks else "the contract forbids looks"
    if history.operation.looks >= contract.read_budget.looks_max:
        return f"the read budget is spent, {history.operation.looks} of {contract.read_budget.looks_max}"
    return ""


def _fence(history: History, contract: Contract, to: Hints, attempts: tuple[Attempt, ...]) -> Step:
    """A write that makes the original impossible; what the policy says of it is asked when it is claimed."""
    _, discrepancy = attempts_of(history.events)
    against = against_fence(contract, 0, attempts, discrepancy, one_shot=OneShot.NO, reason=WHO)
    ended = _ended(history.operation)
    if against or ended:
        return Step(name="fence it off", allowed=False, because=ended or "; ".join(against))
    said = "the provider then says which of the two came first"
    command = to.act("attempt", history.operation.id, f"--fence {WHO}")
    return Step(name="fence it off", allowed=True, because=said, command=command)


def _again(
    history: History, contract: Contract, to: Hints, attempts: tuple[Attempt, ...], now: float
) -> Iterator[Step]:
    _, discrepancy = attempts_of(history.events)
    situation = Situation(
        contract=contract, attempts=attempts, discrepancy=discrepancy, now=now, elapsed=since_first_claim(history),
        longest_delivery=assumed_delivery(first_begun(history.events)),
    )  # fmt: skip
    ended = _ended(history.operation)
    for basis in Basis:
        decision = decide_retry(situation, automatic=False, basis=basis)
        name, because = basis.value, "; ".join(decision.because)
        if ended:
            yield Step(name=name, allowed=False, because=ended)
        elif basis is Basis.OPERATOR_OVERRIDE and decision.allowed and not override_stands(history.events):
            yield Step(name=name, allowed=False, because=_undecided(history))
        else:
            command = to.act("attempt", history.operation.id, f"--basis {basis.value} {WHO}")
            yield Step(name=name, allowed=decision.allowed, because=because, command=command)


def _ended(operation: Operation) -> str:
    """What a person decided that ends every further attempt; empty where nobody did."""
    if operation.disposition is Disposition.ABANDONED:
        return GIVEN_UP
    final = operation.permission in (Permission.DENIED, Permission.REVOKED)
    return f"permission is {operation.permission.value}" if final else ""


def _undecided(history: History) -> str:
    """How far an override has come; the claim itself is judged by the policy that is in force then."""
    people = overridden_by(history.events)
    if people:
        _, of = override_share(history.events)
        return f"more people must decide it: so far {safe(', '.join(people))}, {len(people)} of {of}"
    return "no override is decided; counterfoil override records one"
