"""One receipt that cannot be read holds up no other, and is not hidden."""

from __future__ import annotations

from functools import partial

import pytest
from tests.cases.people import MARA, Tool, asks

import counterfoil
from counterfoil.domain.errors import BadValue, InvariantBroken, ReceiptBroken
from counterfoil.domain.event import encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.identifier import row_number
from counterfoil.domain.words import Finding, Outcome, Source
from counterfoil.runtime import queue
from counterfoil.runtime.worker import Worker
from counterfoil.store.rows import EVENTS

BLANKS = {
    "how a number": b'{"decision":"assign","by":"mara","reason":"r","how":5,"facts":{}}',
    "no JSON": b'{"decision":"assign","by":"d"na"}',
    "no UTF-8": b'{"decision":"assign","by":"\xff","reason":"r","facts":{}}',
}


@pytest.fixture
def ledger(tmp_path):
    """A book in which two operations are unknown, and one of them was decided on."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:q") as opened:
        yield opened


@pytest.mark.parametrize("record", BLANKS.values(), ids=BLANKS)
def test_everything_else_goes_on(ledger, record):
    """The worker takes the others' steps, names the broken one by its id, and so do reading and looking at it."""
    pay = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError(), TimeoutError())
    broken, other = pay.call("o1"), pay.call("o2")
    ledger.decisions.assign(broken.id, "lea", **MARA)
    with ledger.store.lead() as db:
        db.execute("DROP TRIGGER event_is_final")
        db.execute("UPDATE event SET record = ? WHERE kind = 'decided'", (record,))
        db.execute("UPDATE operation SET step = 'recover', due_at = 0 WHERE unresolved > 0")
    told = []
    Worker(ledger, lambda operation, what: told.append((operation, what))).sweep()
    assert {operation for operation, what in told if isinstance(what, ReceiptBroken)} == {broken.id}
    assert other.id in {operation for operation, what in told if not isinstance(what, Exception)}
    for act in (partial(ledger.attempt, by="mara"), partial(ledger.decisions.override, **MARA)):
        with pytest.raises(ReceiptBroken, match=broken.id[:15]) as error:
            act(broken.id)
        assert isinstance(error.value, InvariantBroken)
        assert error.value.code == "CF-299"
    assert pay.call("o2").outcome is Outcome.UNKNOWN
    assert pay.call("o3").outcome is Outcome.SUCCEEDED
    waiting, _ = queue.read(ledger)
    assert [entry.operation.id for entry in waiting if entry.unreadable] == [broken.id]


@pytest.fixture
def unread(ledger):
    """The ids of two unknown operations; what was observed of the first cannot be read."""
    pay = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError(), TimeoutError())
    broken, other = pay.call("o1").id, pay.call("o2").id
    with ledger.store.lead() as db:
        db.execute("DROP TRIGGER event_is_final")
        where = "id / ? = ? AND kind = 'observed'"
        db.execute(f"UPDATE event SET record = x'7b' WHERE {where}", (EVENTS, row_number(broken)))
        db.execute("UPDATE operation SET step = 'recover', due_at = 0 WHERE unresolved > 0")
    return broken, other


def test_a_step_that_meets_it_is_told_of(ledger, unread):
    """The worker's own step of it fails, and the next one is taken all the same."""
    broken, other = unread
    with pytest.raises(ReceiptBroken):
        ledger.work(broken)
    told = []
    Worker(ledger, lambda operation, what: told.append((operation, what))).sweep()
    assert {operation for operation, what in told if isinstance(what, ReceiptBroken)} == {broken}
    assert other in {operation for operation, what in told if not isinstance(what, Exception)}


def test_a_store_that_says_what_cannot_be_stops_the_worker(ledger, unread, monkeypatch):
    """One receipt is one receipt; of anything wider nothing more is done."""

    def wrong(operation):
        raise InvariantBroken("the store says what cannot be")

    monkeypatch.setattr(ledger, "work", wrong)
    with pytest.raises(InvariantBroken):
        Worker(ledger).sweep()


def test_its_spooled_answer_is_left_where_it_is(ledger, unread):
    """And holds up no other's."""
    broken, other = unread
    told = Evidence(source=Source.LATE_ANSWER, finding=Finding.UNKNOWN, attempt=1, quiesced=True)
    for operation in unread:
        ledger.spool.put(operation, encode(told), None)
    assert ledger.drain() == 1
    assert [operation for _, operation, _, _ in ledger.spool.waiting()] == [broken]
    assert ledger.get(other).operation.seq == 3


WRONG = (5, None, b"x", ["x"], {"x": 1}, 1.5)


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("name", ["by", "reason", "how"])
def test_the_library_writes_no_such_record(ledger, name, value):
    """Whatever is no text is refused at the door of every decision."""
    lost = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError()).call("o1")
    said = {"by": "mara", "reason": "r", "how": "test", name: value}
    decide = ledger.decisions
    for entry in (
        lambda: decide.assign(lost.id, "lea", **said),
        lambda: decide.abandon(lost.id, **said),
        lambda: decide.investigate(lost.id, channel="c", **said),
        lambda: ledger.resolve(lost.id, "rejected", evidence={"id": "x"}, **said),
        lambda: ledger.erase(lost.id, **said),
    ):
        with pytest.raises(BadValue, match=name):
            entry()
    assert ledger.get(lost.id).operation.seq == lost.operation.seq


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", float("nan"), 10**400], ids=str)
def test_numbers_are_checked_at_the_door(ledger, value):
    """An event, a limit, a number of reads, a time: each is one, within its bounds."""
    lost = Tool(asks(ledger, actions=("none",)), "pay", TimeoutError()).call("o1")
    decide, said = ledger.decisions, {"by": "mara", "reason": "r"}
    entries = [
        lambda: decide.assign(lost.id, "lea", seen=value, **said),
        lambda: decide.investigate(lost.id, channel="c", looks=value, **said),
        lambda: ledger.resolve(lost.id, "rejected", evidence={"id": "x"}, attempt=value, by="mara"),
        lambda: ledger.resolve(lost.id, "rejected", evidence={"id": "x"}, seen=value, by="mara"),
        lambda: list(ledger.retain(limit=value)),
    ]
    if value != 1.5:
        entries.append(lambda: decide.wait_until(lost.id, value, **said))
    for entry in entries:
        with pytest.raises(BadValue) as error:
            entry()
        assert error.value.code == "CF-109"
