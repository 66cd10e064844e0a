"""A pooler of transactions between a store and its database: killed, standing still, and with spoilt sessions."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.databases import Pooled, schema_of, with_pooler
from tests.integration.store.commands import claim, evidence, faults, late, observe, settle
from tests.integration.store.test_database_answers import COMMIT, WAYS, cut, held, waits_for_a_lock

from counterfoil.domain.command import Amended, Claimed, Declined, Settled
from counterfoil.domain.errors import NotRecorded, StoreAway, StoreUnsafe
from counterfoil.domain.words import Finding, Outcome
from counterfoil.lab.cutting import Cut, Mode, Wire
from counterfoil.lab.pooler import pooler
from counterfoil.runtime.ledger import Ledger
from counterfoil.store.commit import Job
from counterfoil.store.copying import copy
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.sqlite import SqliteStore

SENT_OR_NOT = [Mode.UNDELIVERED, Mode.UNANSWERED]
"""The pooler dies before the server has the statement, or after it has answered."""


class Deadly(Wire):
    """The wire from a pooler to its server: where it is to be cut, the pooler is killed, and is there again."""

    by = None
    """The pooler."""
    stays_dead = False

    def held(self, mode, backend, writes):
        """Between the statement and its answer."""
        del mode, backend, writes
        if self.stays_dead:
            self.by.kill()
        else:
            self.by.restart()


@pytest.fixture(scope="module")
def behind(postgres):
    """Such a wire, and the pooler before it."""
    with_pooler()
    with Deadly(postgres.folder) as wire, pooler(postgres, wire.port) as by:
        wire.by = by
        yield wire, Pooled(postgres, by)


@pytest.fixture
def wire(behind):
    """The wire, over which everything passes."""
    wire, there = behind
    if not there.by.child.running:
        there.by.restart()
    wire.stays_dead = False
    return wire


@pytest.fixture
def book(wire, behind, monkeypatch):
    """An empty book by way of that pooler, which a busy machine may take longer to start than a store tries."""
    del wire
    monkeypatch.setattr("counterfoil.store.connecting.RETRY_SECONDS", (0.0, *[0.1] * 200))
    return behind[1].book()


@pytest.fixture
def store(book):
    """The book, with something in it already."""
    with contextlib.closing(PostgresStore(book)) as made:
        made.write(claim())
        yield made
        assert [fault for history in made.histories() for fault in faults(history)] == []


@pytest.fixture
def beside(book, store, behind):
    """The same book without the pooler."""
    del store
    with contextlib.closing(PostgresStore(behind[1].beside(book))) as made:
        yield made


# -- killed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", SENT_OR_NOT)
def test_a_claim_whose_pooler_was_killed_is_nobodys_to_send(store, beside, wire, way, mode):
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
@pytest.mark.parametrize("mode", SENT_OR_NOT)
def test_an_outcome_whose_pooler_was_killed_is_written_again_and_read_back(store, beside, wire, way, mode):
    """The same fenced write is repeated by the store itself: it stands once, and its caller is told so."""
    claimed = claim()
    answer = settle(claimed, store.write(claimed))
    cut(wire, store, way, answer, mode=mode)
    assert isinstance(store.write(answer), Settled)
    assert wire.cut is None
    history = beside.load(claimed.id)
    assert (len(history.events), history.operation.outcome) == (2, Outcome.SUCCEEDED)


@pytest.mark.parametrize("mode", SENT_OR_NOT)
def test_an_observation_whose_pooler_was_killed_is_one_piece_of_evidence(store, beside, wire, mode):
    """A rule that is judged again knows its own event, and says that it stands."""
    claimed = claim()
    store.write(claimed)
    wire.cut = Cut(at=COMMIT, mode=mode)
    assert isinstance(store.write(late(claimed.id)), Declined if mode is Mode.UNANSWERED else Amended)
    assert len(beside.load(claimed.id).events) == 2


def test_a_pooler_that_was_killed_meanwhile_costs_no_call(store, behind):
    """Between two calls it is noticed before anything is asked, and both connections are made again."""
    store.unresolved()
    behind[1].by.restart()
    wanted = claim()
    assert isinstance(store.write(wanted), Claimed)
    assert wanted.id in {o.id for o in store.unresolved()}


@pytest.mark.parametrize("mode", SENT_OR_NOT)
def test_while_the_pooler_is_dead_nothing_leaves_and_answers_are_spooled(book, wire, behind, monkeypatch, mode):
    """It dies as the outcome is written: that waits beside the store, the next call is refused, nothing is twice."""
    monkeypatch.setattr("counterfoil.store.connecting.RETRY_SECONDS", (0.0,))
    sent, wire.stays_dead = [], True
    with contextlib.closing(Ledger(PostgresStore(book))) as ledger:

        @ledger.action(key=lambda order: order, owner="o", authoriser="a")
        def pay(order):
            sent.append(order)
            wire.cut = Cut(at=b"succeeded", mode=mode)

        WAYS["at once"](ledger.store)
        with pytest.raises(NotRecorded) as caught:
            pay("one")
        assert caught.value.spooled
        with pytest.raises(StoreAway):
            pay("two")
        assert sent == ["one"]
        behind[1].by.restart()
        assert ledger.drain() == 1
        (left,) = ledger.store.operations(limit=9)
        assert (left.outcome, left.attempts) == (Outcome.SUCCEEDED, 1)
        assert len(ledger.store.load(left.id).events) == 2


# -- standing still, and before a server that is away ------------------------------------------------------------------


def test_a_pooler_that_stands_still_is_waited_for_no_longer_than_a_server(store, beside, behind, monkeypatch):
    """Its claimer is told in time, and sends nothing, whatever the pooler makes of it when it goes on."""
    monkeypatch.setattr("counterfoil.store.connecting.CONNECT_SECONDS", 0.3)
    child = behind[1].by.child
    WAYS["at once"](store)
    store._lines.writing().db.patience = 0.3
    wanted = claim()
    child.signal(signal.SIGSTOP)
    try:
        with pytest.raises(StoreAway):
            store.write(wanted)
    finally:
        child.signal(signal.SIGCONT)
    assert isinstance(store.write(wanted), Claimed)
    assert len(beside.load(wanted.id).events) == 1


def test_a_server_that_is_away_is_said_through_the_pooler(postgres):
    """The pooler lives and reaches nobody: a claim is refused in time, and made once there is a server."""
    with_pooler()
    wanted = claim()
    with contextlib.ExitStack() as ends:
        with Wire(postgres.folder) as wire:
            there = Pooled(postgres, ends.enter_context(pooler(postgres, wire.port)))
            store = ends.enter_context(contextlib.closing(PostgresStore(f"{there.book()}&connect_timeout=2")))
            store.write(claim())
        WAYS["at once"](store)
        store._lines.writing().db.patience = 0.3
        with pytest.raises(StoreAway):
            store.write(wanted)
        ends.enter_context(Wire(postgres.folder, wire.port))
        told = None
        while not isinstance(told, Claimed):
            with contextlib.suppress(StoreAway):
                told = store.write(wanted)
        assert len(store.load(wanted.id).events) == 1


# -- sessions ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def stranger(book):
    """Another client of the same role's, to whom the pooler hands the same sessions."""
    with psycopg.connect(book.replace("&pooled=1", ""), autocommit=True, prepare_threshold=None) as db:
        yield db


def test_claims_and_outcomes_pass_in_one_pipeline(pooled):
    """A pooler hands a session on when the server is ready again: both statements of a batch have run by then."""
    with contextlib.closing(PostgresStore(pooled.book())) as store:
        old = [claim() for _ in range(5)]
        answers = [settle(each, store.write(each)) for each in old]
        WAYS["at once"](store)
        jobs = [Job(command) for command in (*answers, *(claim() for _ in range(5)))]
        assert store._at_once(jobs) == []
        assert [type(job.answer()) for job in jobs] == [Settled] * 5 + [Claimed] * 5
        assert len(store.unresolved()) == 5


@contextlib.contextmanager
def occupied(book):
    """The session that served last is somebody else's, for as long as this lasts."""
    with stranger(book) as db, db.transaction():
        yield db.execute("SELECT pg_backend_pid()").fetchone()[0]


OF_THE_POOLER = {"application_name", "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings"}
"""What a pooler itself sets in a session, since its clients began with it."""
LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = %s"


def test_every_statement_may_run_in_another_session(pooled):
    """A claim in one, its outcome in the next, a look at it in a third: and none of them is left changed or locked."""
    book = pooled.book()
    with contextlib.closing(PostgresStore(book)) as store, contextlib.ExitStack() as busy:
        seen = set()
        for way in ("at once", "slowly") * 2:
            WAYS[way](store)
            first = claim()
            reply = store.write(first)
            seen.add(busy.enter_context(occupied(book)))
            store._kept = 0.0 if way == "slowly" else store._kept
            assert isinstance(store.write(settle(first, reply)), Settled)
            seen.add(busy.enter_context(occupied(book)))
            assert len(store.load(first.id).events) == 2
        assert len(seen) == 8
    with contextlib.ExitStack() as busy, pooled.server.connect() as observer:
        while seen:
            db = busy.enter_context(stranger(book))
            db.execute("BEGIN")  # of its own, while this lasts
            pid = db.execute("SELECT pg_backend_pid()").fetchone()[0]
            changed = db.execute("SELECT name FROM pg_settings WHERE source = 'session'").fetchall()
            assert {name for (name,) in changed} <= OF_THE_POOLER
            assert db.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            assert observer.execute(LOCKS, (pid,)).fetchone() == (0,)
            seen.discard(pid)


SPOILT = {
    "commits in memory": ("SET synchronous_commit = off", "synchronous_commit=off"),
    "finds another book": ("SET search_path = {other}", "another book"),
    "finds none": ("SET search_path = pg_catalog", "holds no receipts"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("spoils", "said"), SPOILT.values(), ids=SPOILT)
def test_in_a_session_that_somebody_spoilt_nothing_is_claimed_or_settled(pooled, way, spoils, said):
    """What another program set stays in the session that the pooler hands on: each write looks for itself."""
    book, other = pooled.book(), pooled.book()
    with contextlib.closing(PostgresStore(book)) as store, contextlib.closing(PostgresStore(other)) as others:
        first = claim()
        reply = store.write(first)
        WAYS[way](store)
        with stranger(book) as db:
            db.execute(spoils.format(other=schema_of(other)))
        for command in (claim(), settle(first, reply), observe(first.id, evidence(Finding.UNKNOWN))):
            store._kept = 0.0 if way == "slowly" else store._kept
            with pytest.raises(StoreUnsafe, match=said):
                store.write(command)
        with stranger(book) as db:
            db.execute("RESET ALL")
        assert others.operations(limit=9) == []
        assert [len(history.events) for history in store.histories()] == [1]
        assert isinstance(store.write(settle(first, reply)), Settled)


HARMLESS = (
    "SET default_transaction_read_only = on", "SET default_transaction_isolation = 'serializable'",
    "SET extra_float_digits = -3", "SET bytea_output = 'escape'", "SET lock_timeout = '1ms'",
    "SET enable_indexscan = off",
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", HARMLESS)
def test_what_else_somebody_set_in_a_session_changes_no_answer(pooled, way, setting):
    """Defaults of a session are named in each transaction, or are judged the slow way."""
    book = pooled.book()
    with contextlib.closing(PostgresStore(book)) as store:
        store.write(claim())
        with stranger(book) as db:
            db.execute(setting)
        WAYS[way](store)
        first = claim()
        reply = store.write(first)
        store._kept = 0.0 if way == "slowly" else store._kept
        assert isinstance(store.write(settle(first, reply)), Settled)
        assert faults(store.load(first.id)) == []


def test_an_interruption_behind_a_pooler_leaves_nothing_open(pooled):
    """Ctrl+C while a lock is waited for: the write is carried to its end, then it is raised; no session stays open."""
    book = pooled.book()
    wanted = claim(effect="held")
    with contextlib.closing(PostgresStore(book)) as store:
        store.write(claim())
        with pooled.server.connect() as db, pooled.server.connect() as observer:
            held(db, wanted.intent.effect)

            def interrupt():
                waits_for_a_lock(observer, "pooled")
                os.kill(os.getpid(), signal.SIGINT)
                db.execute("ROLLBACK")

            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                store.write(wanted)
            thread.join()
            open_ones = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND state LIKE 'idle in%%'"
            assert observer.execute(open_ones, (schema_of(book),)).fetchone()[0] == 0
        assert isinstance(store.write(wanted), Claimed)
        assert len(store.load(wanted.id).events) == 1


def test_more_clients_than_sessions_wait_for_their_turn(pooled):
    """Forty claimers of one effect through a pool of twenty: one claims, and nobody is told to come again."""
    book = pooled.book()
    with contextlib.ExitStack() as ends, ThreadPoolExecutor(40) as pool:
        stores = [ends.enter_context(contextlib.closing(PostgresStore(book))) for _ in range(40)]
        replies = list(pool.map(lambda store: store.write(claim(effect="e")), stores))
        assert [type(reply) for reply in replies].count(Claimed) == 1
        assert len(stores[0].operations(limit=99)) == 40


def test_a_file_moves_into_a_database_through_a_pooler(pooled, tmp_path):
    """COPY and a cursor live as long as their transaction, and so in one session."""
    with (
        contextlib.closing(SqliteStore(tmp_path / "receipts.db")) as file,
        contextlib.closing(PostgresStore(pooled.book())) as store,
    ):
        first = claim(body=b"x" * 5_000)
        file.write(settle(first, file.write(first)))
        assert copy(file, store) > 0
        assert store.load(first.id).events[0].body == b"x" * 5_000
        assert faults(store.load(first.id)) == []


def test_a_pooler_is_found_out(pooled):
    """Without `pooled=1` too: it invents the number of the process that it hands to its client."""
    with contextlib.closing(PostgresStore(pooled.book().replace("&pooled=1", ""))) as store, store.lead() as session:
        assert not session.prepared
