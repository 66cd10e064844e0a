"""When a look at a provider's account may be made, and what becomes of one that must wait."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.stepping import NOON, claimed, observed

from counterfoil import contracts
from counterfoil.domain import looking
from counterfoil.domain.command import NewEvent, Reads
from counterfoil.domain.contract import ProviderBudget
from counterfoil.domain.event import Event, EventKind, Noted, encode
from counterfoil.domain.words import Finding

KEY = contracts.load("lab.key")
READS = Reads(tenant="t", provider="p", account="a", looks=2, per_seconds=60.0)
PAUSE = looking.Pause(until=NOON + 500, because=looking.SHARED_SPENT)


@pytest.mark.parametrize(
    ("reads", "paid", "asked_until", "found"),
    [
        (READS, (), 0.0, None),
        (READS, (NOON,), 0.0, None),
        (READS, (NOON, NOON - 10), 0.0, looking.Pause(until=NOON + 50, because=looking.SHARED_SPENT)),
        (READS, (NOON, NOON - 60), 0.0, None),
        (READS, (NOON, NOON - 10, NOON - 20), 0.0, looking.Pause(until=NOON + 50, because=looking.SHARED_SPENT)),
        (msgspec.structs.replace(READS, looks=0), (NOON,) * 9, 0.0, None),
        (READS, (), NOON + 7, looking.Pause(until=NOON + 7, because=looking.ASKED_TO_WAIT)),
        (READS, (), NOON, None),
    ],
)
def test_there_is_room_or_a_moment_when_there_is(reads, paid, asked_until, found):
    """The provider's own word first; then as many looks in a window as are shared, and the oldest of them frees one."""
    assert looking.pause(reads, paid, asked_until, NOON) == found


def waiting(**fields):
    """An unknown operation with other columns."""
    history = observed(claimed(), Finding.UNKNOWN)
    return msgspec.structs.replace(history, operation=msgspec.structs.replace(history.operation, **fields))


def test_what_waits_changes_its_due_time_alone():
    """Nothing else moves, and why it waits is on record, once however often it is put off in a row."""
    before = waiting(step="look", due_at=NOON)
    off = looking.put_off(before, PAUSE, READS)
    assert off.operation == msgspec.structs.replace(before.operation, due_at=NOON + 500)
    facts = {"because": looking.SHARED_SPENT, "provider": "p", "until": NOON + 500}
    (said,) = off.events
    assert said == NewEvent(kind=EventKind.NOTED, record=encode(Noted(note=looking.PUT_OFF, facts=facts)))
    last = before.events[-1]
    noted = Event(n=last.n, seq=last.seq + 1, kind=said.kind, at=NOON, record=said.record, body=None, hash=b"")
    again = looking.put_off(msgspec.structs.replace(before, events=(*before.events, noted)), PAUSE, READS)
    assert (again.operation.due_at, again.events) == (NOON + 500, ())
    other = msgspec.structs.replace(noted, record=encode(Noted(note="holds")))
    after = looking.put_off(msgspec.structs.replace(before, events=(*before.events, other)), PAUSE, READS)
    assert after.events == (said,)


@pytest.mark.parametrize("fields", [{"step": "review"}, {"step": "look", "due_at": NOON + 500}])
def test_only_a_look_that_is_owed_sooner_is_put_off(fields):
    """What people have in hand keeps its time, and what is due later than that anyway."""
    assert looking.put_off(waiting(**fields), PAUSE, READS) is None


def test_the_contract_says_what_is_shared():
    """Its bound where it names one, and whose account it is; without one only the provider's own word counts."""
    operation = waiting().operation
    plain = looking.reads_of(KEY, operation)
    assert (plain.tenant, plain.provider, plain.account, plain.looks) == (
        operation.tenant, KEY.provider, operation.account, 0,
    )  # fmt: skip
    bound = msgspec.structs.replace(KEY.read_budget, provider=ProviderBudget(looks=3, per_seconds=9.0))
    shared = looking.reads_of(msgspec.structs.replace(KEY, read_budget=bound), operation)
    assert (shared.looks, shared.per_seconds) == (3, 9.0)


def test_the_last_look_says_that_it_is_the_last():
    """Why no look follows stands on the receipt from the moment the last one is paid for."""
    assert "last_by" not in looking.paid_facts(KEY, 0, by="w", used=4, of=5)
    assert looking.paid_facts(KEY, 0, by="w", used=5, of=5)["last_by"] == "read_budget.looks_max"
