"""What one case of `approvals` is played with: its own receipts file, a clock, desks to call at, and people."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from counterfoil import contracts
from counterfoil.domain.contract import Contract
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.policy import Otherwise, Policy, Rule, When, digest
from counterfoil.domain.terms import Required
from counterfoil.lab import sabotage
from counterfoil.lab.credential import ENVIRONMENT, SECRETS
from counterfoil.lab.processes import Child
from counterfoil.lab.provider import ACCOUNT
from counterfoil.lab.run_folder import STORE
from counterfoil.runtime import policies
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.receipt import Receipt
from counterfoil.runtime.worker import Worker
from counterfoil.store.sqlite import SqliteStore

T = TypeVar("T")

AGENT, LEAD, DEPUTY, MIA = "agent:support", "lead", "deputy", "mia"
"""Who asks, and who may answer."""
KEY, REASON = "order-1042", "seen"
PAYLOAD: dict[str, Any] = {"order": KEY, "amount": 1500, "currency": "EUR", "publish_at": "2026-12-01", "trace": "t-1"}
IMMATERIAL = {"/trace": "names the log line only"}

SECONDS = 3600.0
"""What an approval of these cases is good for; the clock that most of them go by stands still."""
EXACT, LOSSY = "lab.lookup", "lab.key"
"""The contract of a provider that answers, and of one that does what it is asked and then says nothing."""
HAND_SECONDS = 20.0
"""How long another process may take for one call; it needs half a second."""

ASKS = Policy(
    name="everything needs one person",
    rules=(Rule(name="everything", when=When(), approval=Required(seconds=SECONDS)),),
    otherwise=Otherwise.REFUSE,
)


def asking(**changes: Any) -> Policy:
    """The same policy with another approval."""
    return ruling(approval=Required(**{"seconds": SECONDS, **changes}))


def ruling(**changes: Any) -> Policy:
    """The same policy with another rule."""
    return msgspec.structs.replace(ASKS, rules=(msgspec.structs.replace(ASKS.rules[0], **changes),))


class Clock:
    """Reads what it is set to: an expiry comes when the case says so."""

    def __init__(self) -> None:
        self._now = time.time()

    def __call__(self) -> float:
        """Read it."""
        return self._now

    def step(self, seconds: float) -> None:
        """Go forth, or back."""
        self._now += seconds


class Where(NamedTuple):
    """Where a case is played."""

    folder: Path
    port: int
    """The provider's."""
    mutant: str | None
    """For the processes that a case starts."""


class Interposed:
    """An executor's `perform` that counts a plan's effects and lets something happen before one of them."""

    def __init__(self, perform: Callable[[Any], Any], before: int, act: Callable[[], object]) -> None:
        self._perform, self._before, self._act = perform, before, act
        self.seen: list[str] = []

    def __call__(self, effect: Any) -> Any:
        """Carry one effect out."""
        self.seen.append(type(effect).__name__)
        if len(self.seen) == self._before:
            self._act()
        return self._perform(effect)


class Desk:
    """One ledger with one guarded action, as one process of a deployment has them."""

    def __init__(self, ledger: Ledger, guarded: Any) -> None:
        self.ledger, self.guarded = ledger, guarded

    def call(self, key: str | None = KEY, *, mentioned: dict[str, str] | None = None, **changes: Any) -> Receipt:
        """Call the action with the usual payload, or with one that differs."""
        payload = {name: value for name, value in {**PAYLOAD, **changes}.items() if value is not None}
        return self.ledger.call(self.guarded.order(payload, key=key, mentioned=mentioned))

    def approve(self, operation: str, by: str = LEAD, **seen: Any) -> Receipt:
        """Let a person approve it."""
        return self.ledger.decisions.approve(operation, by=by, reason=REASON, **seen)

    def revoke(self, operation: str) -> Receipt:
        """Let a person take it back."""
        return self.ledger.decisions.revoke(operation, by=LEAD, reason=REASON)

    def deny(self, operation: str, **seen: Any) -> Receipt:
        """Let a person say no."""
        return self.ledger.decisions.deny(operation, by=LEAD, reason=REASON, **seen)

    def override(self, operation: str) -> Receipt:
        """Let a person decide that it may go once more."""
        return self.ledger.decisions.override(operation, by=LEAD, reason=REASON)

    def attempt(self, operation: str, basis: str = "operator_override") -> Receipt:
        """Ask for one more attempt."""
        return self.ledger.attempt(operation, basis=basis, by=LEAD, reason=REASON)

    def sweep(self) -> None:
        """Let this ledger's worker take everything that is due."""
        Worker(self.ledger).sweep()

    @contextlib.contextmanager
    def interposed(self, before: int, act: Callable[[], object]) -> Iterator[Interposed]:
        """Let something happen before the nth effect of what is carried out at this desk."""
        executor: Any = self.ledger._executor  # noqa: SLF001 - the one place where a plan can be driven by hand
        hand = executor.perform = Interposed(executor.perform, before, act)
        try:
            yield hand
        finally:
            del executor.perform


class Scene:
    """One case's own world; everything that it opens or starts is closed with it."""

    def __init__(self, where: Where, house: contextlib.ExitStack) -> None:
        self.where, self._house = where, house
        self.clock = Clock()
        self.refused: list[str] = []
        """The errors that its attempts were answered with."""

    def ledger(
        self, *, tenant: str = "default", actor: str = AGENT, fingerprint_key: bytes | None = None, live: bool = False
    ) -> Ledger:
        """Open the case's receipts file; `live` goes by the real clock, as the other processes do."""
        store = SqliteStore(self.where.folder / STORE, clock=time.time if live else self.clock)
        ledger = Ledger(store, tenant=tenant, actor=actor, fingerprint_key=fingerprint_key)
        self._house.callback(ledger.close)
        return ledger

    def desk(self, contract: str | Contract = EXACT, *, opened: dict[str, Any] | None = None, **declared: Any) -> Desk:
        """Open a desk of its own with the refund guarded at the provider.

        Args:
            contract: its contract.
            opened: how the ledger is opened.
            declared: what is declared differently.
        """
        ledger = self.ledger(**(opened or {}))
        loaded = contracts.load(contract) if isinstance(contract, str) else contract
        said = {
            "name": "refund", "base_url": f"http://127.0.0.1:{self.where.port}", "account": ACCOUNT,
            "owner": "payments", "authoriser": "payments-lead", "secrets": dict(SECRETS), "immaterial": IMMATERIAL,
            "check": lambda **_: None, **declared,
        }  # fmt: skip
        return Desk(ledger, ledger.http(said.pop("name"), contract=loaded, **said))

    def adopt(self, ledger: Ledger, policy: Policy = ASKS) -> None:
        """Put a policy in force, whatever was before."""
        n, before = policies.in_force(ledger.store)
        who = Decider(by=LEAD, reason=REASON, seen=n)
        policies.adopt(ledger.store, policy, who, replaces=digest(before) if before else "")

    def approved(self, desk: Desk, policy: Policy = ASKS, **call: Any) -> str:
        """Put a policy in force, call, and let one person approve; the operation's id."""
        self.adopt(desk.ledger, policy)
        operation = desk.call(**call).id
        desk.approve(operation)
        return operation

    def tries(self, what: Callable[..., T], *args: Any, **named: Any) -> T | None:
        """Do what may be refused; a refusal is heard and nothing more."""
        try:
            return what(*args, **named)
        except CounterfoilError as error:
            self.refused.append(f"{type(error).__name__}: {error}")
            return None

    def hand(self, *verbs: str) -> Child:
        """Start another process at this receipts file and wait until it stands where it was told to."""
        arguments = ("--folder", str(self.where.folder), "--port", str(self.where.port), *verbs)
        argv = sabotage.command(self.where.mutant, "counterfoil.lab.approvals_hand", *arguments)
        child = Child(argv, env=ENVIRONMENT)
        self._house.callback(child.stop)
        return child


class Case(NamedTuple):
    """One case: what happens, and what must have come of it."""

    name: str
    play: Callable[[Scene], object]
    expected: str
    """In words; the figures stand beside it."""
    sent: int | None = 0
    """None: as many as were approved, whoever won."""
    permission: str = "pending"
    outcome: str = "unobserved"
    effects: int | None = None
    """None: one for each send."""
    mutates: bool = False
    """Something is changed after approval: not one byte may go."""
