"""The queue: everything that waits for somebody, by exposure x age, and the exact count of whatever is not shown.

Nothing is filtered, cut or abandoned out of sight: what is shown and what is counted is everything there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from counterfoil.domain.action import Consequence
from counterfoil.domain.approval import decided_of, is_stale
from counterfoil.domain.decision import Verb, authority
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.escalation import due, waits
from counterfoil.domain.event import EventKind, History, attempts_of
from counterfoil.domain.lifecycle import outcome_now
from counterfoil.domain.operation import Operation
from counterfoil.domain.override import holding, override_share
from counterfoil.domain.patience import never_reached
from counterfoil.domain.policy import Escalation, Policy, breaker_of, digest, escalation_of, terms_of
from counterfoil.domain.schedule import CALL, DISPATCH, REST
from counterfoil.domain.terms import NO_POLICY, Terms
from counterfoil.domain.words import Dispatch, Outcome
from counterfoil.runtime.escalating import NOBODY
from counterfoil.runtime.policies import in_force
from counterfoil.store.breakers import counted

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What people were asked about one operation, and what they have said so far."""

    people: int
    approvers: tuple[str, ...]
    approved_by: tuple[str, ...]
    ends_at: float
    """Seconds since the epoch: of the question, or of the answer once it is given."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """One operation that waits for somebody, as it reads now."""

    operation: Operation
    outcome: Outcome
    now: float
    asked: Asked | None = None
    """None where nobody had to be asked."""
    escalates_at: float | None = None
    """None where it rests, or where its record cannot be read."""
    escalates_to: str = ""
    escalated: int = 0
    """How often it was passed up before."""
    business_owner: str = ""
    held_by: tuple[str, ...] = ()
    """Of what waits to be sent: the unresolved operations of its effect that hold it back now."""
    breaker: str = ""
    """Of the same: the open breaker that lets nothing new go."""
    put_off_until: float = 0.0
    """Until when people put its next step off; 0 where they did not, or that time is over."""
    passed_to: str = ""
    """To whom it was passed up last; empty where it never was."""
    overridden: tuple[int, int] = (0, 0)
    """How many people have allowed one more attempt, and how many it takes."""
    unreached: str = ""
    """Why no worker repeats it any more, where the provider could not be reached."""
    stale: bool = False
    """Another policy is in force than the one people were asked under: whatever they say, they are asked anew."""
    unreadable: str = ""
    """Why its events cannot be read; it stands in the queue all the same."""

    @property
    def age(self) -> float:
        """Seconds since it was asked for."""
        return max(self.now - self.operation.created_at, 0.0)

    @property
    def exposed(self) -> float:
        """The value at risk; nothing is, where nothing may have left."""
        return self.operation.value * max(self.operation.exposure, 1) if self.operation.unresolved else 0.0

    @property
    def at_stake(self) -> float:
        """The value that would be at risk once it is sent: it ranks those of which nothing is exposed."""
        return self.exposed if self.operation.unresolved else self.operation.value

    @property
    def unowned(self) -> bool:
        """Nobody is named to act on it."""
        return not self.operation.owner

    @property
    def abandoned(self) -> bool:
        """People stopped working on it while it was unresolved, and nothing has come of it since."""
        return self.operation.step == REST

    @property
    def overdue(self) -> bool:
        """It should have been passed up by now."""
        return self.escalates_at is not None and self.escalates_at <= self.now


class Fill(msgspec.Struct, frozen=True, kw_only=True):
    """How much is unknown in one breaker's scope."""

    breaker: str
    exposure: float
    limit: float

    @property
    def open(self) -> bool:
        """Nothing new is dispatched there."""
        return self.exposure >= self.limit


class Asks(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the queue is to be shown."""

    owner: str | None = None
    """Only what this name owns, and what nobody does."""
    abandoned: bool = False
    """Abandoned ones too."""
    limit: int | None = None


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown, in order, and the count of everything else."""

    shown: tuple[Waiting, ...]
    cut: int
    """Left out by the limit."""
    others: int
    """Left out because somebody else owns them."""
    resting: int
    """Left out because they were abandoned."""
    every: tuple[Waiting, ...]
    """Whatever is shown: what the counts below are taken from."""

    @property
    def waiting(self) -> int:
        """How many wait; an abandoned one rests."""
        return sum(not w.abandoned for w in self.every)

    @property
    def exposed(self) -> float:
        """The value at risk in all of them, abandoned ones included."""
        return sum(w.exposed for w in self.every)

    @property
    def unowned(self) -> int:
        """How many nobody is named to act on, abandoned ones included."""
        return sum(w.unowned for w in self.every)

    @property
    def overdue(self) -> int:
        """How many should have been passed up by now."""
        return sum(w.overdue for w in self.every)

    @property
    def abandoned(self) -> tuple[int, float]:
        """How many are abandoned and still unresolved, and the age of the oldest of them in seconds."""
        ages = [w.age for w in self.every if w.abandoned]
        return len(ages), max(ages, default=0.0)


def arranged(every: Sequence[Waiting], asks: Asks) -> Queue:
    """Order everything that waits and take the part that is asked for.

    Args:
        every: all of it.
        asks: which part; whatever nobody owns is shown to everybody.
    """
    ordered = sorted(every, key=lambda w: (-w.exposed * w.age, -w.at_stake * w.age, -w.age, w.operation.n))
    resting = [] if asks.abandoned else [w for w in ordered if w.abandoned]
    working = [w for w in ordered if asks.abandoned or not w.abandoned]
    mine = [w for w in working if asks.owner is None or w.unowned or w.operation.owner == asks.owner]
    shown = mine if asks.limit is None else mine[: asks.limit]
    return Queue(
        shown=tuple(shown),
        cut=len(mine) - len(shown),
        others=len(working) - len(mine),
        resting=len(resting),
        every=tuple(ordered),
    )


# -- reading -----------------------------------------------------------------------------------------------------------


def read(ledger: Ledger) -> tuple[list[Waiting], list[Fill]]:
    """Read everything that waits for somebody, and how full each breaker of the policy in force is.

    Raises:
        InvariantBroken: a row or the policy holds a word that is none of the house's.
    """
    store = ledger.store
    number, policy = in_force(store)
    try:
        found = store.pending()
    except ValueError as error:
        raise InvariantBroken(f"a row of what waits holds a word that is none of the house's: {error}") from None
    fills = []
    for breaker in policy.breakers if policy else ():
        exposure = float(str(store.query(*counted(breaker, store.now()))[0][0]))
        fills.append(Fill(breaker=breaker.name, exposure=exposure, limit=breaker.unknown_exposure_max))
    reader = _Reader(ledger, number, policy, frozenset(fill.breaker for fill in fills if fill.open))
    return [entry for operation in found if (entry := reader.one(operation)) is not None], fills


class _Reader:
    """Reads one waiting operation after another, under the policy in force and the breakers that are open."""

    def __init__(self, ledger: Ledger, number: int, policy: Policy | None, tripped: frozenset[str]) -> None:
        self._ledger, self._number, self._policy, self._tripped = ledger, number, policy, tripped
        self._digest = digest(policy) if policy else ""

    def one(self, operation: Operation) -> Waiting | None:
        """One operation with what its events say of it; None where it was settled since it was listed."""
        escalation = escalation_of(self._policy, operation.action, operation.account)
        now = self._ledger.store.now()
        try:
            history = self._ledger.history(operation.id)
            entry = waiting_of(history, escalation, now=now, alive=self._alive(history.operation))
            if entry is not None and is_stale(authority(history), self._digest):
                entry = msgspec.structs.replace(entry, stale=True)
            return None if entry is None else self._in_the_way(entry, history)
        except ValueError as error:  # msgspec's errors are, too; a receipt that cannot be read is no receipt less
            return Waiting(
                operation=operation,
                outcome=operation.outcome,
                now=now,
                business_owner=escalation.business_owner,
                unreadable=str(error),
            )

    def _alive(self, operation: Operation) -> bool:
        """Whether an attempt is provably in hand; asked only of those that nobody has reported on."""
        if operation.dispatch is not Dispatch.STARTED or operation.outcome is not Outcome.UNOBSERVED:
            return False
        return self._ledger.get(operation.id).outcome is Outcome.UNOBSERVED

    def _in_the_way(self, entry: Waiting, history: History) -> Waiting:
        """What keeps an operation from being sent, as its claim would find it."""
        operation = entry.operation
        if operation.unresolved or operation.step not in (DISPATCH, CALL):
            return entry
        holders = tuple(o.id for o in self._ledger.store.holders(operation.effect))
        breaker = breaker_of(self._policy, operation.action, operation.account) if self._policy else None
        stops = breaker is not None and breaker.name in self._tripped and not operation.attempts
        return msgspec.structs.replace(
            entry,
            held_by=holding(history, holders, self._terms(operation)) if holders else (),
            breaker=breaker.name if breaker is not None and stops else "",
        )

    def _terms(self, operation: Operation) -> Terms:
        """What the policy in force says of it, as far as the receipt alone knows what is at risk."""
        if self._policy is None:
            return NO_POLICY
        return terms_of(
            self._policy, self._number, tenant=operation.tenant, action=operation.action, account=operation.account,
            value=operation.value, value_declared=True, consequence=Consequence.SOME,
        )  # fmt: skip


def waiting_of(history: History, escalation: Escalation, *, now: float, alive: bool = False) -> Waiting | None:
    """Say how one operation waits; None where it does not.

    Args:
        history: the operation with its events.
        escalation: what the policy in force says of it.
        now: seconds since the epoch, by the store's clock.
        alive: its worker's lock is provably held.
    """
    operation = history.operation
    if not operation.unresolved and not operation.step:
        return None
    standing = authority(history)
    asked = None
    if standing.proposed is not None:
        asked = Asked(
            people=standing.proposed.required.people,
            approvers=standing.proposed.required.approvers,
            approved_by=standing.approved_by,
            ends_at=standing.ends_at,
        )
    entry = Waiting(
        operation=operation,
        outcome=outcome_now(operation, now, alive=alive),
        now=now,
        asked=asked,
        business_owner=escalation.business_owner,
        overridden=override_share(history.events),
        unreached=never_reached(operation.step, attempts_of(history.events)[0]),
        **_cared_for(history, now),
    )
    if not waits(operation):
        return entry
    passed = due(history, escalation)
    return msgspec.structs.replace(
        entry, escalates_at=passed.at, escalates_to=passed.to or NOBODY, escalated=passed.times
    )


def _cared_for(history: History, now: float) -> dict[str, Any]:
    """What people last decided about the work on it, as far as that holds still."""
    said = [decided_of(event) for event in history.events if event.kind is EventKind.DECIDED]
    until = next((float(d.facts["until"]) for d in reversed(said) if d.decision == Verb.WAIT.value), 0.0)
    holds = until > now and history.operation.due_at == until
    passed = next((str(d.facts["to"]) for d in reversed(said) if d.decision == Verb.ESCALATE.value), "")
    return {"put_off_until": until if holds else 0.0, "passed_to": passed}
