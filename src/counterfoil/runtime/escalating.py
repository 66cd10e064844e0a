"""Passing up what has waited for people too long: an event on record, and a line for whoever watches the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from counterfoil.domain import care
from counterfoil.domain.command import Amend, Amended
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import ReceiptBroken
from counterfoil.domain.escalation import due, waits
from counterfoil.domain.operation import Operation
from counterfoil.domain.person import HOUSE
from counterfoil.domain.policy import escalation_of

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

NOBODY = "nobody named"
"""To whom an operation goes where no policy says it: it is on record all the same."""


class Escalating:
    """Knows when each waiting operation of a ledger is due, so that a sweep reads only those that are.

    Args:
        ledger: whose operations.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._due: dict[str, tuple[tuple[int, int], float]] = {}
        """By id: the event and the policy by which it was worked out, and when it is due."""

    def overdue(
        self, operations: list[Operation], now: float, report: Callable[[str, Exception], None]
    ) -> list[Operation]:
        """Those of the operations that must be passed up now, oldest first.

        Args:
            operations: all that wait, or are unresolved.
            now: seconds since the epoch, by the store's clock.
            report: told of each that cannot be read; the others are passed up all the same.
        """
        found: dict[str, tuple[tuple[int, int], float]] = {}
        for operation in filter(waits, operations):
            try:
                found[operation.id] = self._at(operation)
            except ReceiptBroken as error:
                report(operation.id, error)
        self._due = found
        return [o for o in operations if o.id in found and found[o.id][1] <= now]

    def _at(self, operation: Operation) -> tuple[tuple[int, int], float]:
        known, governance = self._due.get(operation.id), self._ledger.governance
        if known is not None and known[0] == (operation.seq, governance.number):
            return known
        escalation = escalation_of(governance.policy, operation.action, operation.account)
        history = self._ledger.store.load(operation.id)
        return (history.operation.seq, governance.number), due(history, escalation).at

    def escalate(self, operation: Operation) -> bool:
        """Record that it was passed up; False where somebody wrote to it meanwhile, and it is judged anew."""
        escalation = escalation_of(self._ledger.governance.policy, operation.action, operation.account)
        owner = f"owned by {operation.owner}" if operation.owner else "owned by nobody"
        who = Decider(by=HOUSE, reason=f"unsettled for too long, {owner}", seen=operation.seq)
        rule = care.escalate(who, to=escalation.to or NOBODY)
        return isinstance(self._ledger.store.write(Amend(operation=operation.id, rule=rule)), Amended)
