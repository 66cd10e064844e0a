"""`counterfoil verify --write-heads` and `--heads`: what was taken away with everything that told of it is missed."""

from __future__ import annotations

import json
import stat

import pytest
from tests.surface.books import Book

pytestmark = pytest.mark.slow  # each test starts at least one interpreter


@pytest.fixture
def book(tmp_path):
    """A closed receipts file."""
    return Book(tmp_path).write("succeeded", "rejected", "unknown")


@pytest.fixture
def heads(commands, book, tmp_path):
    """Its heads, kept somewhere else."""
    path = tmp_path / "heads.jsonl"
    assert commands("verify", "--store", book.path, "--write-heads", path).code == 0
    return path


def row(book, key):
    """The row number of an operation."""
    return int(book.ids[key][3:15], 16)


def test_a_head_is_a_private_line_of_json(book, heads):
    """One for each operation: which, its last event, and that event's hash."""
    said = [json.loads(line) for line in heads.read_text().splitlines()]
    assert {head["operation"] for head in said} == set(book.ids.values())
    assert all(set(head) == {"operation", "seq", "hash"} for head in said)
    assert all(len(head["hash"]) == 64 and head["seq"] >= 1 for head in said)
    assert stat.S_IMODE(heads.stat().st_mode) == 0o600


def test_an_honest_file_has_every_head(commands, book, heads):
    """Also after more was written to it."""
    assert commands("verify", "--store", book.path, "--heads", heads).code == 0
    words = ("--as", "dana", "--reason", "asked for", "--store", str(book.path))
    assert commands("erase", book.ids["rejected"], *words).code == 0
    said = commands("verify", "--store", book.path, "--heads", heads, "--deep", "--json")
    assert said.json["violations"] == []


def test_an_operation_that_was_taken_away_whole_is_missed(commands, book, heads):
    """Row and events deleted: the file alone is whole, and the heads know better."""
    n = row(book, "unknown")
    book.sqlite(("DELETE FROM event WHERE id / 32768 = ?", (n,)), ("DELETE FROM operation WHERE n = ?", (n,)))
    before = {v["law"] for v in commands("verify", "--store", book.path, "--json").json["violations"]}
    assert before <= {"file"}  # the guards that had to be dropped for it
    said = commands("verify", "--store", book.path, "--heads", heads, "--json")
    assert said.code == 1
    (gone,) = [v for v in said.json["violations"] if v["law"] == "chain"]
    assert (gone["operation"], gone["problem"]) == (
        book.ids["unknown"], "it stood there when the heads were kept, and is gone",
    )  # fmt: skip


def test_another_event_in_its_place_is_found(commands, book, heads):
    """A head that is another than the one kept, wherever it came from."""
    kept = [json.loads(line) for line in heads.read_text().splitlines()]
    kept[0]["hash"] = "0" * 64
    heads.write_text("".join(json.dumps(head) + "\n" for head in kept))
    said = commands("verify", "--store", book.path, "--heads", heads, "--json")
    assert (said.code, said.json["violations"][0]["problem"]) == (1, "its event is not the one whose head was kept")


def test_what_cannot_be_read_any_more_is_found(commands, book, heads):
    """A head of it was kept, so that somebody could read it then."""
    book.sqlite(("UPDATE event SET kind = 'guessed' WHERE id = ?", (row(book, "unknown") * 32768 + 2,)))
    said = commands("verify", "--store", book.path, "--heads", heads, "--json")
    wanted = {"operation": book.ids["unknown"], "seq": 2, "law": "chain"}
    assert {**wanted, "problem": "it cannot be read, and a head was kept of it"} in said.json["violations"]


@pytest.mark.parametrize("content", ["{\n", '{"operation": "op_1"}\n', None])
def test_what_is_no_file_of_heads_must_be_mended(commands, book, tmp_path, content):
    """Not read as one without operations: exit 2, and no verdict."""
    path = tmp_path / "other.jsonl"
    if content is not None:
        path.write_text(content)
    said = commands("verify", "--store", book.path, "--heads", path, "--json")
    assert (said.code, "no file of heads" in json.dumps(said.json)) == (2, True)


def test_heads_are_never_written_over_the_receipts(commands, book):
    """Nor of a file in which something is wrong."""
    said = commands("verify", "--store", book.path, "--write-heads", book.path)
    assert (said.code, "receipts file itself" in said.err) == (2, True)
    assert commands("verify", "--store", book.path).code == 0
    path = book.path.with_name("heads.jsonl")
    book.sqlite(("UPDATE operation SET exposure = 7 WHERE n = ?", (row(book, "unknown"),)), guarded=True)
    assert (commands("verify", "--store", book.path, "--write-heads", path).code, path.exists()) == (1, False)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE worker SET host = ''", "not as a worker writes it"),
        ("UPDATE worker SET lock_path = ''", "not as a worker writes it"),
        ("UPDATE worker SET id = 'nobody'", "not as a worker writes it"),
        ("UPDATE clock SET at = 9e12", "more than a day ahead"),
        ("INSERT INTO refusal VALUES (7, 3, 1800000000.0)", "refusal row"),
        ("UPDATE operation SET due_at = 5.0 WHERE outcome = 'succeeded'", "due_at"),
        ("INSERT INTO body SELECT id, body FROM event WHERE body IS NOT NULL LIMIT 1", "second body row"),
    ],
)
def test_what_stands_beside_the_receipts_is_looked_at(commands, book, statement, problem):
    """Rows that no chain covers: of workers, of refusals, of bodies, and the time that is kept."""
    book.sqlite((statement, ()), guarded=True)
    said = commands("verify", "--store", book.path, "--json")
    assert said.code == 1
    assert any(problem in v["problem"] for v in said.json["violations"]), said.json


def test_receipts_without_a_version_are_named(commands, book):
    """A mark that was taken away is not a new file, whose tables would be made once more."""
    book.sqlite(("PRAGMA user_version = 0", ()), guarded=True)
    said = commands("verify", "--store", book.path, "--json")
    assert (said.code, "has receipts and no version" in json.dumps(said.json)) == (4, True)
