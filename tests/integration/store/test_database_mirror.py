"""Both stores are one book: the same tables, the same chain, the same patterns; and a file goes on in a database."""

from __future__ import annotations

import contextlib
import random
import sqlite3

import psycopg
import pytest
from tests.integration.store.commands import claim, faults, late, settle
from tests.integration.store.keeping import adopt

from counterfoil.domain.command import Claimed, CountRefusals
from counterfoil.domain.errors import StoreUnsafe
from counterfoil.domain.event import chain
from counterfoil.domain.policy import matches
from counterfoil.domain.words import Finding
from counterfoil.store import guards, opening
from counterfoil.store.copying import TABLES, copy
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.sqlite import SqliteStore
from counterfoil.store.statements import AT_MAX, AT_MIN, LINK


@pytest.fixture
def book(postgres):
    """An empty book's URL."""
    return postgres.book()


@pytest.fixture
def target(book):
    """It, opened."""
    with contextlib.closing(PostgresStore(book)) as made:
        yield made


@pytest.fixture
def source(open_sqlite):
    """A file with everything in it that a file can have."""
    store = open_sqlite()
    for size in (10, 5_000):
        first = claim(body=b"s" * size)
        store.write(settle(first, store.write(first), body=b"b" * size))
    left = claim(effect="left")
    store.write(left)
    store.write(claim(effect="left"))
    store.write(late(left.id, Finding.UNKNOWN))
    adopt(store)
    store.write(CountRefusals(counts=((left.n, 3),), at=store.now()))
    store.execute("INSERT INTO worker VALUES ('w', 'host', 'boot', 1, '/nowhere', 2, 3.0, 4.5)")
    return store


def test_both_schemas_have_the_same_tables_and_columns(book, target):
    """Table by table and column by column; a database also says which book it is, as a file's header does."""
    with contextlib.closing(sqlite3.connect(":memory:")) as ours, psycopg.connect(book) as theirs:
        for name in opening.MIGRATIONS:
            for statement in opening.migration(name):
                ours.execute(statement)
        found = {
            table: [row[1] for row in ours.execute(f"PRAGMA table_info({table})")]
            for (table,) in ours.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        }
        asked = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() "
        mirrored: dict[str, list[str]] = {}
        for table, column in theirs.execute(asked + "ORDER BY table_name, ordinal_position"):
            mirrored.setdefault(table, []).append(column)
        assert mirrored.pop("book") == ["n", "id", "schema"]
        assert mirrored == found
        assert set(TABLES) == set(found)


def test_both_schemas_have_the_same_indexes(book, target):
    """What is unique in a file is unique in a database."""
    with contextlib.closing(sqlite3.connect(":memory:")) as ours, psycopg.connect(book) as theirs:
        for name in opening.MIGRATIONS:
            for statement in opening.migration(name):
                ours.execute(statement)
        made = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        found = {name for (name,) in ours.execute(made)}
        asked = "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexname NOT LIKE '%_pkey'"
        assert {name for (name,) in theirs.execute(asked)} == found


def times(rng):
    """Times as clocks spell them, and as arithmetic leaves them."""
    yield from (AT_MIN, AT_MAX / 10, 100.0, 1_796_041_117.0, 1_796_041_117.5, 1_796_041_117.000001, 1e14 + 0.5)
    for digits in range(8):
        yield from (round(rng.uniform(1.7e9, 1.9e9), digits) for _ in range(60))
    yield from (rng.uniform(1.0, 10 ** rng.uniform(0.0, 15.0)) for _ in range(600))


def test_the_chain_is_the_same_computed_by_the_server(target):
    """Byte for byte `domain.event.chain`, whatever the time, the head and the record are."""
    rng = random.Random(20_261_130)
    link = LINK.format(head="head", id="id", seq="seq", kind="kind", at="at", record="record")
    given = [
        (rng.randbytes(rng.choice((0, 32))), f"op_{rng.randbytes(16).hex()}", rng.randrange(1, 32_768),
         rng.choice(("begun", "observed")), at, rng.randbytes(rng.randrange(200)))
        for at in times(rng)
    ]  # fmt: skip
    columns = [list(column) for column in zip(*given, strict=True)]
    kinds = ("bytea", "text", "bigint", "text", "double precision", "bytea")
    arrays = ", ".join(f"${i}::{kind}[]" for i, kind in enumerate(kinds, 1))
    statement = f"SELECT {link} FROM unnest({arrays}) AS given (head, id, seq, kind, at, record)"
    with target.lead() as session:
        computed = [row[0] for row in session.run(statement.encode(), columns)]
    assert computed == [chain(*each) for each in given]


def test_a_pattern_means_the_same_in_python_in_sqlite_and_in_postgresql(target):
    """Generated from few characters, so that they meet: the star, and all that LIKE would take for something else."""
    rng = random.Random(20_261_130)
    given = [
        tuple("".join(rng.choice(alphabet) for _ in range(rng.randrange(7))) for alphabet in ("ab*%_\\", "ab%_\\"))
        for _ in range(3_000)
    ]
    patterns, texts = map(list, zip(*given, strict=True))
    with target.lead() as session:
        asked = b"SELECT glob(pattern, value) FROM unnest($1::text[], $2::text[]) AS given (pattern, value)"
        theirs = [row[0] for row in session.run(asked, (patterns, texts))]
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        ours = [bool(db.execute("SELECT glob(?, ?)", pair).fetchone()[0]) for pair in given]
    assert theirs == ours == [matches(*pair) for pair in given]
    assert 0 < sum(ours) < len(ours)


# -- what guards it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DROP TRIGGER event_is_final ON event", "trigger event_is_final is missing"),
        ("ALTER TABLE event DISABLE TRIGGER event_is_kept", "trigger event_is_kept is not what"),
        ("DROP INDEX operation_hold", "index operation_hold is missing"),
        (
            "CREATE OR REPLACE FUNCTION is_removed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
            "function is_removed is not what",
        ),
    ],
)
def test_a_guard_that_was_taken_away_is_found(book, target, harm, said):
    """`verify` names what no longer guards the receipts."""
    assert list(guards.wrong(target.query)) == []
    with psycopg.connect(book, autocommit=True) as db:
        db.execute(harm)
    (found,) = guards.wrong(target.query)
    assert found.startswith(said)


# -- moving a file into a database -------------------------------------------------------------------------------------


def test_a_book_goes_on_in_a_database_as_it_stood(source, target, path):
    """Every row of every table, and every history; the file is refused afterwards."""
    before = list(source.histories())
    rows = copy(source, target)
    assert list(target.histories()) == before
    assert [fault for history in target.histories() for fault in faults(history)] == []
    assert rows == sum(source.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES)
    assert isinstance(target.write(claim(policy=1)), Claimed)
    source.close()
    with pytest.raises(StoreUnsafe, match="moved by `counterfoil store copy`"):
        SqliteStore(path)


def test_a_copy_that_ended_before_the_file_was_retired_is_taken_up(source, target, path):
    """What stands in the database is compared, and the file is retired then."""
    copy(source, target)
    source.execute("PRAGMA user_version = 3")
    assert copy(source, target) == copy(source, target)


def test_a_copy_goes_into_no_book_that_has_receipts_of_its_own(source, target):
    """Two books are never mixed: nothing is written to either."""
    own = claim()
    target.write(own)
    with pytest.raises(StoreUnsafe, match="holds other receipts"):
        copy(source, target)
    assert [o.id for o in target.operations(limit=9)] == [own.id]
    assert source.query("PRAGMA user_version")[0][0] == len(opening.MIGRATIONS)
    assert isinstance(source.write(claim(policy=1)), Claimed)


@pytest.mark.parametrize("at", [5, 25], ids=["written", "compared"])
def test_a_copy_that_is_stopped_in_the_middle_leaves_nothing(source, target, at):
    """All of it or none: what was written before is gone, and the file goes on."""
    passed = iter(range(at))

    def fail(_):
        if next(passed, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(source, target, fail)
    assert list(target.histories()) == []
    assert isinstance(source.write(claim(policy=1)), Claimed)
