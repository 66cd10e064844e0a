"""What a database must be before one receipt is entrusted to it, and what each of its roles may do afterwards."""

from __future__ import annotations

import contextlib

import psycopg
import pytest
from tests.databases import schema_of
from tests.integration.store.commands import claim, faults, note, settle
from tests.integration.store.keeping import adopt as adopt_policy
from tests.integration.store.keeping import ahead

from counterfoil.domain.command import Claimed, Settled
from counterfoil.domain.errors import BadValue, StoreTooNew, StoreUnsafe
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.retaining import erase, retain
from counterfoil.store import choosing, migrating
from counterfoil.store.connecting import address, reach
from counterfoil.store.grants import grants
from counterfoil.store.postgresql import PostgresStore


@contextlib.contextmanager
def server_setting(postgres, name, value):
    """A setting of the whole server, for a while."""
    with postgres.connect() as db:
        db.execute(f"ALTER SYSTEM SET {name} = {value}")
        db.execute("SELECT pg_reload_conf()")
        try:
            while db.execute(f"SHOW {name}").fetchone()[0] != value:
                pass
            yield
        finally:
            before = db.execute(f"SELECT boot_val FROM pg_settings WHERE name = '{name}'").fetchone()[0]
            db.execute(f"ALTER SYSTEM RESET {name}")
            db.execute("SELECT pg_reload_conf()")
            while db.execute(f"SHOW {name}").fetchone()[0] != before:
                pass


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_loses_commits_is_refused(postgres, name):
    """A server that does not sync, or whose pages may be torn, is given nothing."""
    with server_setting(postgres, name, "off"), pytest.raises(StoreUnsafe, match=f"{name}=off"):
        PostgresStore(postgres.book())


def test_a_session_that_commits_in_memory_is_refused(postgres):
    """synchronous_commit=off, wherever it comes from, is refused when it connects."""
    with pytest.raises(StoreUnsafe, match="synchronous_commit=off"):
        PostgresStore(postgres.book(synchronous_commit="off"))


@pytest.mark.parametrize("kept", [1e9, -1.0], ids=["at once", "slowly"])
def test_a_session_that_turns_to_memory_meanwhile_claims_nothing(postgres, monkeypatch, kept):
    """Each claim looks for itself: a pooler may hand it a session that somebody has spoilt."""
    monkeypatch.setattr("counterfoil.store.postgresql.KEPT_SECONDS", kept)
    with contextlib.closing(PostgresStore(postgres.book())) as store:
        store._kept = store.now()
        store.write(claim())
        with store.lead() as session:
            session.db.execute("SET synchronous_commit = off")
        with pytest.raises(StoreUnsafe, match="synchronous_commit=off"):
            store.write(claim())
        assert len(store.unresolved()) == 1


def test_a_role_that_writes_nothing_is_refused(postgres):
    """A database set read-only, as one is that is about to be moved."""
    with pytest.raises(StoreUnsafe, match="nothing be written"):
        PostgresStore(postgres.book(default_transaction_read_only="on"))


def test_another_encoding_is_refused(postgres):
    """Texts would not come back as they went in."""
    with postgres.connect() as db:
        db.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreUnsafe, match="LATIN1"):
        PostgresStore(postgres.url("latin"))


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:hunter2@h/d?nonsense=1", "postgresql://u:hunter2@h:port/d", "postgresql://u:hunter2@h/d?pooled=x"],
)
def test_what_is_no_url_is_said_without_its_secrets(url):
    """A mistake in a URL is named by what may be seen of it."""
    with pytest.raises(StoreUnsafe) as caught:
        PostgresStore(url)
    assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("postgresql://u:secret@h:5/d?sslkey=secret", "postgresql://u@h:5/d"),
        ("postgresql:///d?host=/run/pg&password=secret", "postgresql:///run/pg/d"),
        ("postgres://h", "postgresql://h"),
    ],
)
def test_a_url_is_shown_without_secrets(url, seen):
    """User, host and database, and nothing else."""
    assert choosing.shown(url) == seen
    assert choosing.is_url(url)


def test_an_empty_database_is_prepared_only_where_that_was_asked(postgres):
    """Whoever only reads makes no tables; whoever opens it to write does, once."""
    book = postgres.book()
    with pytest.raises(StoreUnsafe, match="store migrate"):
        PostgresStore(book, new=False)
    PostgresStore(book).close()
    PostgresStore(book, new=False).close()


def test_tables_of_another_program_are_left_alone(postgres):
    """A schema that has an `event` of its own is not taken for an empty one."""
    book = postgres.book()
    with psycopg.connect(book, autocommit=True) as db:
        db.execute("CREATE TABLE event (anything TEXT)")
    with pytest.raises(StoreUnsafe, match="another program"):
        PostgresStore(book)


@pytest.mark.parametrize("stands", [migrating.SCHEMA - 1, migrating.SCHEMA + 1])
def test_another_schema_is_refused_when_it_is_opened(postgres, stands):
    """An older one is moved on by a command, never by chance; a newer one by nobody."""
    book = postgres.book()
    with contextlib.closing(reach(address(book), writes=True)) as session:
        migrating.migrate(session, "it")
        session.run(b"UPDATE book SET schema = $1", (stands,))
        with pytest.raises(StoreTooNew if stands > migrating.SCHEMA else StoreUnsafe):
            PostgresStore(book)
        if stands > migrating.SCHEMA:
            with pytest.raises(StoreTooNew):
                migrating.migrate(session, "it")


@pytest.mark.parametrize("kept", [1e9, -1.0], ids=["at once", "slowly"])
@pytest.mark.parametrize("stands", [migrating.SCHEMA - 1, migrating.SCHEMA + 1])
def test_another_schema_stops_whoever_is_at_work(postgres, monkeypatch, stands, kept):
    """Somebody migrates while an older worker runs: its next claim finds the schema that it was not written for."""
    monkeypatch.setattr("counterfoil.store.postgresql.KEPT_SECONDS", kept)
    book = postgres.book()
    with contextlib.closing(PostgresStore(book)) as store:
        store._kept = store.now()
        first = claim()
        reply = store.write(first)
        with psycopg.connect(book, autocommit=True) as db:
            db.execute("UPDATE book SET schema = %s", (stands,))
        for command in (claim(), settle(first, reply), note(first.id, "x")):
            with pytest.raises((StoreTooNew, StoreUnsafe)):
                store.write(command)
        assert len(store.load(first.id).events) == 1


@pytest.mark.parametrize("kept", [1e9, -1.0], ids=["at once", "slowly"])
def test_another_book_in_its_place_stops_whoever_is_at_work(postgres, monkeypatch, kept):
    """The address leads elsewhere, to a backup or a test's: nothing is claimed beside what stands in the right one."""
    monkeypatch.setattr("counterfoil.store.postgresql.KEPT_SECONDS", kept)
    book, other = postgres.book(), postgres.book()
    with contextlib.closing(PostgresStore(book)) as store, contextlib.closing(PostgresStore(other)) as others:
        store._kept = store.now()
        first = claim()
        reply = store.write(first)
        with postgres.connect() as db:
            for old, new in ((book, f"{schema_of(book)}_gone"), (other, schema_of(book))):
                db.execute(f"ALTER SCHEMA {schema_of(old)} RENAME TO {new}")
        for command in (claim(), settle(first, reply), note(first.id, "x")):
            with pytest.raises(StoreUnsafe, match="another book"):
                store.write(command)
        assert store.operations(limit=9) == []  # read from there: the other one's
        with postgres.connect() as db:
            for old, new in ((schema_of(book), schema_of(other)), (f"{schema_of(book)}_gone", schema_of(book))):
                db.execute(f"ALTER SCHEMA {old} RENAME TO {new}")
        assert isinstance(store.write(settle(first, reply)), Settled)
        assert others.operations(limit=9) == []


def test_an_older_schema_is_moved_on_by_the_command(postgres):
    """Each migration is applied once, in order, and the number says how many there were."""
    book = postgres.book()
    with contextlib.closing(reach(address(book), writes=True)) as session:
        assert migrating.migrate(session, "it", upto=1) == 0
        assert migrating.migrate(session, "it") == 1
        assert migrating.found(session) == migrating.SCHEMA


# -- append-only -------------------------------------------------------------------------------------------------------

REFUSED = {
    "event": ("UPDATE event SET record = ''", "UPDATE event SET at = 0", "DELETE FROM event", "TRUNCATE event CASCADE"),
    "policy": ("UPDATE policy SET n = n", "DELETE FROM policy", "TRUNCATE policy"),
}


@pytest.mark.parametrize(("table", "statement"), [(t, s) for t, each in REFUSED.items() for s in each])
def test_not_even_the_owner_changes_what_is_written(postgres, table, statement):
    """The triggers hold for every role, until one drops them on purpose."""
    book = postgres.book()
    with contextlib.closing(PostgresStore(book)) as store, psycopg.connect(book, autocommit=True) as db:
        store.write(claim())
        adopt_policy(store)
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match=f"{table} is append-only"):
            db.execute(statement)


@pytest.fixture
def roles(postgres):
    """A book, and its URLs for an application and an eraser that have what `grants` gives them."""
    book = postgres.book()
    PostgresStore(book).close()
    with psycopg.connect(book, autocommit=True) as db:
        schema = db.execute("SELECT current_schema()").fetchone()[0]
        names = [f"{schema}_{name}" for name in ("app", "era")]
        for name in names:
            db.execute(f"CREATE ROLE {name} LOGIN")
            db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
        db.execute(grants(*names))
    return [book.replace("postgres@", f"{name}@") for name in names]


def paid_by(store):
    """A settled call of a ledger's, with a body of its own table."""
    pay = Ledger(store).action(lambda memo: {"memo": memo}, name="pay", key=lambda **_: "k", owner="o", authoriser="a")
    return pay(memo="m" * 5_000)


NOT_THE_APPLICATIONS = (
    *(statement for each in REFUSED.values() for statement in each),
    "UPDATE event SET body = NULL",
    "DELETE FROM body",
    "UPDATE body SET bytes = NULL",
    "DELETE FROM operation",
    "UPDATE book SET schema = 9",
    "DELETE FROM worker",
    "CREATE TABLE mine (n INTEGER)",
    "ALTER TABLE event DISABLE TRIGGER ALL",
    "DROP TRIGGER event_is_kept ON event",
    "SET session_replication_role = 'replica'",
)


def test_an_applications_role_cannot_change_what_it_wrote(roles):
    """It claims, settles and decides; and every statement that would rewrite the record is refused by its grants."""
    application, _ = roles
    with contextlib.closing(PostgresStore(application)) as store:
        first = claim()
        reply = store.write(first)
        assert isinstance(reply, Claimed)
        assert isinstance(store.write(settle(first, reply)), Settled)
        store.write(note(first.id, "a decision"))
        adopt_policy(store)
        paid = paid_by(store)
        with pytest.raises(StoreUnsafe, match="permission denied"):
            erase(store, paid.id, by="user:mara", reason="asked", how="")
        assert store.load(paid.id).events[0].body
    with psycopg.connect(application, autocommit=True) as db:
        for statement in NOT_THE_APPLICATIONS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(statement)


def test_an_erasers_role_erases_and_retains_and_rewrites_nothing(roles):
    """It nulls bodies, and removes events that one of retention's stands for; no other."""
    _, eraser = roles
    with contextlib.closing(PostgresStore(eraser, clock=None)) as store:
        adopt_policy(store)
        paid = paid_by(store)
        erase(store, paid.id, by="user:mara", reason="asked", how="")
        assert [event.body for event in store.load(paid.id).events] == [None] * 3
        ahead(store, 10_000.0)
        assert [done.did for done in retain(store, by="user:mara")] == ["removed"]
    with psycopg.connect(eraser, autocommit=True) as db:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("UPDATE event SET record = ''")
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation):
            db.execute("DELETE FROM event")


@pytest.mark.parametrize("role", ["", "a b", 'a"; DROP TABLE event; --', "x" * 64])
def test_what_is_no_role_is_no_sql(role):
    """A name that is none goes into no statement."""
    with pytest.raises(BadValue):
        grants(role, "eraser")


def test_a_role_that_may_make_nothing_is_told_who_can(postgres, roles):
    """An application's role that meets an empty database says what its owner runs."""
    application, _ = roles
    path, _, schema = application.partition("search_path%3D")
    with postgres.connect() as db:
        db.execute(f"CREATE SCHEMA empty_{schema}")
        db.execute(f"GRANT USAGE ON SCHEMA empty_{schema} TO {schema}_app")
    with pytest.raises(StoreUnsafe, match="permission denied"):
        PostgresStore(f"{path}search_path%3Dempty_{schema}")


# -- behind a pooler ---------------------------------------------------------------------------------------------------


def test_behind_a_pooler_nothing_is_prepared(postgres):
    """Each statement may run in another session: none is left behind in one, and none is set."""
    book = postgres.book()
    with contextlib.closing(PostgresStore(f"{book}&pooled=1")) as store:
        for _ in range(8):
            first = claim()
            assert isinstance(store.write(settle(first, store.write(first))), Settled)
        with store.lead() as session:
            assert not session.prepared
            assert session.db.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()[0] == 0
            assert session.db.execute("SHOW enable_seqscan").fetchone()[0] == "on"


def test_a_session_that_spells_numbers_shorter_is_hashed_elsewhere(postgres):
    """Where the server's spelling of a time would not be Python's, the chain is computed here."""
    with contextlib.closing(PostgresStore(f"{postgres.book(extra_float_digits='-3')}&pooled=1")) as store:
        store.write(claim())
        first = claim()
        store.write(settle(first, store.write(first)))
        assert store.load(first.id).operation.seq == 2
        assert faults(store.load(first.id)) == []
