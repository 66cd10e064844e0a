"""An end and a decision at once: whichever comes first stands, and nothing is sent that the other had forbidden."""

from __future__ import annotations

import os
import threading
import time

import pytest
from tests.cases.people import DANA, MARA, Tool, asks

import counterfoil
from counterfoil.domain.answer import Returned
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amend
from counterfoil.domain.consent import expire
from counterfoil.domain.errors import NotDecided
from counterfoil.domain.event import EventKind
from counterfoil.domain.words import Dispatch, Permission
from counterfoil.plans.late import late
from counterfoil.runtime.drive import drive
from counterfoil.runtime.ledger import Ledger
from counterfoil.store.sqlite import SqliteStore

ROUNDS = 1000 if os.environ.get("COUNTERFOIL_NIGHTLY") else 100
SECONDS = 60.0
HOUR = 3600.0


def at_once(*acts):
    """Start them from one barrier; what each ended with."""
    gate, ends = threading.Barrier(len(acts)), [None] * len(acts)

    def run(n, act):
        gate.wait(SECONDS)
        try:
            ends[n] = act()
        except counterfoil.CounterfoilError as refused:
            ends[n] = refused

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    return ends


@pytest.mark.slow
def test_an_approval_and_the_end_of_the_question_at_once(tmp_path):
    """Either it was answered in time and is sent once, or it expired, the person is told, and nothing is sent."""
    clock = [time.time()]
    approved = 0
    with Ledger(SqliteStore(tmp_path / "receipts.db", clock=lambda: clock[0]), actor="agent:desk") as ledger:
        pay = Tool(asks(ledger))
        for n in range(ROUNDS):
            asked = pay.call(f"o{n}")
            before, seen = len(pay.calls), asked.operation.seq

            def pass_and_record(id=asked.id):  # noqa: A002 - bound here, as the loop goes on
                clock[0] += HOUR + 1
                ledger.store.write(Amend(operation=id, rule=expire()))

            def approve(id=asked.id, seen=seen):  # noqa: A002 - the same
                return ledger.decisions.approve(id, seen=seen, **MARA)

            ends = at_once(approve, pass_and_record)
            ledger.work(asked.id)
            stands = ledger.get(asked.id)
            taken = not isinstance(ends[0], NotDecided)
            approved += taken
            # What was answered in time may still have ended before the worker came: by then nothing is sent.
            assert len(pay.calls) - before <= taken
            if not taken:
                assert stands.permission is Permission.EXPIRED
        assert [wrong for history in ledger.store.histories() for wrong in audit(history)] == []
    assert len(pay.calls) <= approved


@pytest.mark.slow
def test_a_release_and_the_settlement_of_the_holder_at_once(tmp_path):
    """Whichever lifts the hold, the held one is sent by neither, and once when its caller asks again."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:desk") as ledger:
        silent = TimeoutError("nobody answered")
        pay = Tool(ledger, "pay", *[silent] * ROUNDS, effect_by=("/order",))
        for n in range(ROUNDS):
            pay.ends[:] = [silent]
            holder = pay.call.with_key(f"first-{n}")(f"o{n}")
            held = pay.call.with_key(f"second-{n}")(f"o{n}", note="again")
            assert held.operation.held_by == holder.id
            before, seen = len(pay.calls), held.operation.seq

            def settle(id=holder.id):  # noqa: A002 - bound here, as the loop goes on
                action = ledger.registered_for(id).action
                draw = ledger._drawer.draw()
                drive(late(id, action, 1, Returned(value={"id": "pay_1"}), draw), ledger._executor)

            def release(id=held.id, seen=seen):  # noqa: A002 - the same
                return ledger.decisions.release(id, seen=seen, **DANA)

            at_once(settle, release)
            assert len(pay.calls) == before
            stands = ledger.get(held.id)
            assert stands.dispatch is Dispatch.NOT_STARTED
            pay.ends.clear()
            pay.call.with_key(f"second-{n}")(f"o{n}", note="again")
            assert len(pay.calls) == before + 1
            begun = [e for e in ledger.history(held.id).events if e.kind is EventKind.BEGUN]
            assert len(begun) == 1
        assert [wrong for history in ledger.store.histories() for wrong in audit(history)] == []
