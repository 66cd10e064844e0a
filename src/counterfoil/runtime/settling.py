"""What is done about an operation after its call: looking, trying again, finding out, deciding, removing.

The plans of it are imported by whoever needs them: a call that goes well needs none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from counterfoil.domain.action import Asked, Draw, Order
from counterfoil.domain.canonical import NotCanonical
from counterfoil.domain.errors import (
    BadValue,
    NoBasis,
    NoSuchOperation,
    NotDecided,
    PayloadRefused,
    ReceiptBroken,
    UnknownAction,
)
from counterfoil.domain.event import History
from counterfoil.domain.words import Basis, Standing
from counterfoil.plans import dispatch as dispatching
from counterfoil.plans import observing
from counterfoil.plans.effects import Ended, Plan
from counterfoil.runtime.drive import drive
from counterfoil.runtime.given import checked_decider, checked_reason, checked_seen

if TYPE_CHECKING:
    from counterfoil.domain.evidence import Evidence
    from counterfoil.plans.late import Taken
    from counterfoil.ports.store import Store
    from counterfoil.runtime.decisions import Decisions
    from counterfoil.runtime.executor import Executor
    from counterfoil.runtime.feeding import Feeding
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.receipt import Receipt
    from counterfoil.runtime.registered import Registered
    from counterfoil.runtime.retaining import Retained
    from counterfoil.runtime.spool import Spool
    from counterfoil.runtime.unmatched import Unmatched

T = TypeVar("T")

_EXPLICIT = (Basis.NOT_SENT, Basis.ABSENCE_PROVEN, Basis.SAME_KEY_REPLAY, Basis.REJECTED_WITHOUT_EFFECT)
"""What `attempt` tries in turn; an override must be asked for by name, and be on record."""


class Settling:
    """The part of a ledger that acts on operations which exist; `Ledger` is the whole."""

    actor: str
    store: Store
    spool: Spool
    _executor: Executor
    get: Callable[[str], Receipt]
    _receipt: Callable[[Ended], Receipt]

    def _carry(self, plan: Callable[[Draw], Plan[T]]) -> T:
        raise NotImplementedError

    @property
    def decisions(self) -> Decisions:
        """What people decide about this ledger's operations."""
        from counterfoil.runtime.decisions import Decisions

        return Decisions(cast("Ledger", self))

    @property
    def evidence(self) -> Feeding:
        """What somebody hands in: late answers, webhooks and statements."""
        from counterfoil.runtime.feeding import Feeding

        return Feeding(cast("Ledger", self))

    def take_in(self, operation: str, evidence: Evidence) -> Taken:
        """Put evidence that was handed in and judged on record, once; it overwrites nothing."""
        from counterfoil.plans.late import feed

        contract = self.registered_for(operation).action.contract
        return self._carry(lambda draw: feed(operation, evidence, contract, draw))

    def registered(self, action: str) -> Registered:
        """The registered action of a name; raises `UnknownAction`."""
        return self._executor.registered(action)

    def registered_for(self, operation: str) -> Registered:
        """The registered action of a stored operation; raises `NoSuchOperation` or `UnknownAction`."""
        return self._executor.registered(self.store.load(operation).operation.action)

    def _order_of(self, history: History, registered: Registered) -> Order:
        """The order of a stored operation, under the policy in force now."""
        from counterfoil.plans.recover import order_of

        order = order_of(history, registered.action)
        return msgspec.structs.replace(order, terms=registered.terms(order.value))

    def reconcile(self, operation: str) -> Receipt:
        """Recover an operation and look once now; a look that says nothing leaves it as it is."""
        from counterfoil.plans.reconcile import reconcile
        from counterfoil.plans.recover import recover

        history = self.store.load(operation)
        registered = self._executor.registered(history.operation.action)

        def plan(draw: Draw) -> Plan[Ended]:
            recovered = yield from recover(history, registered.action, draw)
            return (yield from reconcile(recovered, registered.action, draw, asked=True, by=self.actor))

        return self._receipt(self._carry(plan))

    def confirm(self, operation: str) -> Receipt:
        """Look once at what succeeded; a mismatch opens a discrepancy, and the success is never lowered."""
        from counterfoil.plans.confirm import confirm

        history = self.store.load(operation)
        action = self._executor.registered(history.operation.action).action
        return self._receipt(self._carry(lambda draw: confirm(history, action, draw, by=self.actor)))

    def unmatched(
        self, action: str, *, of: dict[str, str] | None = None, since: float | None = None, until: float | None = None
    ) -> Unmatched:
        """List what the provider has in an account and no receipt explains; it reads, and changes nothing.

        Args:
            action: whose contract has a list look.
            of: payload fields by which that list is asked for, such as the channel or the payment.
            since: only what came to be from then on, in seconds since the epoch.
            until: only what came to be before then.

        Raises:
            BadValue: the contract forbids looks, has no list, or does not say when things came to be.
        """
        from counterfoil.plans.survey import survey
        from counterfoil.runtime import unmatched

        registered = self.registered(action)
        place = unmatched.place_of(registered.action.contract, windowed=since is not None or until is not None)
        payload = unmatched.payload_of(of or {})
        # The provider first, and the receipts after it: whatever had left by then has one by now.
        listed = self._carry(lambda draw: survey(registered.action, draw, look=place, payload=payload))
        return unmatched.report(cast("Ledger", self), registered, place, listed, since=since, until=until)

    def work(self, operation: str) -> Receipt:
        """Do the next automatic step of one operation: recover, look, replay, send, or hand it to a person."""
        from counterfoil.plans.recover import work

        history = self.store.load(operation)
        registered = self._executor.registered(history.operation.action)
        order = self._order_of(history, registered)
        return self._receipt(self._carry(lambda draw: work(history, order, draw, by=draw.worker)))

    def drain(self) -> int:
        """Take spooled answers into the store; return how many it took.

        An answer of an operation or action that is not known here, or of a receipt that cannot be read, is left where
        it is, and holds up no other.
        """
        taken = 0
        for path, operation, record, body in self.spool.waiting():
            try:
                action = self._executor.registered(self.store.load(operation).operation.action).action
                drive(observing.take(operation, record, body, action.contract), self._executor)
            except (NoSuchOperation, UnknownAction, ReceiptBroken):
                continue
            self.spool.taken(path)
            taken += 1
        return taken

    def attempt(
        self, operation: str, *, basis: str | Basis | None = None, by: str = "", reason: str = "", how: str = ""
    ) -> Receipt:
        """Dispatch an operation again on a basis that is on record; never on a guess.

        Args:
            operation: its id.
            basis: the one basis to judge; None tries each that needs no override.
            by: who asks; this ledger's actor where nobody is named.
            reason: why, in their words.
            how: how they were authenticated.

        Raises:
            BadValue: an agent asks, in its own name or by this ledger's actor: it decides nothing.
            NoBasis: nothing on record permits another attempt.
        """
        wanted = _basis(basis)
        asked = Asked(
            by=checked_decider("by", by or self.actor), reason=checked_reason("reason", reason, empty=True),
            how=checked_reason("how", how, empty=True),
        )  # fmt: skip
        bases = (wanted,) if wanted else _EXPLICIT
        return self._once_more(operation, functools.partial(dispatching.further, bases=bases, asked=asked))

    def fence(self, operation: str, *, by: str, reason: str, how: str = "", index: int = 0) -> Receipt:
        """Make the original impossible, because a person decided it: the provider says which of the two came first.

        If the fence won, nothing of the operation happened or will; if it lost, a look says what did. Unanswered it is
        unknown like any other attempt. Never sent without a person, nor where contract or policy forbids it.

        Args:
            operation: its id.
            by: who decided it.
            reason: why, in their words.
            how: how they were authenticated.
            index: which of the contract's fences.

        Raises:
            BadValue: an agent asks, or no reason is given.
            NoBasis: it may not be sent now; why stands in the error.
        """
        from counterfoil.plans.fence import fence

        asked = Asked(
            by=checked_decider("by", by), reason=checked_reason("reason", reason),
            how=checked_reason("how", how, empty=True), fence=index,
        )  # fmt: skip
        return self._once_more(operation, functools.partial(fence, asked=asked))

    def _once_more(self, operation: str, attempt: Callable[[Order, Draw, History], Plan[Ended]]) -> Receipt:
        """Take up what was left behind, then attempt it under its stored order; refused where nothing permits it."""
        from counterfoil.plans.recover import recover

        history = self.store.load(operation)
        registered = self._executor.registered(history.operation.action)
        order = self._order_of(history, registered)

        def plan(draw: Draw) -> Plan[Ended]:
            recovered = yield from recover(history, registered.action, draw)
            return (yield from attempt(order, draw, recovered))

        ended = self._carry(plan)
        if ended.standing is not Standing.NEW:
            raise NoBasis(operation, ended.because or ("the outcome is settled",))
        return self._receipt(ended)

    def resolve(  # noqa: PLR0913 - a finding has this many parts
        self,
        operation: str,
        outcome: str,
        *,
        evidence: dict[str, Any],
        by: str,
        reason: str = "",
        how: str = "",
        attempt: int | None = None,
        seen: int | None = None,
    ) -> Receipt:
        """Record an operator's finding, with the evidence it rests on; it is evidence like any other.

        What evidence says happened is never lowered by it; where evidence contradicts evidence, it settles that.

        Args:
            operation: its id.
            outcome: `succeeded`, `rejected` or `accepted`.
            evidence: what was seen, by field; empty is refused.
            by: who says so.
            reason: why, in their words.
            how: how they were authenticated.
            attempt: which attempt it speaks of; None: the whole operation.
            seen: the last event of what they saw; None for what stands there now.

        Raises:
            BadValue: an agent says so, or there is no evidence, or a word is none.
            NotDecided: something was written since they saw it.
        """
        from counterfoil.plans.finding import find
        from counterfoil.runtime.resolving import finding_of

        who, why = checked_decider("by", by), checked_reason("reason", reason, empty=True)
        known, saw = checked_reason("how", how, empty=True), checked_seen(seen)
        history = self.store.load(operation)
        contract = self._executor.registered(history.operation.action).action.contract
        found = finding_of(
            history, outcome, evidence=evidence, by=who, reason=why, how=known, attempt=attempt, contract=contract
        )
        last = history.operation.seq if saw is None else saw
        try:
            declined = self._carry(lambda draw: find(operation, found, contract, seen=last, draw=draw))
        except NotCanonical as error:  # nothing of it was recorded
            raise PayloadRefused(error.pointer.removeprefix("/facts"), error.problem) from None
        if declined:
            raise NotDecided(operation, "resolve", declined)
        return self.get(operation)

    def erase(self, operation: str, *, by: str, reason: str, how: str = "") -> Receipt:
        """Null the payload and the results of one resolved operation for good; raises `NotDecided`."""
        from counterfoil.runtime import retaining

        retaining.erase(self.store, operation, by=by, reason=reason, how=how)
        return self.get(operation)

    def retain(self, *, by: str = "house", limit: int | None = None, dry_run: bool = False) -> Iterator[Retained]:
        """Remove and erase what the policy in force keeps no longer, oldest first, as far as it is iterated over."""
        from counterfoil.runtime import retaining

        return retaining.retain(self.store, by=by, limit=limit, dry_run=dry_run)


def _basis(named: str | Basis | None) -> Basis | None:
    if named is None:
        return None
    try:
        return Basis(named)
    except ValueError:
        raise BadValue("basis", named, wanted=f"one of {', '.join(b.value for b in Basis)}") from None
