"""Answers of a database that are lost, wrong or late: nothing is sent on a guess, nothing written twice or dropped."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import psycopg
import pytest
from tests.integration.store.commands import claim, claim_again, evidence, faults, late, note, observe, settle
from tests.integration.store.test_fork import in_child

from counterfoil.domain.command import Amended, Claimed, Declined, Settled, Stale
from counterfoil.domain.errors import NoSuchOperation, NotRecorded, StoreAway, StoreBusy, StoreFull, StoreUnsafe
from counterfoil.domain.words import Finding, Outcome
from counterfoil.lab.cutting import Cut, Mode, Wire
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.worker import Worker
from counterfoil.store import locks
from counterfoil.store.commit import Job
from counterfoil.store.connecting import address, reach
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.session import Silent

COMMIT = b"COMMIT\0"
"""The statement itself; BEGIN names a level of a similar word."""
WAYS = {"at once": lambda store: setattr(store, "_kept", store.now() + 60), "slowly": lambda store: None}
"""A lone statement, and a transaction: the time is due to be kept."""


@pytest.fixture
def book(postgres):
    """The URL of an empty book."""
    return postgres.book()


@pytest.fixture
def wire(postgres):
    """The wire a store is opened through."""
    with Wire(postgres.folder) as made:
        yield made


@pytest.fixture
def store(book, wire):
    """A store whose wire can be cut, with something in it already."""
    with contextlib.closing(PostgresStore(wire.through(book))) as made:
        made.write(claim())
        yield made
        assert [fault for history in made.histories() for fault in faults(history)] == []


@pytest.fixture
def beside(book):
    """The same book by a wire of its own."""
    with contextlib.closing(PostgresStore(book)) as made:
        yield made


def cut(wire, store, way, command, *, mode):
    """Cut the wire at the commit of a command, whichever way it is written."""
    WAYS[way](store)
    if way == "slowly":
        store._kept = 0.0
    marked = COMMIT if way == "slowly" else command.id.encode()
    wire.cut = Cut(at=marked, mode=mode)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", [Mode.UNANSWERED, Mode.UNDELIVERED])
def test_a_claim_whose_answer_was_lost_is_nobodys_to_send(store, beside, wire, way, mode):
    """Whether it stands or not, its caller is told that it is not; asked again, it finds what stands."""
    wanted = claim()
    cut(wire, store, way, wanted, mode=mode)
    with pytest.raises(StoreAway):
        store.write(wanted)
    assert wire.cut is None
    assert (wanted.id in {o.id for o in beside.unresolved()}) is (mode is Mode.UNANSWERED)
    assert isinstance(store.write(wanted), Claimed)
    assert len(beside.load(wanted.id).events) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", [Mode.UNANSWERED, Mode.UNDELIVERED])
def test_an_outcome_whose_answer_was_lost_is_written_again_and_read_back(store, beside, wire, way, mode):
    """The same fenced write is repeated by the store itself: it stands once, and its caller is told so."""
    claimed = claim()
    answer = settle(claimed, store.write(claimed))
    cut(wire, store, way, answer, mode=mode)
    assert isinstance(store.write(answer), Settled)
    assert wire.cut is None
    history = beside.load(claimed.id)
    assert (len(history.events), history.operation.outcome) == (2, Outcome.SUCCEEDED)


@pytest.mark.parametrize("mode", [Mode.UNANSWERED, Mode.UNDELIVERED])
def test_an_observation_whose_answer_was_lost_is_one_piece_of_evidence(store, beside, wire, mode):
    """A rule that is judged again knows its own event, and says that it stands."""
    claimed = claim()
    store.write(claimed)
    wire.cut = Cut(at=COMMIT, mode=mode)
    reply = store.write(late(claimed.id))
    assert isinstance(reply, Declined if mode is Mode.UNANSWERED else Amended)
    assert wire.cut is None
    assert len(beside.load(claimed.id).events) == 2


def test_a_further_attempt_whose_answer_was_lost_is_nobodys_to_send(store, beside, wire):
    """What may start an attempt is refused like a claim."""
    claimed = claim()
    store.write(claimed)
    store.write(observe(claimed.id, evidence(Finding.UNKNOWN)))
    wire.cut = Cut(at=COMMIT, mode=Mode.UNANSWERED)
    with pytest.raises(StoreAway):
        store.write(msgspec.structs.replace(claim_again(claimed.id), policy=0))
    assert len(beside.load(claimed.id).events) == 3


def test_mates_of_a_lost_answer_are_each_judged_by_what_they_are(store, beside, wire):
    """Of one batch the claims are refused, and the answers are written again."""
    first, second = claim(), claim()
    reply = store.write(first)
    WAYS["at once"](store)
    wire.cut = Cut(at=second.id.encode(), mode=Mode.UNANSWERED)
    jobs = [Job(second), Job(settle(first, reply))]
    store._write_batch(jobs)
    assert isinstance(jobs[0].error, StoreAway)
    assert isinstance(jobs[1].reply, Settled)
    assert len(beside.load(first.id).events) == 2
    assert len(beside.load(second.id).events) == 1


def test_a_server_that_hung_up_meanwhile_costs_no_call(store, postgres):
    """A restart between two calls is noticed before anything is asked, and both connections are made again."""
    store.unresolved()
    with postgres.connect() as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'counterfoil'")
    for session in (store._lines._writer, store._lines._reader):
        while not session.gone():
            pass
    wanted = claim()
    assert isinstance(store.write(wanted), Claimed)
    assert wanted.id in {o.id for o in store.unresolved()}


def test_a_worker_outlives_an_outage_and_resumes(book, beside, postgres):
    """While nobody answers it says so, and acts on nothing; then it takes up what was left, without a restart."""
    left = claim(send_seconds=0.0)
    beside.write(left)
    stop, errors = threading.Event(), []
    with Wire(postgres.folder) as wire:
        ledger = Ledger(PostgresStore(wire.through(book)))
        ledger.action(lambda: None, name="pay", key=lambda: "k", owner="o", authoriser="a")
    worker = Worker(ledger, lambda _, what: errors.append(what))
    with contextlib.ExitStack() as ends:
        thread = threading.Thread(target=worker.run, args=(stop,), kwargs={"interval_seconds": 0.01})
        thread.start()
        for end in (ledger.close, thread.join, stop.set):
            ends.callback(end)
        while not errors:
            assert thread.is_alive()
        assert isinstance(errors[0], StoreAway)
        assert beside.load(left.id).operation.outcome is Outcome.UNOBSERVED
        ends.enter_context(Wire(postgres.folder, wire.port))
        while beside.load(left.id).operation.outcome is Outcome.UNOBSERVED:
            assert thread.is_alive()
    assert beside.load(left.id).operation.outcome is Outcome.UNKNOWN


def test_whoever_holds_a_row_that_vanished_sends_nothing(book, beside):
    """A failover to a standby that was behind loses a claim: its holder records nothing, and nobody sends it again."""
    sent = []
    with contextlib.closing(Ledger(PostgresStore(book))) as ledger:

        @ledger.action(key=lambda order: order, owner="o", authoriser="a")
        def pay(order):
            sent.append(order)

        pay("one")
        left = claim()
        reply = beside.write(left)
        with psycopg.connect(book, autocommit=True) as owner:
            owner.execute("SET session_replication_role = 'replica'; DELETE FROM event; DELETE FROM operation")
        assert isinstance(beside.write(settle(left, reply)), Stale)
        for act in (lambda: ledger.work(left.id), lambda: ledger.attempt(left.id, basis="not_sent", by="user:a")):
            with pytest.raises(NoSuchOperation):
                act()
    assert sent == ["one"]
    assert beside.operations(limit=9) == []


def test_nobody_there_is_said_without_the_urls_secrets(store, wire, book, postgres):
    """A wrong port is refused in bounded time, and no password stands in the sentence."""
    url = f"postgresql://somebody:hunter2@127.0.0.1:{wire.port + 1 if wire.port < 65_000 else 1}/receipts"
    with pytest.raises(StoreAway) as caught:
        PostgresStore(url)
    assert "hunter2" not in str(caught.value)
    assert "somebody@127.0.0.1" in str(caught.value)


def test_a_commit_that_the_server_calls_a_rollback_is_none(book):
    """COMMIT of a transaction that failed answers ROLLBACK and no error."""
    with contextlib.closing(reach(address(book), writes=True)) as session:
        session.begin()
        with contextlib.suppress(Exception):
            session.execute("SELECT 1 / 0")
        with pytest.raises(StoreFull, match="ROLLBACK"):
            session.commit()


def held(db, effect):
    """A stranger that holds an effect's lock, in a transaction of its own."""
    db.execute("BEGIN")
    db.execute(f"SELECT pg_advisory_xact_lock({locks.KEY.format('%s::text')})", (effect,))


def waits_for_a_lock(observer, name="counterfoil"):
    """Until a backend of a store's waits for a lock."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    while not observer.execute(asked, (name,)).fetchone()[0]:
        pass


def test_a_lock_that_stays_held_is_busy(beside, postgres, monkeypatch):
    """A command waits for another's transaction, and no longer than it says."""
    monkeypatch.setattr("counterfoil.store.session.BEGIN", "")
    monkeypatch.setattr(
        "counterfoil.store.postgresql.Session.begin",
        lambda session, how="BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '100ms'": (
            session.db.execute(how)
        ),
    )
    wanted = claim(effect="held")
    with postgres.connect() as stranger:
        held(stranger, wanted.intent.effect)
        with pytest.raises(StoreBusy):
            beside.write(wanted)
    assert isinstance(beside.write(wanted), Claimed)


def test_what_a_stranger_is_writing_is_judged_as_it_is_left(beside, book, postgres):
    """Whoever holds no lock of ours holds the row's own: it is waited for, and nothing of theirs is written over."""
    first = claim()
    beside.write(first)
    with (
        psycopg.connect(book, autocommit=True) as stranger,
        postgres.connect() as observer,
        ThreadPoolExecutor(1) as pool,
    ):
        with stranger.transaction():
            stranger.execute("UPDATE operation SET owner = 'lea'")
            writing = pool.submit(beside.write, note(first.id, "x"))
            waits_for_a_lock(observer)
        assert isinstance(writing.result(), Amended)
    assert beside.load(first.id).operation.owner == "lea"


def test_an_interruption_in_the_middle_of_a_statement_leaves_nothing_open(beside, postgres):
    """Ctrl+C while a lock is waited for: the write is carried to its end, then it is raised; no session stays open."""
    wanted = claim(effect="held")
    beside.write(claim())
    with postgres.connect() as stranger, postgres.connect() as observer:
        held(stranger, wanted.intent.effect)

        def interrupt():
            waits_for_a_lock(observer)
            os.kill(os.getpid(), signal.SIGINT)
            stranger.execute("ROLLBACK")

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            beside.write(wanted)
        thread.join()
        open_ones = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'counterfoil' AND state LIKE 'idle in%'"
        )
        assert observer.execute(open_ones).fetchone()[0] == 0
    assert isinstance(beside.write(wanted), Claimed)
    assert len(beside.load(wanted.id).events) == 1


def test_parent_and_child_both_write_and_read(beside):
    """Around a fork nothing is open: both go on with connections of their own, and each reads what the other wrote."""
    first = claim()
    reply = beside.write(first)
    beside.load(first.id)

    def work():
        still = beside._lines._writer is None and beside._lines._reader is None
        beside.write(settle(first, reply))
        other = claim()
        beside.write(other)
        beside.close()
        return [still, other.id]

    still, theirs = in_child(work)
    assert still
    assert beside.load(first.id).operation.outcome is Outcome.SUCCEEDED
    assert beside.load(theirs).operation.unresolved == 1
    assert isinstance(beside.write(claim()), Claimed)


def test_a_fork_that_python_did_not_see_is_refused(beside):
    """A process that is not the one that opened it neither uses nor closes what it inherited."""
    beside._lines._pid -= 1
    try:
        with pytest.raises(StoreUnsafe, match="fork"):
            beside.write(claim())
    finally:
        beside._lines._pid += 1


def test_a_rule_of_ones_own_harms_no_mate_on_a_database(beside):
    """Whatever a rule raises is rolled back and raised to whoever asked, and the connection goes on."""
    first = claim()
    beside.write(first)

    def broken(history, now):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        beside.write(msgspec.structs.replace(note(first.id, "x"), rule=broken))
    assert isinstance(beside.write(note(first.id, "x")), Amended)


# -- a server that stands still ----------------------------------------------------------------------------------------

PATIENCE = 0.3
"""In these tests; ordinarily a lock may be waited for longer."""


@pytest.fixture
def impatient(monkeypatch):
    """Nobody waits long for an answer, nor for a connection."""
    monkeypatch.setattr("counterfoil.store.session.ANSWER_SECONDS", PATIENCE)
    monkeypatch.setattr("counterfoil.store.connecting.CONNECT_SECONDS", PATIENCE)


def soon(book):
    """The URL of a book for whoever waits no longer for a connection than libpq lets anybody."""
    return f"{book}&connect_timeout=2"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("way", WAYS)
def test_a_claim_that_nobody_answers_sends_nothing(book, wire, beside, way):
    """The server stands still in the middle of it: its caller is told in time, and nothing leaves."""
    sent = []
    with contextlib.closing(Ledger(PostgresStore(wire.through(soon(book))))) as ledger:

        @ledger.action(key=lambda order: order, owner="o", authoriser="a")
        def pay(order):
            sent.append(order)

        pay("one")
        WAYS[way](ledger.store)
        if way == "slowly":
            ledger.store._kept = 0.0
        wire.cut = Cut(at=COMMIT if way == "slowly" else b"two", mode=Mode.STILL)
        for _ in range(2):  # the second meets a server that accepts and never answers
            with pytest.raises(StoreAway):
                pay("two")
        assert sent == ["one"]
        assert len(beside.operations(limit=9)) == 1
        wire.still = False
        pay("two")
    assert sent == ["one", "two"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_the_database_does_not_take_is_spooled(book, wire, beside, way):
    """The server stands still when the outcome is written: it is put beside the store, as in any outage."""
    with contextlib.closing(Ledger(PostgresStore(wire.through(soon(book))))) as ledger:

        @ledger.action(key=lambda order: order, owner="o", authoriser="a")
        def pay(order):
            if way == "slowly":
                ledger.store._kept = 0.0
            wire.cut = Cut(at=COMMIT if way == "slowly" else b"succeeded", mode=Mode.STILL)

        WAYS[way](ledger.store)
        with pytest.raises(NotRecorded) as caught:
            pay("one")
        assert caught.value.spooled
        (left,) = beside.operations(limit=9)
        assert left.outcome is Outcome.UNOBSERVED
        wire.still = False
        assert ledger.drain() == 1
    assert beside.load(left.id).operation.outcome is Outcome.SUCCEEDED


def test_mates_wait_once_for_a_server_that_stands_still(impatient, store, beside, wire):
    """Whoever shares a batch shares the silence: none of them is asked for again, one by one."""
    first, second = claim(), claim()
    reply = beside.write(first)
    WAYS["at once"](store)
    wire.cut = Cut(at=second.id.encode(), mode=Mode.STILL)
    jobs = [Job(second), Job(settle(first, reply)), Job(late(first.id))]
    opened = len(wire._threads)
    store._write_batch(jobs)
    assert [type(job.error) for job in jobs] == [StoreAway] * 3
    assert len(wire._threads) == opened
    wire.still = False


def test_whoever_reads_from_a_server_that_stands_still_is_told(impatient, store, wire):
    """Reading waits no longer than writing, and goes on when somebody answers again."""
    store.unresolved()
    wire.still = True
    with pytest.raises(StoreAway):
        store.unresolved()
    wire.still = False
    assert len(store.unresolved()) == 1


@pytest.mark.usefixtures("impatient")
def test_what_takes_its_time_is_waited_for(book):
    """Only silence ends the waiting, and a schema may take as long as it takes."""
    with contextlib.closing(reach(address(book), writes=True)) as session, pytest.raises(Silent):
        session.execute("SELECT pg_sleep(60)")
    rows = int(2 * PATIENCE / 0.02)
    with contextlib.closing(reach(address(book), writes=True)) as session:
        slow = session.execute(f"SELECT repeat('x', 100000), pg_sleep(0.02) FROM generate_series(1, {rows})")
        assert len(slow.fetchall()) == rows
        session.db.patience = None
        session.execute(f"SELECT pg_sleep({2 * PATIENCE})")
