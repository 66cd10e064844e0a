"""Field reports, section 6, on PostgreSQL: commits nobody answered for, isolation nobody set, rows that are gone."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.integration.store.commands import claim, settle

import counterfoil
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Claimed, Settled, Stale
from counterfoil.domain.errors import StoreFull, StoreUnsafe, Unavailable
from counterfoil.domain.words import Outcome
from counterfoil.lab.cutting import Cut, Mode, Wire
from counterfoil.store.connecting import address, reach
from counterfoil.store.postgresql import PostgresStore

STORE = Path(counterfoil.__file__).parent / "store"


@pytest.fixture
def book(postgres):
    """An empty book's URL."""
    return postgres.book()


@pytest.mark.parametrize("mode", [Mode.UNANSWERED, Mode.UNDELIVERED])
def test_r52_a_claim_nobody_answered_for_sends_nothing(book, postgres, mode):
    """The reply of the COMMIT is dropped: nothing is sent, and the next call learns from the receipt what stands."""
    sent = []
    with (
        Wire(postgres.folder) as wire,
        contextlib.closing(counterfoil.open(wire.through(book), actor="agent:a")) as ledger,
    ):

        @ledger.action(key=lambda order: order, owner="o", authoriser="a")
        def pay(order):
            sent.append(order)

        pay("o1")
        wire.cut = Cut(at=b"o2", mode=mode)
        with pytest.raises(Unavailable):
            pay("o2")
        assert sent == ["o1"]
        again = pay("o2")
    assert sent == (["o1"] if mode is Mode.UNANSWERED else ["o1", "o2"])
    assert again.outcome is (Outcome.UNKNOWN if mode is Mode.UNANSWERED else Outcome.SUCCEEDED)


def test_r53_a_commit_that_answers_rollback_is_no_commit(book):
    """A statement fails and is swallowed; COMMIT then answers ROLLBACK without an error, and we say so."""
    with contextlib.closing(reach(address(book), writes=True)) as session:
        session.begin()
        with contextlib.suppress(psycopg.Error):
            session.execute("SELECT 1 / 0")
        with pytest.raises(StoreFull, match="ROLLBACK"):
            session.commit()


FAILS_AT_COMMIT = """
CREATE SEQUENCE commits;
CREATE FUNCTION fails_at_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('commits') % 2 = 1 THEN RAISE EXCEPTION 'another came first' USING ERRCODE = '40001'; END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION fails_at_first();
"""
"""Every other commit of an event fails with 40001, at the COMMIT itself and at no statement before it."""


@pytest.mark.parametrize("kept", [1e9, -1.0], ids=["at once", "slowly"])
def test_r54_what_fails_at_the_commit_is_run_again_from_zero(book, monkeypatch, kept):
    """A lone statement or a transaction: it is judged anew, stands once, and success is said after that commit."""
    monkeypatch.setattr("counterfoil.store.postgresql.KEPT_SECONDS", kept)
    with contextlib.closing(PostgresStore(book)) as store, psycopg.connect(book, autocommit=True) as owner:
        store._kept = store.now()
        owner.execute(FAILS_AT_COMMIT)
        for _ in range(3):
            first = claim()
            assert isinstance(store.write(settle(first, store.write(first))), Settled)
            assert len(store.load(first.id).events) == 2
        assert owner.execute("SELECT last_value FROM commits").fetchone() == (12,)


def test_r54_the_isolation_is_set_inside_the_transaction(postgres):
    """Under a default of serializable every transaction is what it names."""
    book = postgres.book(default_transaction_isolation="serializable")
    with contextlib.closing(PostgresStore(book)) as store, store.lead() as session:
        session.begin()
        assert session.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
        session.db.execute(b"ROLLBACK")


CANCELLED = 300
ASYNCIO_THREADS = 40
"""An event loop's own pool may grow to this, whatever is cancelled; a leak would be one for each call."""


def open_things():
    """How many threads and files this process has."""
    return threading.active_count(), sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_r55_cancelled_callers_leave_no_connection_behind(book, postgres):
    """Each is told of its own cancellation; the process keeps two connections, and nothing stays open."""
    with contextlib.closing(counterfoil.open(book, actor="agent:a")) as ledger:

        @ledger.action(key=lambda order: order, owner="o", authoriser="a")
        async def pay(order):
            await asyncio.sleep(0)

        async def cancelled():
            await pay("first")
            before = open_things()
            for number in range(CANCELLED):
                call = asyncio.create_task(pay(f"o{number}"))
                for _ in range(number % 4):
                    await asyncio.sleep(0)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
            return [now - then for now, then in zip(open_things(), before, strict=True)]

        threads, files = asyncio.run(cancelled())
        assert threads <= ASYNCIO_THREADS
        assert files <= ASYNCIO_THREADS
        with postgres.connect() as db:
            asked = "SELECT state FROM pg_stat_activity WHERE application_name = 'counterfoil' AND datname = %s"
            name = conninfo_to_dict(book)["dbname"]
            assert db.execute(asked, (name,)).fetchall() in ([("idle",)], [("idle",), ("idle",)])
        for history in ledger.store.histories():
            assert audit(history) == ()


def test_r57_a_server_that_commits_in_memory_is_given_nothing(postgres):
    """The PostgreSQL twin of synchronous=NORMAL: receipts that a crash takes back after the send."""
    with pytest.raises(StoreUnsafe, match="synchronous_commit=off"):
        PostgresStore(postgres.book(synchronous_commit="off"))


def test_r58_a_worker_whose_row_vanished_does_not_insert_and_send_again(book):
    """After a failover its acknowledged claim is gone: what it learnt finds no row, and it makes none."""
    with contextlib.closing(PostgresStore(book)) as store:
        first = claim()
        reply = store.write(first)
        assert isinstance(reply, Claimed)
        with psycopg.connect(book, autocommit=True) as owner:
            owner.execute("SET session_replication_role = 'replica'; DELETE FROM event; DELETE FROM operation")
        assert isinstance(store.write(settle(first, reply)), Stale)
        assert store.operations(limit=9) == []


def test_r59_nothing_rests_on_a_session(pooled):
    """No session lock, LISTEN, temporary table or setting; and behind a real pooler nothing is prepared either."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(STORE.rglob("*.py")))
    assert not re.search(r"pg_(try_)?advisory_(un)?lock|LISTEN |TEMP(ORARY)? TABLE|DISCARD ", text)
    with contextlib.closing(PostgresStore(pooled.book())) as store:
        for _ in range(7):
            first = claim()
            store.write(settle(first, store.write(first)))
        with store.lead() as session:
            assert session.db.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            assert session.db.execute("SHOW enable_seqscan").fetchone() == ("on",)
