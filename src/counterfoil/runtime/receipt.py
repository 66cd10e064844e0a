"""The receipt a caller holds: what is known of one operation, and what may be done next."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from counterfoil.domain.errors import (
    BadValue,
    CounterfoilError,
    Held,
    NotAuthorized,
    NotRecorded,
    NotSent,
    NotSettled,
    OutcomeUnknown,
    Rejected,
    ResultGone,
    Unavailable,
)
from counterfoil.domain.lifecycle import (
    ASK_OPERATOR,
    CALL_AGAIN,
    GET_OUTCOME,
    USE_RESULT,
    WAIT,
    lifecycle,
    outcome_now,
    permission_now,
    permitted,
)
from counterfoil.domain.operation import Operation
from counterfoil.domain.result import ERASED, NOT_KEPT, REMOVED
from counterfoil.domain.words import Discrepancy, Dispatch, Disposition, Lifecycle, Outcome, Permission, Standing
from counterfoil.plans.effects import Ended

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

WAIT_STEP_SECONDS = 0.2
"""Between two readings while a caller waits."""


def refused_for_model(refusal: Exception) -> dict[str, Any]:
    """Say what a model may know of a call that got no receipt: a code and fixed words.

    An error's own text is for people: it may quote arguments, and suggest what only they may decide.
    """
    if isinstance(refusal, NotRecorded):
        return {
            "operation": refusal.operation, "outcome": Outcome.UNKNOWN.value, "effect": "may have happened",
            "retry": "blocked", "recovery_action": "no_replay", "permitted": [GET_OUTCOME, WAIT, ASK_OPERATOR],
        }  # fmt: skip
    code = refusal.code if isinstance(refusal, CounterfoilError) else BadValue.code
    told = {"error": code, "effect": "not sent by this call", "says": _SAID.get(code, _SAID["CF-000"])}
    if isinstance(refusal, Unavailable):
        return {**told, "permitted": [CALL_AGAIN, ASK_OPERATOR]}
    if code in _CORRECTABLE:
        return {**told, "permitted": [CORRECT_ARGUMENTS, ASK_OPERATOR]}
    return {**told, "retry": "blocked", "permitted": [ASK_OPERATOR]}


CORRECT_ARGUMENTS = "correct_arguments"
_CORRECTABLE = frozenset({"CF-103", "CF-109"})
_SAID = {
    "CF-000": "the call could not be made as it is",
    "CF-102": "this key belongs to an earlier call with other arguments",
    "CF-103": "an argument has a value or a type that cannot be sent",
    "CF-105": "the action's own check refused these arguments now",
    "CF-109": "the arguments are not those of the tool's schema",
    "CF-301": "nothing was decided: the store is busy",
    "CF-302": "nothing was decided: the store cannot be written",
}
"""What each refusal means, in fixed words."""


class Receipt:
    """One operation as this call found or left it. Outcomes are values: nothing here raises but `expect`."""

    __slots__ = (
        "_alive", "_ledger", "_now", "_sendable", "because", "error", "gone", "kept", "operation", "removed",
        "result", "standing",
    )  # fmt: skip

    def __init__(
        self, ended: Ended, ledger: Ledger, *, now: float, alive: bool, error: BaseException | None = None
    ) -> None:
        self.operation: Operation = ended.operation
        self.standing: Standing = ended.standing
        """What this call was told: new, existing, held or unresolved."""
        self.result: Any = ended.result
        self.gone: str = ended.gone
        """Why there is no result where there was one: `erased`, `removed`, or why it could not be kept; else empty."""
        self.kept: bool = ended.kept
        """Later calls get the same result; False where only this one has it, and `because` says why."""
        self.removed: bool = ended.removed
        """Retention removed its record: its key is never sent again."""
        self.because: tuple[str, ...] = ended.because
        """Why nothing was sent, in fixed sentences."""
        self.error = error
        """What a guarded function raised, its own `Rejected` too, in this process only: it is never stored."""
        self._ledger, self._now, self._alive = ledger, now, alive
        self._sendable = ended.sendable

    @property
    def id(self) -> str:
        """The operation's id, `op_...`."""
        return self.operation.id

    @property
    def permission(self) -> Permission:
        """May it go? What nobody answered in time has expired."""
        return permission_now(self.operation, self._now)

    @property
    def dispatch(self) -> Dispatch:
        """Did an attempt cross the local boundary?"""
        return self.operation.dispatch

    @property
    def outcome(self) -> Outcome:
        """What the evidence establishes; silence reads as unknown."""
        return outcome_now(self.operation, self._now, alive=self._alive)

    @property
    def disposition(self) -> Disposition:
        """What the business decided."""
        return self.operation.disposition

    @property
    def discrepancy(self) -> Discrepancy:
        """Whether evidence contradicts evidence."""
        return self.operation.discrepancy

    @property
    def lifecycle(self) -> Lifecycle:
        """The derived name of where it stands."""
        return lifecycle(self.operation, self.outcome)

    @property
    def permitted(self) -> tuple[str, ...]:
        """The steps an agent may take next."""
        steps = permitted(self.operation, self.outcome, self.permission)
        never = {USE_RESULT: self.result is None or not self.kept, CALL_AGAIN: not self._sendable}
        return tuple(step for step in steps if not never.get(step))

    def expect(self) -> Any:
        """Return the result of an effect that took place, and never None in the place of one.

        The call that made it has it also where it could not be kept for later ones; what it raises then has for its
        cause what the guarded function raised.

        Raises:
            OutcomeUnknown: it may have happened; do not send it again.
            Rejected: it did not take place.
            Held: another operation of the same effect is unresolved; nothing was sent for this one.
            NotAuthorized: it waits for people, or they said no; nothing was sent.
            NotSent: nothing left; the same call may dispatch again, unless its payload is gone.
            ResultGone: it took place, and its result was erased, removed, or could not be kept for this call.
        """
        refusal = self._refusal()
        if refusal is None:
            return self.result
        if self.error is not None:  # a slip in the guarded function is as silent as the wire: here it is seen
            raise refusal from self.error
        raise refusal

    def _refusal(self) -> NotSettled | ResultGone | None:
        """What stands in the way of a result; None: there is one."""
        outcome = self.outcome
        if self.discrepancy is Discrepancy.OPEN:
            return OutcomeUnknown(f"{self.id}: evidence contradicts evidence; an operator must look", receipt=self)
        if outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED):
            if self.gone:
                return ResultGone(f"{self.id}: the effect took place, and its result was {self.gone}", receipt=self)
            return None
        if self.standing is Standing.HELD or self.operation.held_by:
            holder = self.operation.held_by or "; ".join(self.because)
            return Held(f"{self.id}: not sent, held by {holder}", receipt=self)
        if outcome is Outcome.REJECTED:
            return Rejected(f"{self.id}: the effect did not take place", receipt=self)
        if self.dispatch is Dispatch.NOT_STARTED and self.permission is not Permission.AUTHORIZED:
            return NotAuthorized(f"{self.id}: not sent, permission is {self.permission.value}", receipt=self)
        if self.dispatch is Dispatch.NOT_STARTED:
            return NotSent(f"{self.id}: nothing was sent", receipt=self)
        if outcome is Outcome.UNOBSERVED:
            return OutcomeUnknown(
                f"{self.id}: another call of it is in progress: wait for it, do not send it again", receipt=self
            )
        return OutcomeUnknown(
            f"{self.id}: the effect may have happened; do not send it again: look, wait or ask an operator",
            receipt=self,
        )

    def for_model(self) -> dict[str, Any]:
        """Say what a model may know, built from the columns by fixed templates and never from prose."""
        outcome = self.outcome
        told: dict[str, Any] = {"operation": self.id, "outcome": outcome.value, "effect": self._effect()}
        if CALL_AGAIN not in self.permitted:
            told["retry"] = "blocked"
        if self.operation.unresolved or outcome is Outcome.UNKNOWN:
            told["recovery_action"] = "no_replay"
        if self.permission is not Permission.AUTHORIZED:
            told["permission"] = self.permission.value
        if self.operation.held_by:
            told["held_by"] = self.operation.held_by
        if outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED) and self.result is not None and self.kept:
            told["result"] = self.result
        elif outcome in (Outcome.SUCCEEDED, Outcome.ACCEPTED) and (self.gone or not self.kept):
            told["result"] = ERASED if self.gone in (ERASED, REMOVED) else NOT_KEPT
        told["permitted"] = list(self.permitted)
        return told

    def _effect(self) -> str:
        if self.discrepancy is Discrepancy.OPEN:
            return "evidence disagrees"
        match self.outcome:
            case Outcome.SUCCEEDED:
                return "happened"
            case Outcome.ACCEPTED:
                return "accepted by the provider"
            case Outcome.REJECTED:
                return "did not happen"
            case Outcome.UNKNOWN:
                return "may have happened"
            case _:
                return "not sent" if self.dispatch is Dispatch.NOT_STARTED else "in progress"

    def wait(self, seconds: float) -> Receipt:
        """Wait until people have answered and the outcome is known, or the time is over; waiting changes nothing.

        Args:
            seconds: at most so long.
        """
        until = time.monotonic() + seconds
        receipt = self.refresh()
        while receipt.in_the_balance and time.monotonic() < until:
            time.sleep(min(WAIT_STEP_SECONDS, max(until - time.monotonic(), 0.0)))
            receipt = self.refresh()
        return receipt

    @property
    def in_the_balance(self) -> bool:
        """Somebody's answer is awaited: people's, or the provider's."""
        return self.permission is Permission.PENDING or bool(self.operation.unresolved)

    def refresh(self) -> Receipt:
        """Read the operation again, as it stands now."""
        return self._ledger.get(self.id)

    def __repr__(self) -> str:
        return f"<Receipt {self.id} {self.operation.action} {self.standing} {self.outcome}>"
