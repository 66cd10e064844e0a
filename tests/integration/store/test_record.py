"""The tables: append-only by trigger, typed by the engine, and read the same by whoever looks."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest
from tests.integration.store.commands import claim, evidence, faults, observe, settle

from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.words import Source
from counterfoil.store.opening import MIGRATIONS


@pytest.fixture
def written(open_sqlite, path):
    """A store with one settled operation, its claim, and a stranger's connection to the same file."""
    store = open_sqlite()
    first = claim(body=b"s" * 3000)
    store.write(settle(first, store.write(first), body=b"small"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as stranger:
        yield store, first, stranger


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event",
        "UPDATE event SET record = x'00'",
        "UPDATE event SET hash = x'00'",
        "UPDATE event SET kind = 'decided'",
        "UPDATE event SET at = 0",
        "UPDATE event SET id = id + 1",
    ],
)
def test_an_event_is_never_changed_nor_taken_back(written, statement):
    """Not even by a stranger's statement: the table itself refuses."""
    store, first, stranger = written
    before = store.load(first.id)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        stranger.execute(statement)
    assert store.load(first.id) == before


def test_bodies_can_be_erased_without_breaking_the_chain(written):
    """What is personal is nulled, small or large, and every hash still holds."""
    store, first, stranger = written
    stranger.execute("UPDATE event SET body = NULL")
    stranger.execute("UPDATE body SET bytes = NULL")
    history = store.load(first.id)
    assert [event.body for event in history.events] == [None, None]
    assert faults(history) == [f"{first.id}: its payload is lost"]
    store.write(observe(first.id, evidence(source=Source.LOOK)))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("outcome", "done"),
        ("dispatch", "running"),
        ("permission", "maybe"),
        ("disposition", "lost"),
        ("discrepancy", "yes"),
        ("attempts", "many"),
        ("value", "much"),
        ("id", None),
    ],
)
def test_a_column_holds_only_its_own_words(written, column, value):
    """A word that is not one of the house's, or a value of another type, is refused by the engine."""
    _, _, stranger = written
    with pytest.raises(sqlite3.IntegrityError):
        stranger.execute(f"UPDATE operation SET {column} = ?", (value,))


def test_a_missing_tail_stops_the_writer(written):
    """An operation that counts more events than it has is a broken invariant: nothing is repaired in place."""
    store, first, stranger = written
    stranger.execute("UPDATE operation SET seq = seq + 1")
    with pytest.raises(InvariantBroken, match="names 3 events and has 2"):
        store.write(observe(first.id, evidence(source=Source.LOOK)))
    stranger.execute("UPDATE operation SET seq = seq - 1")


def test_an_effect_has_one_holder_by_index(written):
    """Two unresolved operations in one slot are impossible for any writer."""
    store, _, stranger = written
    for _ in range(2):
        store.write(claim())
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        stranger.execute("UPDATE operation SET effect = 'same' WHERE unresolved = 1")


def test_the_file_says_whose_it_is(written):
    """Header and schema version are those of receipts."""
    _, _, stranger = written
    assert stranger.execute("PRAGMA application_id").fetchone()[0].to_bytes(4, "big") == b"CFOI"
    assert stranger.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    assert stranger.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
