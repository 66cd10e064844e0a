"""`counterfoil verify`: every accident and every edit of a real file that was not made with recomputation is found."""

from __future__ import annotations

import sqlite3

import pytest
from tests.surface.books import Book

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

CASES = ("succeeded", "rejected", "unknown", "not_sent", "sent_later", "resolved", "contradicted", "held")


@pytest.fixture
def book(tmp_path):
    """A closed receipts file with every outcome in it."""
    return Book(tmp_path).write(*CASES)


def row(book, key):
    """The row number of an operation."""
    return int(book.ids[key][3:15], 16)


def nobody(book):
    """A row number that is no operation's: one past the last, for two of one millisecond may stand side by side."""
    return max(row(book, key) for key in book.ids) + 1


def event(book, key, seq):
    """The row number of an event."""
    return row(book, key) * 32768 + seq


def found(commands, book):
    """What verify says of the file: its exit code and its violations by operation, event and law."""
    said = commands("verify", "--store", book.path, "--json")
    names = {v: k for k, v in book.ids.items()}
    assert said.json["ok"] is (said.code == 0)
    told = {(names.get(v["operation"], ""), v["seq"], v["law"]) for v in said.json["violations"]}
    return said.code, {v for v in told if v[2] != "file"}


def test_an_honest_file_is_whole(commands, book):
    """What the library wrote is whole: verify counts it, says so and ends with 0."""
    said = commands("verify", "--store", book.path, "--json")
    assert (said.code, said.json["ok"], said.json["violations"]) == (0, True, [])
    assert said.json["operations"] == len(book.ids)
    assert said.json["events"] == 2 + 2 + 2 + 2 + 4 + 3 + 4 + 2 + 1
    assert "whole" in commands("verify", "--store", book.path).out


def test_an_edited_record_is_found_and_named_first(commands, book):
    """A finding changed in place: exit 1, and the first bad row is named."""
    edit = "UPDATE event SET record = CAST(replace(record, 'unknown', 'success') AS BLOB) WHERE id = ?"
    book.sqlite((edit, (event(book, "unknown", 2),)))
    code, wrong = found(commands, book)
    assert code == 1
    assert ("unknown", 2, "chain") in wrong
    assert f"the first: {book.ids['unknown']} event 2" in commands("verify", "--store", book.path).out


def test_an_edited_time_is_found(commands, book):
    """A moment is covered by the chain to its last bit."""
    book.sqlite(("UPDATE event SET at = at + 0.001 WHERE id = ?", (event(book, "succeeded", 2),)))
    code, wrong = found(commands, book)
    assert (code, ("succeeded", 2, "chain") in wrong) == (1, True)


@pytest.mark.parametrize(
    ("key", "column", "value"),
    [
        ("unknown", "outcome", "'rejected'"),
        ("unknown", "unresolved", "0"),
        ("unknown", "exposure", "0"),
        ("succeeded", "attempts", "2"),
        ("succeeded", "settled_by", "'succeeded:look'"),
        ("contradicted", "discrepancy", "'settled'"),
        ("held", "held_by", "''"),
        ("rejected", "permission", "'denied'"),
    ],
)
def test_an_edited_column_is_found(commands, book, key, column, value):
    """The projection is compared with the fold of its events."""
    book.sqlite((f"UPDATE operation SET {column} = {value} WHERE n = ?", (row(book, key),)), guarded=True)
    code, wrong = found(commands, book)
    assert code == 1
    assert {(k, law) for k, _, law in wrong} == {(key, "projection")}


def test_a_deleted_event_is_found(commands, book):
    """The gap is named where the next event stands."""
    book.sqlite(("DELETE FROM event WHERE id = ?", (event(book, "sent_later", 2),)))
    code, wrong = found(commands, book)
    assert (code, ("sent_later", 3, "sequence") in wrong) == (1, True)


def test_a_deleted_tail_is_found(commands, book):
    """The operation's row knows how many events there were."""
    book.sqlite(("DELETE FROM event WHERE id = ?", (event(book, "contradicted", 4),)))
    code, wrong = found(commands, book)
    assert (code, ("contradicted", 4, "sequence") in wrong) == (1, True)


def test_an_inserted_event_is_found(commands, book):
    """An event that no hash and no row vouches for is found at the end of an operation, and beside all operations."""
    copy = "INSERT INTO event SELECT ?, kind, at, record, body, hash FROM event WHERE id = ?"
    source = event(book, "unknown", 2)
    book.sqlite((copy, (event(book, "unknown", 3), source)), (copy, (nobody(book) * 32768 + 1, source)))
    code, wrong = found(commands, book)
    assert code == 1
    assert {("unknown", 3, "chain"), ("", 1, "identity")} <= wrong


def test_two_swapped_events_are_found(commands, book):
    """Each event stands where its hash says."""
    one, two = event(book, "sent_later", 2), event(book, "sent_later", 3)
    move = "UPDATE event SET id = ? WHERE id = ?"
    book.sqlite((move, (1, one)), (move, (one, two)), (move, (two, 1)))
    code, wrong = found(commands, book)
    assert code == 1
    assert {("sent_later", 2, "chain"), ("sent_later", 3, "chain")} <= wrong


def test_another_payload_is_found_and_an_erased_one_is_not(commands, book):
    """A body that is there is the recorded one, and one that is gone was erased by a decision: that breaks no chain."""
    words = ("--as", "dana", "--reason", "asked for", "--store", str(book.path))
    assert commands("erase", book.ids["rejected"], *words).code == 0
    assert found(commands, book)[0] == 0
    edit = "UPDATE event SET body = CAST(body || x'20' AS BLOB) WHERE id = ?"
    book.sqlite((edit, (event(book, "unknown", 1),)), guarded=True)
    assert found(commands, book) == (1, {("unknown", 1, "body")})


def test_a_word_that_is_none_of_ours_is_found_and_the_rest_is_checked(commands, book):
    """A kind nobody knows ends the check of its own operation and of no other."""
    book.sqlite(
        ("UPDATE event SET kind = 'guessed' WHERE id = ?", (event(book, "rejected", 2),)),
        ("UPDATE operation SET exposure = 7 WHERE n = ?", (row(book, "held"),)),
    )
    code, wrong = found(commands, book)
    assert code == 1
    assert {(k, law) for k, _, law in wrong} == {("rejected", "record"), ("held", "projection")}


@pytest.mark.parametrize("to", [None, -1, 2**63 - 1])
def test_a_row_under_another_number_is_found(commands, book, to):
    """An operation moved to another row is not the one its id names, and its events belong to nobody."""
    book.sqlite(("UPDATE operation SET n = ? WHERE n = ?", (to or nobody(book), row(book, "unknown"))), guarded=True)
    code, wrong = found(commands, book)
    assert code == 1
    assert {("unknown", 0, "identity"), ("", 1, "identity"), ("", 2, "identity")} <= wrong


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("DROP TRIGGER event_is_kept", "trigger event_is_kept is missing"),
        ("DROP INDEX operation_hold", "index operation_hold is missing"),
        ("CREATE TRIGGER quiet AFTER INSERT ON event BEGIN SELECT 1; END", "trigger quiet is none of ours"),
    ],
)
def test_a_missing_guard_is_found(commands, book, statement, name):
    """What protects the rows is part of what is verified: a guard that is gone, or one more, is named."""
    book.sqlite(statement, guarded=True)
    said = commands("verify", "--store", book.path, "--json")
    assert said.code == 1
    assert any(name in v["problem"] for v in said.json["violations"])


def test_an_index_that_lost_a_row_is_found(commands, book):
    """A damaged hold would hold nothing: the file's own indexes are checked."""
    book.sqlite("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = sql || ' AND n < 0' "
                "WHERE name = 'operation_hold'", guarded=True)  # fmt: skip
    said = commands("verify", "--store", book.path, "--json")
    assert said.code == 1
    assert any("operation_hold" in v["problem"] for v in said.json["violations"])


def test_verifying_changes_nothing(commands, book):
    """Verify reads: the rows before and after are the same."""

    def rows():
        with sqlite3.connect(book.path) as db:
            return [db.execute(f"SELECT * FROM {table}").fetchall() for table in ("operation", "event", "body")]

    before = rows()
    assert commands("verify", "--store", book.path).code == 0
    assert rows() == before


def test_a_file_that_is_written_to_meanwhile_is_whole(commands, shop):
    """An operation is read with its events as they stood at one moment: a busy store raises no false alarm."""
    shop.intents(60, "lab.key")
    running = shop.start("run", "lab.jsonl", "--concurrency", "8")
    shop.until_sent(1)
    for _ in range(3):
        said = shop("verify", "--store", "receipts.db", "--json")
        assert (said.code, said.json["violations"]) == (0, [])
    running.communicate(timeout=60)
    assert running.returncode == 0


def test_a_missing_file_is_not_made(commands):
    """Verifying what is not there says so and creates nothing."""
    said = commands("verify", "--store", "nowhere.db")
    assert (said.code, said.out) == (4, "")
    assert not (commands.folder / "nowhere.db").exists()
