"""The store's clock stands in the file: no restart, however far its clock was set back, revives what had ended."""

from __future__ import annotations

import contextlib
import time

import pytest
from tests.cases.people import HOUR, MARA, Tool, asks

from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amend, Declined
from counterfoil.domain.errors import NotDecided
from counterfoil.domain.words import Permission
from counterfoil.runtime import worker
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.worker import Worker
from counterfoil.store import opening
from counterfoil.store.sqlite import KEPT_SECONDS, SqliteStore

NOON = 2_000_000_000.0


@pytest.fixture
def process(tmp_path):
    """Starts another process's ledger on the same file, by a clock that is set to a time."""
    with contextlib.ExitStack() as ends:

        def start(now):
            clock = [now]
            ledger = Ledger(SqliteStore(tmp_path / "receipts.db", clock=lambda: clock[0]), actor="agent:desk")
            ends.callback(ledger.close)
            return ledger, clock

        yield start


def approved_at_noon(process):
    """A ledger with something settled, and something younger that is approved for an hour; its tool and its clock."""
    ledger, clock = process(NOON)
    pay = Tool(asks(ledger))
    settled = Tool(ledger, "note").call("n1")
    asked = pay.call("o1")
    ledger.decisions.approve(asked.id, **MARA)
    return ledger, clock, settled, asked


def called_after_the_clock_was_set_back(process, asked):
    """A process that starts with a clock ten minutes past noon, and has the approved call made again and swept."""
    ledger, _ = process(NOON + 600)
    pay = Tool(ledger)
    pay.call("o1")
    Worker(ledger).sweep()
    assert [wrong for history in ledger.store.histories() for wrong in audit(history)] == []
    assert pay.calls == []
    return ledger.get(asked.id).permission


def test_an_end_that_nobody_recorded_stays_over_a_restart(process):
    """Past the end something older and settled was written to: an approval of an hour ago is not good again."""
    ledger, clock, settled, asked = approved_at_noon(process)
    clock[0] += 2 * HOUR
    ledger.decisions.assign(settled.id, "night-shift", **MARA)
    ledger.close()
    assert called_after_the_clock_was_set_back(process, asked) is Permission.PENDING


def test_what_was_refused_has_been_judged_too(process):
    """Past the end a transaction wrote nothing, because a rule declined: the time it judged by is kept all the same."""
    ledger, clock, settled, asked = approved_at_noon(process)
    clock[0] += 2 * HOUR
    with pytest.raises(NotDecided):
        ledger.decisions.abandon(settled.id, **MARA)
    ledger.close()
    assert called_after_the_clock_was_set_back(process, asked) is Permission.PENDING


def test_a_worker_that_finds_nothing_to_do_keeps_the_time(process):
    """What is unresolved has an approval that ends, and no step that is due: a sweep is enough, once a minute."""
    ledger, clock = process(NOON)
    pay = Tool(asks(ledger), "pay", TimeoutError())
    asked = pay.call("o1")
    ledger.decisions.approve(asked.id, **MARA)
    pay.call("o1")
    for seconds in (worker.KEPT_SECONDS - 1, worker.KEPT_SECONDS):
        seen = ledger.store.query("SELECT at FROM clock")
        clock[0] = NOON + seconds
        Worker(ledger).sweep()
        told = [] if seconds < worker.KEPT_SECONDS else [(clock[0],)]
        assert ledger.store.query("SELECT at FROM clock") == (told or seen)
    ledger.close()
    assert process(NOON)[0].store.now() >= NOON + worker.KEPT_SECONDS


def test_a_worker_without_anything_waiting_writes_nothing(process):
    """An idle worker costs no disk."""
    ledger, clock = process(NOON)
    Tool(ledger, "note").call("n1")
    clock[0] += HOUR
    Worker(ledger).sweep()
    assert ledger.store.query("SELECT at FROM clock") == [(NOON,)]


def declines(history, now):
    """A rule that says no."""
    del history, now
    return Declined(because=("no",))


def fails(history, now):
    """A rule with a defect: its transaction is rolled back."""
    raise ZeroDivisionError


def test_the_time_is_kept_once_a_second(process):
    """Within a second nothing is added to what a transaction writes; after it, one row; and never an earlier time."""
    ledger, clock = process(NOON)
    noted = Tool(ledger, "note").call("n1").id
    for later, kept in ((KEPT_SECONDS / 2, 0.0), (KEPT_SECONDS, KEPT_SECONDS), (0.0, KEPT_SECONDS), (9.0, 9.0)):
        clock[0] = NOON + later
        ledger.store.write(Amend(operation=noted, rule=declines))
        ((at,),) = ledger.store.query("SELECT at FROM clock")
        assert 0 <= at - NOON - kept < KEPT_SECONDS / 2  # set back, time goes on from where it was
    behind, _ = process(NOON + 20)
    clock[0] = NOON + 30
    ledger.store.write(Amend(operation=noted, rule=declines))
    behind.store.write(Amend(operation=noted, rule=declines))
    assert ledger.store.query("SELECT at FROM clock") == [(NOON + 30,)]


def test_what_was_rolled_back_is_kept_by_the_next(process):
    """A transaction that failed has kept nothing, and the one after it knows."""
    ledger, clock = process(NOON)
    noted = Tool(ledger, "note").call("n1").id
    clock[0] = NOON + 5
    with pytest.raises(ZeroDivisionError):
        ledger.store.write(Amend(operation=noted, rule=fails))
    assert ledger.store.query("SELECT at FROM clock") == [(NOON,)]
    ledger.store.write(Amend(operation=noted, rule=declines))
    assert ledger.store.query("SELECT at FROM clock") == [(NOON + 5,)]


def test_an_older_file_gets_a_clock(tmp_path):
    """It starts from what its events say; the first transaction keeps the time."""
    path = tmp_path / "receipts.db"
    opening.prepare(path)
    with contextlib.closing(opening.connect(path, writes=True)) as db:
        opening.migrate(db, path, opening.MIGRATIONS[:2])
    with contextlib.closing(SqliteStore(path)) as store:
        assert store.query("SELECT at FROM clock") == [(0.0,)]
        assert store.now() <= time.time()
