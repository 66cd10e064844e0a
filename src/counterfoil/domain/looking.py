"""What a look costs before it is made: one of its operation's own reads, and one of those that an account shares."""

from __future__ import annotations

import msgspec

from counterfoil.domain.care import looks_granted
from counterfoil.domain.command import Amendment, Declined, NewEvent, Reads, Rule
from counterfoil.domain.contract import Contract
from counterfoil.domain.event import EventKind, History, Noted, encode, read
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import FOLLOW, LOOK

NOT_DUE = "the next look is not due yet"
SHARED_SPENT = "the reads that all share at this provider and account are spent for now"
ASKED_TO_WAIT = "the provider asked that nobody of this account reads yet"
LATER = frozenset({NOT_DUE, SHARED_SPENT, ASKED_TO_WAIT})
"""Reasons that only put a look off: its step stays what it is, and nobody is handed anything."""
PUT_OFF = "a look waits"
SHARED_SECONDS_MAX = 3600.0
"""For how long one operation's Retry-After binds others: after that one of them asks, and hears it again."""


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Until when no look may be made at a provider's account, and why."""

    until: float
    because: str


def reads_of(contract: Contract, operation: Operation) -> Reads:
    """With whom a look of an operation shares what the provider allows."""
    shared = contract.read_budget.provider or None
    return Reads(
        tenant=operation.tenant,
        provider=contract.provider,
        account=operation.account,
        looks=shared.looks if shared else 0,
        per_seconds=shared.per_seconds if shared else 0.0,
    )


def paid_facts(contract: Contract, look: int, *, by: str, used: int, of: int) -> dict[str, object]:
    """What is recorded of a look that is paid for; of the last one that it is the last, and by which rule."""
    facts: dict[str, object] = {"look": look, "by": by, "used": used, "of": of, "provider": contract.provider}
    return facts | ({"last_by": "read_budget.looks_max"} if used >= of else {})


def pay_look(contract: Contract, look: int, *, asked: bool, by: str) -> Rule:
    """Count one read before it is made; refused when the budget is spent or the next read is not due.

    Args:
        contract: its read budget.
        look: which of its looks.
        asked: a person asked for it now, so spacing does not apply; the budget does.
        by: who reads.
    """

    def rule(history: History, now: float) -> Amendment | Declined:
        operation = history.operation
        budget = contract.read_budget
        most = budget.looks_max + looks_granted(history.events)
        against = _against_look(operation, contract, now, most=most, asked=asked)
        if against:
            return Declined(because=against)
        paid = msgspec.structs.replace(operation, looks=operation.looks + 1, due_at=now + budget.spacing_seconds)
        facts = paid_facts(contract, look, by=by, used=paid.looks, of=most)
        note = Noted(note="look", facts=facts, steady=history.read)
        return Amendment(operation=paid, events=(NewEvent(kind=EventKind.LOOKING, record=encode(note)),))

    return rule


def _against_look(operation: Operation, contract: Contract, now: float, *, most: int, asked: bool) -> tuple[str, ...]:
    failed = {
        "the operation is resolved": not operation.unresolved,
        "the contract forbids looks": contract.reconcile != "allowed" or not contract.looks,
        "the read budget is spent": operation.looks >= most,
        NOT_DUE: not asked and now < operation.due_at,
    }
    return tuple(reason for reason, fails in failed.items() if fails)


def pause(reads: Reads, paid: tuple[float, ...], asked_until: float, now: float) -> Pause | None:
    """Whether nobody may look at a provider's account now; None while there is room.

    Args:
        reads: what is shared, and with whom.
        paid: when the looks of the last `per_seconds` were paid for, newest first.
        asked_until: until when the provider asked to be left alone; 0 where it did not.
        now: by the store's clock.
    """
    if asked_until > now:
        return Pause(until=asked_until, because=ASKED_TO_WAIT)
    if reads.looks and len(paid) >= reads.looks:
        free = paid[reads.looks - 1] + reads.per_seconds
        return Pause(until=free, because=SHARED_SPENT) if free > now else None
    return None


def put_off(history: History, found: Pause, reads: Reads) -> Amendment | None:
    """Move the look that is owed to when it may be made, on record once in a row; None where nothing is to be moved.

    Nothing else of the operation changes: what waits stays unknown, and none of its own reads is used.
    """
    operation = history.operation
    if operation.step not in (LOOK, FOLLOW) or operation.due_at >= found.until:
        return None
    last, events = history.events[-1], tuple[NewEvent, ...]()
    if last.kind is not EventKind.NOTED or read(_noted, last).note != PUT_OFF:
        facts = {"because": found.because, "provider": reads.provider, "until": found.until}
        events = (NewEvent(kind=EventKind.NOTED, record=encode(Noted(note=PUT_OFF, facts=facts))),)
    return Amendment(operation=msgspec.structs.replace(operation, due_at=found.until), events=events)


_noted = msgspec.json.Decoder(Noted)
