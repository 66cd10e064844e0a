"""Look once after a success, where its action declares that: what the look says is evidence beside the answer."""

from __future__ import annotations

from counterfoil.domain import looking, postcondition
from counterfoil.domain.action import Action, Draw
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.event import History, attempts_of
from counterfoil.domain.payload import SALT_BYTES, frozen_payload
from counterfoil.plans import observing
from counterfoil.plans.dispatch import stands
from counterfoil.plans.effects import Ended, Plan
from counterfoil.plans.reconcile import look_for, next_look


def confirm(history: History, action: Action, draw: Draw, *, by: str) -> Plan[Ended]:
    """Look once at what succeeded and record what it says; a mismatch opens a discrepancy and lowers nothing.

    Args:
        history: the operation as it stands.
        action: its action; its contract names the looks.
        draw: a random reference for the negative control, and salts.
        by: who looks.
    """
    attempts, _ = attempts_of(history.events)
    index, payload = next_look(history, action, attempts), frozen_payload(history)
    if index is None or payload is None:
        why = "its payload was erased" if payload is None else "the contract names no look that can be made"
        return stands(history, because=(why,))
    contract = action.contract
    reply = yield Amend(
        operation=history.operation.id, rule=postcondition.pay(contract, index, by=by),
        reads=looking.reads_of(contract, history.operation),
    )  # fmt: skip
    if isinstance(reply, Declined):
        return stands(reply.history or history, because=reply.because)
    assert isinstance(reply, Amended)  # noqa: S101 - an Amend has no third answer
    # Crash here: the read is paid and not made; the success stands as it was answered (test_crash_in_confirmation).
    evidence = yield from look_for(reply.history, action, draw, index, payload, by=by)
    evidence = postcondition.judged(evidence, contract.looks[index])
    operation = yield from observing.append(
        history.operation.id, evidence, contract, salt=draw.salts[:SALT_BYTES], jitter=draw.jitter
    )
    return stands(History(operation=operation, events=reply.history.events))
