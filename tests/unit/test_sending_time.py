"""A write has what is left of its claim's time and no more: nothing leaves after the deadline others count from."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from counterfoil import contracts
from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.event import attempts_of, begun_of, evidence_of
from counterfoil.domain.steady import Steady
from counterfoil.domain.words import Dispatch, Finding
from counterfoil.runtime.declared import action_of, declared
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.registered import Registered
from counterfoil.store.sqlite import SqliteStore

NOON = 1_800_000_000.0
SEND_SECONDS = 10.0


class Wire:
    """Takes writes: how long each may take, and until when that is."""

    def __init__(self, clock):
        self.given, self.until, self._clock = [], [], clock

    def check(self, order):
        pass

    def send(self, order, flight, arguments=None):
        self.given.append(order.deadline_seconds)
        self.until.append(self._clock() + order.deadline_seconds)
        flight.may_have_left = True
        return Replied(status=201, headers=(("content-type", "application/json"),), body=b'{"state":"done","id":"1"}')

    async def asend(self, order, flight, arguments):
        return self.send(order, flight)


class Desk:
    """A ledger whose clock is a step further whenever it is read, and a guarded write."""

    def __init__(self, folder, step, *, awaited):
        self.clock = itertools.count(NOON, step)
        self.read = NOON
        store = SqliteStore(folder / "receipts.db", clock=self._now, uptime=self.uptime)
        self.ledger = Ledger(store, actor="agent:a")
        self.wire = Wire(lambda: self.read)
        given = declared({"account": "acct", "owner": "o", "authoriser": "l"}, "pay")
        action = action_of(given, "pay", contract=contracts.load("lab.key"), tenant=self.ledger.tenant)
        registered = Registered(action, self.wire)
        registered.awaited = awaited
        self.ledger.register(registered)
        self.pay = GuardedHttp(self.ledger, registered)

    def uptime(self):
        return Steady("here", self.read - NOON)

    def _now(self):
        self.read = next(self.clock)
        return self.read


@pytest.fixture(params=["blocking", "in a thread", "awaited", "awaited, from no loop"])
def paid(request, tmp_path):
    """Pay once by each of the ways in which an executor sends; the receipt, and what the wire was given."""
    desks = []

    def pay(step):
        desk = Desk(tmp_path, step, awaited=request.param.startswith("awaited"))
        desks.append(desk)
        order = desk.pay.order({"amount": 1}, key="k")
        if request.param in ("in a thread", "awaited"):
            return desk, asyncio.run(desk.ledger.acall(order))
        return desk, desk.ledger.call(order)

    yield pay
    for desk in desks:
        desk.ledger.close()


def test_a_write_ends_by_the_deadline_of_its_claim(paid):
    """Whatever passed between the claim and the write is taken off; the receipt's deadline is the last byte's."""
    desk, receipt = paid(0.5)
    (attempt,), _ = attempts_of(desk.ledger.store.load(receipt.id).events)
    assert desk.wire.until == [attempt.deadline]
    assert 0 < desk.wire.given[0] < attempt.send_seconds == SEND_SECONDS


def test_nothing_is_written_when_no_time_is_left(paid):
    """Its time went by before it was begun: nothing left, and that is on record."""
    desk, receipt = paid(SEND_SECONDS)
    (attempt,), _ = attempts_of(desk.ledger.store.load(receipt.id).events)
    assert (desk.wire.given, attempt.finding, receipt.dispatch) == ([], Finding.NOT_SENT, Dispatch.NOT_STARTED)


def test_an_unknown_says_since_when_its_sender_is_quiet(paid, monkeypatch):
    """The claim, and then the end of the exchange, by the clock that nobody can set; each by its own reading."""
    monkeypatch.setattr(Wire, "send", lambda *_: Silent(may_have_left=True, reason="reset"))
    readings = map(float, itertools.count(1))
    monkeypatch.setattr(Desk, "uptime", lambda _: Steady("here", next(readings)))
    desk, receipt = paid(0.5)
    claim, answer = desk.ledger.store.load(receipt.id).events
    begun, ended = begun_of(claim).steady, evidence_of(answer).steady
    assert (begun.boot, ended.boot) == ("here", "here")
    assert 0 < begun.seconds < ended.seconds
