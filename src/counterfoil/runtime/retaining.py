"""Keeping receipts no longer than the policy in force says, and erasing bodies because a person decided it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from counterfoil.domain import policy as model
from counterfoil.domain import retention
from counterfoil.domain.command import Amended, Command, Declined, Erase, Remove, Rule
from counterfoil.domain.errors import NotDecided, ReceiptBroken
from counterfoil.domain.event import ERASE, ORDINARY, History, sensitivity_of
from counterfoil.domain.operation import Operation
from counterfoil.domain.policy import Policy, retention_of
from counterfoil.runtime.given import checked_count, checked_decider, checked_reason
from counterfoil.runtime.policies import in_force

if TYPE_CHECKING:
    from counterfoil.ports.store import Store

PAGE = 256
LIMIT_MAX = 2**53
"""More operations than a file ever holds."""
REMOVED, ERASED, KEPT = "removed", "erased", "kept"


class Retained(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one operation whose time had come."""

    operation: str
    sensitivity: str
    did: str
    """`removed`, `erased` or `kept`."""
    because: tuple[str, ...] = ()
    """Why it was kept all the same."""


def erase(store: Store, operation: str, *, by: str, reason: str, how: str) -> None:
    """Null every body of one operation; twice is once.

    Raises:
        NotDecided: it is not resolved, or its record does not verify.
    """
    who = checked_decider("by", by)
    rule = retention.erase(by=who, reason=checked_reason("reason", reason), how=checked_reason("how", how, empty=True))
    reply = store.write(Erase(operation=operation, rule=rule))
    if isinstance(reply, Declined) and reply.because != (retention.NOTHING_LEFT,):
        raise NotDecided(operation, ERASE, reply.because)
    store.settle_down()


def retain(store: Store, *, by: str, limit: int | None = None, dry_run: bool = False) -> Iterator[Retained]:
    """Apply the retention of the policy in force, oldest first; each operation is one commit.

    It may be interrupted anywhere, and goes on where it is called again: what was done is on record.

    Args:
        store: whose operations.
        by: who keeps house, for the record.
        limit: operations removed or erased at most; None: all.
        dry_run: only say what would be done.

    Raises:
        BadValue: nobody who may, or no number.
    """
    who = checked_decider("by", by, house=True)
    most = None if limit is None else checked_count("limit", limit, least=0, most=LIMIT_MAX)
    return _retained(store, by=who, limit=most, dry_run=dry_run)


def _retained(store: Store, *, by: str, limit: int | None, dry_run: bool) -> Iterator[Retained]:
    after, left, erased = -1, limit, False
    try:
        while True:
            policy = in_force(store)[1]  # for each page: a change on record holds from then on
            until = _until(policy, store.now())
            page = [] if until is None else store.aged(after=after, until=until, limit=PAGE)
            if policy is None or not page:
                return
            for operation in page:
                if left == 0:
                    return
                after = operation.n
                found = _one(store, operation, policy, by=by, dry_run=dry_run)
                if found is not None:
                    changed = found.did != KEPT
                    erased = erased or (changed and not dry_run)
                    left = left - 1 if changed and left is not None else left
                    yield found
    finally:
        if erased:
            store.settle_down()


def _until(policy: Policy | None, now: float) -> float | None:
    """The latest last moment of anything that may be due; None where nothing ever is."""
    entries = policy.retention if policy else ()
    after = [s for each in entries for s in (each.bodies_seconds, each.receipts_seconds) if s is not None]
    return now - min(after) if after else None


def _one(store: Store, operation: Operation, policy: Policy, *, by: str, dry_run: bool) -> Retained | None:
    """What is due of one operation, done; None where nothing is."""
    history = store.load(operation.id)
    sensitivity = _class_of(history)
    kept = retention_of(policy, sensitivity)
    if kept is None:
        return None
    age, named = store.now() - history.operation.updated_at, model.digest(policy)
    for did, seconds in ((REMOVED, kept.receipts_seconds), (ERASED, kept.bodies_seconds)):
        if seconds is not None and age >= seconds:
            due = retention.Due(after_seconds=seconds, rule=sensitivity, policy=named, by=by)
            rule = retention.remove(due) if did == REMOVED else retention.erase(by=by, reason=_REASON, due=due)
            return _applied(
                store,
                history,
                rule,
                Retained(operation=operation.id, sensitivity=sensitivity, did=did),
                dry_run=dry_run,
            )
    return None


_REASON = "the retention of the policy in force"
_DONE = (retention.NOTHING_LEFT, retention.REMOVED_ALREADY)
"""Somebody else was sooner, or there was nothing to be done."""


def _applied(store: Store, history: History, rule: Rule, wanted: Retained, *, dry_run: bool) -> Retained | None:
    if dry_run:
        reply: object = rule(history, store.now())
    else:
        command: Command = (Remove if wanted.did == REMOVED else Erase)(operation=wanted.operation, rule=rule)
        reply = store.write(command)
        assert isinstance(reply, Amended | Declined)  # noqa: S101 - neither has a third answer
    if not isinstance(reply, Declined):
        return wanted
    if any(reason in _DONE for reason in reply.because):
        return None
    return msgspec.structs.replace(wanted, did=KEPT, because=reply.because)


def _class_of(history: History) -> str:
    try:
        return sensitivity_of(history.events)
    except ReceiptBroken:
        return ORDINARY  # it does not verify, and is kept
