"""The bench: the real ledger on a real file, one operation after the other, each in virtual time."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.domain.contract import Contract, ReadBudget
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.event import EventKind, begun_of, evidence_of
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import CALL, REST, REVIEW
from counterfoil.domain.words import Discrepancy, Outcome
from counterfoil.lab.behaviour.model import Behaviour
from counterfoil.lab.catalogue.clock import Clock
from counterfoil.lab.catalogue.crossing import Crossings
from counterfoil.lab.world.play import time
from counterfoil.runtime.declared import action_of, declared
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.receipt import Receipt
from counterfoil.runtime.registered import Registered
from counterfoil.store.sqlite import SqliteStore

DELIVERY_SECONDS = 60.0
"""What a deployment assumes, where it does: a request is applied or dropped within it of its last byte."""
STEPS_MAX = 60
"""More steps than any budget of looks and attempts allows: a worker that takes them all does not end."""
HURRIED = ReadBudget(looks_max=2, first_after_seconds=1.0, spacing_seconds=200.0, jitter=0.0)
"""One look while a late request may still come and one when it may not; how many there are is the contract's affair."""
_WITH_PEOPLE = frozenset({"", REVIEW, CALL, REST})


@dataclass(frozen=True, slots=True)
class Stood:
    """What an operation was said to be at a time."""

    at: float
    outcome: Outcome
    contradicted: bool
    attempts: int
    """How many had left by then."""
    seq: int
    """The last event that it follows from."""


@dataclass(slots=True)
class Run:
    """One operation from its call to its end."""

    crossings: Crossings
    stood: list[Stood] = field(default_factory=list)
    key: str = ""
    settled_in_time: bool = True
    begun: int = 0
    """How many attempts are on record."""
    effects: dict[int, str] = field(default_factory=dict)
    """What the evidence says took place, by the event it stands in."""

    def effect_at(self, seq: int) -> str:
        """The last effect that was evidenced up to an event."""
        return next((self.effects[n] for n in sorted(self.effects, reverse=True) if n <= seq and self.effects[n]), "")

    @property
    def outcome(self) -> Outcome:
        """What it came to."""
        return self.stood[-1].outcome


class Bench:
    """One contract's place: a receipts file and a ledger that lives in virtual time.

    Args:
        folder: where its receipts stand.
        behaviour: says with what it is played.
    """

    def __init__(self, folder: Path, behaviour: Behaviour) -> None:
        self.clock = Clock()
        changed: Any = time
        changed.world = self.clock
        self.behaviour = behaviour
        self._store = SqliteStore(folder / "receipts.db", clock=time.now, uptime=self.clock.uptime)
        self.ledger = Ledger(self._store, actor="agent:catalogue")
        self._registered: dict[tuple[int, bool], Registered] = {}
        self._kept: list[Contract] = []
        """Keeps each contract's identity its own while it names an action."""
        self._keys = 0
        self.fenced = False
        """A person fences off what is played."""

    def close(self) -> None:
        """Let go of the file."""
        self.ledger.close()
        changed: Any = time
        changed.world = None

    def play(self, crossings: Crossings, *, assumed: bool, meanwhile: Callable[[Run], None], away: float = 0.0) -> Run:
        """Call once and let a worker do whatever it may, then ask for whatever needs no person's decision.

        Args:
            crossings: the contract's way to its service.
            assumed: the deployment assumes `DELIVERY_SECONDS`.
            meanwhile: happens before each step of the worker: things end, or are shown late.
            away: seconds for which no worker runs after the call.
        """
        registered = self._action(crossings.contract, assumed=assumed)
        registered.provider = crossings
        self._keys += 1
        run = Run(crossings, key=f"played-{self._keys}")
        receipt = GuardedHttp(self.ledger, registered)(self.behaviour.played.payload, key=run.key)
        self._stood(run, receipt)
        self.clock.pass_time(away)
        if self.fenced:
            with contextlib.suppress(CounterfoilError):
                self._stood(run, self.ledger.fence(receipt.id, by="user:lea", reason="it must not happen any more"))
        if crossings.sight.broken:  # whoever need not wait for a look may ask at once
            self._asked_again(run, receipt.id, meanwhile)
        self._work(run, receipt.id, meanwhile)
        for _ in range(crossings.contract.automatic_attempts.same_key_replay + 2):
            if not self._asked_again(run, receipt.id, meanwhile):
                break
            self._work(run, receipt.id, meanwhile)
        self.clock.drain()
        self._tell(run, receipt.id)
        return run

    def _action(self, contract: Contract, *, assumed: bool) -> Registered:
        known = self._registered.get((id(contract), assumed))
        if known is not None:
            return known
        self._kept.append(contract)
        name = f"played.{len(self._registered)}"
        given: dict[str, Any] = {
            "account": self.behaviour.played.account, "owner": "lab", "authoriser": "lab", "siblings": "independent",
            "control": self.behaviour.played.control,
        }  # fmt: skip
        if assumed:
            given |= {
                "longest_delivery": DELIVERY_SECONDS, "longest_delivery_by": "lab", "longest_delivery_why": "it is so",
            }  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            played = msgspec.structs.replace(contract, read_budget=_hurried(contract)) if contract.looks else contract
            action = action_of(declared(given, name), name, contract=played, tenant="default")
        made: Any = None
        registered = self._registered[id(contract), assumed] = Registered(action, made)
        self.ledger.register(registered)
        return registered

    def _work(self, run: Run, operation: str, meanwhile: Callable[[Run], None]) -> None:
        """Take every step that a worker would, each when it is due."""
        for _ in range(STEPS_MAX):
            meanwhile(run)
            stands = self._stands(operation)
            if stands.step in _WITH_PEOPLE:
                return
            self.clock.pass_time(max(0.0, stands.due_at - self.clock.now))
            self._stood(run, self.ledger.work(operation))
        run.settled_in_time = False

    def _asked_again(self, run: Run, operation: str, meanwhile: Callable[[Run], None]) -> bool:
        """Ask for another attempt on whatever is on record, as anybody may without deciding anything."""
        meanwhile(run)
        stands, sent = self._stands(operation), len(run.crossings.sent)
        if not (stands.unresolved or stands.settled_by.startswith("absent")):
            return False
        try:
            self._stood(run, self.ledger.attempt(operation, by="lab", reason="is it safe?"))
        except CounterfoilError:
            return False
        return len(run.crossings.sent) > sent

    def _stands(self, operation: str) -> Operation:
        return self._store.load(operation).operation

    def _stood(self, run: Run, receipt: Receipt) -> None:
        operation = receipt.operation
        contradicted = operation.discrepancy is Discrepancy.OPEN
        run.stood.append(
            Stood(self.clock.now, operation.outcome, contradicted, len(run.crossings.sent), operation.seq)
        )  # fmt: skip

    def _tell(self, run: Run, operation: str) -> None:
        """Read on which basis each attempt went, and what the evidence says took place."""
        events = self._store.load(operation).events
        run.effects = {e.seq: evidence_of(e).effect for e in events if e.kind is EventKind.OBSERVED}
        bases = [begun_of(e).basis or "" for e in events if e.kind is EventKind.BEGUN]
        run.begun = len(bases)
        for wire, basis in zip(run.crossings.sent, bases, strict=False):  # more writes than attempts: that is unsafe
            wire.basis = str(basis)


def _hurried(contract: Contract) -> ReadBudget:
    """Two looks, of two pages each where there are any."""
    paged = any(look.next_page is not None for look in contract.looks)
    return msgspec.structs.replace(HURRIED, looks_max=HURRIED.looks_max * (1 + paged))
