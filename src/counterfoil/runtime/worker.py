"""The worker: acts when no caller waits. Same plans, same claim; it never makes an intent of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from counterfoil.domain import hold
from counterfoil.domain.command import Amend, Amended
from counterfoil.domain.errors import CounterfoilError, InvariantBroken, ReceiptBroken, Unavailable
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import CALL, DISPATCH, RECOVER, REST, REVIEW
from counterfoil.runtime.escalating import Escalating
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.receipt import Receipt

INTERVAL_SECONDS = 1.0
"""Between sweeps: a look waits for its own due time, so this only bounds how late a worker notices."""

PUT_OFF_SECONDS = 15.0
"""Between two tries to send what is approved and cannot go now."""

KEPT_SECONDS = 60.0
"""While something waits or is unresolved, and nobody writes: how far the time kept in the file may be behind."""

_PEOPLE = frozenset({REVIEW, CALL, REST})
"""Steps no worker takes; of `call` it only records that its approval has ended."""


class Worker:
    """Sweeps the unresolved operations of one ledger.

    Args:
        ledger: whose operations and actions.
        report: told of every step made and every error met; errors never end a sweep.
    """

    def __init__(self, ledger: Ledger, report: Callable[[str, Receipt | Exception], None] | None = None) -> None:
        self._ledger = ledger
        self._escalating = Escalating(ledger)
        self._put_off: dict[str, float] = {}
        """By id, when an approved operation is tried again that could not be sent."""
        self._report = report or (lambda _operation, _what: None)

    def sweep(self) -> int:
        """Take every step that is due now; return how many were taken."""
        store = self._ledger.store
        self._ledger.governance.refresh()  # nothing else would notice, where nothing is claimed
        waiting = store.waiting()
        # Before anything is learnt that could end a hold: what is held now is its caller's, whatever comes of its twin.
        steps = sum(map(self._hand_back, waiting)) + self._drain()
        waiting = store.waiting() if steps else waiting
        now = store.now()
        self._put_off = {o.id: self._put_off[o.id] for o in waiting if o.id in self._put_off}
        pending = (*store.unresolved(), *waiting)
        for operation in pending:
            if self._due(operation, now):
                steps += self._step(operation)
        steps += self._escalate(now)
        if pending:
            self._keep_time()
        return steps

    def _hand_back(self, operation: Operation) -> int:
        """Give back to its caller what would be sent and is held, whatever else keeps it from going."""
        store = self._ledger.store
        holders = store.holders(operation.effect) if operation.step == DISPATCH else []
        if not holders:
            return 0
        try:
            reply = store.write(Amend(operation=operation.id, rule=hold.notice(holders[0].id)))
            self._report(operation.id, self._ledger.get(operation.id))
        except CounterfoilError as error:
            self._failed(operation.id, error)
            return 0
        return int(isinstance(reply, Amended))

    def _failed(self, operation: str, error: Exception) -> None:
        """Tell of an error that holds up no other operation; of a store that says what cannot be, the worker stops."""
        if isinstance(error, InvariantBroken) and not isinstance(error, ReceiptBroken):
            raise error
        self._report(operation, error)

    def _drain(self) -> int:
        try:
            return self._ledger.drain()
        except CounterfoilError as error:
            self._failed("", error)
            return 0

    def _keep_time(self) -> None:
        try:
            self._ledger.store.keep_time(within=KEPT_SECONDS)
        except CounterfoilError as error:  # a busy or full store ends no sweep
            self._report("", error)

    def _due(self, operation: Operation, now: float) -> bool:
        if operation.action not in self._ledger.registry:
            return False
        if operation.step in _PEOPLE:
            return operation.step == CALL and 0.0 < operation.due_at < now
        # An attempt left behind is taken up at once where its worker is proven dead, not at its deadline; and what was
        # approved is sent at once, its due time being when the approval ends.
        if operation.step == DISPATCH:
            return min(self._put_off.get(operation.id, 0.0), operation.due_at) <= now
        return operation.step == RECOVER or operation.due_at <= now

    def _step(self, operation: Operation) -> int:
        if operation.step == DISPATCH:  # refused by its check or behind a breaker: not with every sweep
            self._put_off[operation.id] = self._ledger.store.now() + PUT_OFF_SECONDS
        try:
            receipt = self._ledger.work(operation.id)
        except Exception as error:  # noqa: BLE001 - an action's own check may raise anything; the others go on
            self._failed(operation.id, error)
            return 0
        self._report(operation.id, receipt)
        return int(receipt.operation.seq != operation.seq)

    def _escalate(self, now: float) -> int:
        """Pass up what has waited for people too long; an error of one holds up no other."""
        store, passed = self._ledger.store, 0
        for operation in self._escalating.overdue([*store.unresolved(), *store.waiting()], now, self._report):
            try:
                passed += self._escalating.escalate(operation)
                self._report(operation.id, self._ledger.get(operation.id))
            except CounterfoilError as error:
                self._failed(operation.id, error)
        return passed

    def run(self, stop: threading.Event, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        """Sweep until told to stop."""
        while not stop.is_set():
            try:
                self.sweep()
            except Unavailable as error:  # hours without a store end no worker: the next sweep asks again
                self._report("", error)
            stop.wait(interval_seconds)

    def pending(self) -> list[Operation]:
        """Operations that still have an automatic step to come."""
        registry = self._ledger.registry
        return [o for o in self._ledger.store.unresolved() if o.step not in _PEOPLE and o.action in registry]
