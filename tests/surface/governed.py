"""Real receipts files under a policy: approvals asked and given, unknown outcomes of different ages, some abandoned."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import counterfoil
from counterfoil.domain.decision import Decider
from counterfoil.domain.policy import Escalation, Otherwise, Override, Policy, Rule, When
from counterfoil.domain.terms import Breaker, Required
from counterfoil.runtime import policies
from counterfoil.runtime.worker import Worker

HOUR = 3600.0
LONG_AGO = 1000.0
"""Hours since the policy is in force: time never runs backwards in a file, so everything is written in its order."""
POLICY = Policy(
    name="shop",
    rules=(
        Rule(
            name="large-refunds",
            when=When(actions=("refund",), above=1000.0),
            approval=Required(people=2, approvers=("dana", "mara"), seconds=30 * 24 * HOUR),
        ),
    ),
    otherwise=Otherwise.ALLOW,
    override=Override(people=1),
    breakers=(
        Breaker(name="refunds", actions=("refund",), unknown_exposure_max=600.0),
        Breaker(name="mails", actions=("mail",), unknown_exposure_max=1e6),
    ),
    escalation=(
        Escalation(actions=("refund",), after_seconds=HOUR, repeat_seconds=HOUR, to="lead", business_owner="finance"),
    ),
)


class Governed:
    """A closed receipts file under `POLICY`, and the ids of what stands in it, by key.

    Args:
        folder: where `receipts.db` is made.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "receipts.db"
        self.ids: dict[str, str] = {}
        self._answer: Exception | None = None
        with self.open(hours_ago=LONG_AGO) as ledger:
            who = Decider(by="dana", reason="agreed with finance", how="test", seen=0)
            policies.adopt(ledger.store, POLICY, who, replaces="")

    @contextlib.contextmanager
    def open(self, *, hours_ago: float = 0.0) -> Iterator[counterfoil.Ledger]:
        """Open it as it was so many hours ago."""
        with counterfoil.open(self.path, actor="agent:test", tenant="shop") as ledger:
            ledger.store._clock = lambda: time.time() - hours_ago * HOUR
            yield ledger

    def write(self, key: str, *, value: float = 10.0, hours_ago: float = 0.0, lost: bool = False, name: str = "refund"):
        """Make one call; `lost` says that its answer never came."""
        self._answer = TimeoutError("no answer") if lost else None
        with self.open(hours_ago=hours_ago) as ledger:
            guarded = self._guard(ledger, name, value)
            self.ids[key] = guarded(key).id
        return self

    def twin(self, key: str, of: str, *, value: float, hours_ago: float = 0.0):
        """Make one more call of the same effect, under a key of its own."""
        with self.open(hours_ago=hours_ago) as ledger:
            self.ids[key] = self._guard(ledger, "refund", value, key=key)(of).id
        return self

    def decide(self, key: str, verb: str, *words: object, by: str = "dana", hours_ago: float = 0.0):
        """Let a person decide on what stands there."""
        with self.open(hours_ago=hours_ago) as ledger:
            self._guard(ledger, "refund", 0.0)
            getattr(ledger.decisions, verb)(self.ids[key], *words, by=by, reason="because of it", how="test")
        return self

    def work(self) -> Governed:
        """Let a worker take what is due."""
        with self.open() as ledger:
            self._answer = None
            self._guard(ledger, "refund", 0.0)
            Worker(ledger).sweep()
        return self

    def _guard(self, ledger, name, value, key=None):
        self._value = value
        return ledger.action(
            self._send, name=name, effect=name, account="acct", owner="payments", authoriser="lead",
            key=lambda order: key or order, value=lambda order: self._value, effect_by=("/order",),
        )  # fmt: skip

    def _send(self, order: str) -> dict[str, str]:
        if self._answer is not None:
            raise self._answer
        return {"id": f"re_{order}"}

    def sqlite(self, *statements: str | tuple[str, tuple[object, ...]]) -> None:
        """Write to the closed file as whoever owns the disk would."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            for statement in statements:
                db.execute(*((statement,) if isinstance(statement, str) else statement))
            db.commit()

    def whole(self) -> Governed:
        """One of everything that waits, oldest first, and one that does not; the last refund opens the breaker."""
        self.write("left", value=50.0, hours_ago=100, lost=True).decide("left", "abandon", hours_ago=99)
        self.write("old", value=300.0, hours_ago=30, lost=True)
        self.write("note-7", value=1.0, hours_ago=9, lost=True, name="mail")
        self.write("may-go", value=2000.0, hours_ago=3).decide("may-go", "approve", by="mara", hours_ago=2.5)
        self.decide("may-go", "approve", by="dana", hours_ago=2.2)
        self.write("asked", value=5000.0, hours_ago=2).decide("asked", "approve", by="mara", hours_ago=1.5)
        self.write("young", value=400.0, hours_ago=0.5, lost=True)
        return self.write("done", value=5.0, name="mail")
