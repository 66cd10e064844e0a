"""`counterfoil audit sample`: resolved operations at random, and whether each explains itself."""

from __future__ import annotations

import pytest
from tests.integration.store.keeping import adopt
from tests.surface.books import Book
from tests.surface.governed import Governed

from counterfoil.bootstrap import open_ledger
from counterfoil.domain.policy import Retention

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

RESOLVED = ("succeeded", "large", "rejected", "not_sent", "sent_later", "resolved")


@pytest.fixture
def book(tmp_path):
    """Every outcome once: what is unresolved, contradicted or held is never drawn."""
    return Book(tmp_path).write(*RESOLVED, "unknown", "contradicted", "held")


def drawn(said):
    """The sampled operations by key."""
    return {one["key"]: one for one in said.json["operations"]}


def test_every_resolved_operation_can_be_reconstructed(commands, book):
    """A sample of all of them: each is clean, has its evidence and its bodies."""
    said = commands("audit", "sample", "--json")
    assert said.code == 0
    assert (said.json["resolved"], said.json["sampled"], said.json["ok"]) == (6, 6, True)
    assert sorted(drawn(said)) == sorted(RESOLVED)
    assert all(one["reconstructed"] and one["body"] == "present" for one in said.json["operations"])
    shown = commands("audit", "sample", "--seed", "5").out
    assert "6 of 6 resolved" in shown
    assert "--seed 5 draws them again" in shown
    assert "each can be reconstructed from its receipt alone" in shown


def test_a_seed_draws_the_same_again(commands, book):
    """The seed that was printed repeats the sample; each seed draws as many as were asked for."""
    first = commands("audit", "sample", "--n", "2", "--json").json
    again = commands("audit", "sample", "--n", "2", "--seed", str(first["seed"]), "--json").json
    assert again == first
    assert (first["sampled"], first["resolved"]) == (2, 6)
    samples = [commands("audit", "sample", "--n", "2", "--seed", str(seed), "--json") for seed in range(8)]
    assert len({tuple(sorted(drawn(said))) for said in samples}) > 1


def test_erased_and_removed_on_record_are_no_gap(commands, book):
    """What went on somebody's word is none; of what retention removed nothing is said to be reconstructed."""
    assert commands("erase", book.ids["resolved"], "--as", "Dana", "--reason", "asked").code == 0
    said = commands("audit", "sample", "--json")
    assert (said.code, drawn(said)["resolved"]["body"]) == (0, "erased")
    with open_ledger(book.path) as ledger:
        adopt(ledger.store, Retention(sensitivity="ordinary", receipts_seconds=0.0))
    assert commands("retain").code == 0
    said = commands("audit", "sample", "--json")
    drawn_now = said.json["operations"]
    assert (said.code, {(one["body"], one["reconstructed"], one["tombstone"]) for one in drawn_now}) == (
        0, {("removed", False, True)},
    )  # fmt: skip
    shown = commands("audit", "sample").out
    assert "tombstones: removed by retention" in shown
    again = commands("erase", book.ids["resolved"], "--as", "Dana", "--reason", "asked")
    assert (again.code, "there was nothing left to erase" in again.out) == (0, True)


FAULTS = {
    "UPDATE event SET body = NULL WHERE id = first": "a body is gone, and nothing on record says who erased it",
    "UPDATE event SET record = x'00' WHERE id = first": "record: its record cannot be read as 'begun'",
    "UPDATE operation SET settled_by = 'succeeded:look' WHERE n = row": "projection: settled_by is",
    "UPDATE operation SET outcome = 'fine' WHERE n = row": "it cannot be read: ",
}


@pytest.mark.parametrize("statement", FAULTS)
def test_what_cannot_be_reconstructed_is_named(commands, book, statement):
    """Exit 1, with the operation and what is missing; the others are judged all the same."""
    row = "(SELECT n FROM operation WHERE key = 'succeeded')"
    made = statement.replace("first", f"{row} * 32768 + 1").replace("= row", f"= {row}")
    book.sqlite("PRAGMA ignore_check_constraints = 1", made)
    said = commands("audit", "sample", "--json")
    assert (said.code, said.json["ok"], said.json["sampled"]) == (1, False, 6)
    broken = [one for one in said.json["operations"] if not one["reconstructed"]]
    assert [one["operation_id"] for one in broken] == [book.ids["succeeded"]]
    assert any(reason.startswith(FAULTS[statement]) for reason in broken[0]["because"])
    shown = commands("audit", "sample")
    assert (shown.code, "✗ 1 cannot be reconstructed" in shown.out) == (1, True)


def test_what_people_allowed_is_drawn_once_it_is_over(tmp_path, commands):
    """A question that is open is not resolved; an approved, sent and answered one explains itself."""
    book = Governed(tmp_path).write("asked", value=5000.0).write("denied", value=5000.0)
    assert commands("audit", "sample", "--json").json["resolved"] == 0
    book.decide("asked", "approve", by="mara").decide("asked", "approve", by="dana").decide("denied", "deny")
    book.write("asked", value=5000.0)
    said = commands("audit", "sample", "--json")
    assert (said.code, sorted(drawn(said))) == (0, ["asked", "denied"])


@pytest.mark.parametrize("width", [200, 80, 40])
def test_every_width_has_every_fact(commands, book, width):
    """A wide terminal gets a table, a narrow one cards; no line is wider."""
    code, shown = commands.in_terminal("audit", "sample", env={"COLUMNS": str(width), "NO_COLOR": "1"})
    assert code == 0
    assert all(len(line.rstrip()) <= width for line in shown.splitlines())
    assert all(book.ids[key][:15] in shown for key in RESOLVED)
    assert shown.count("present") == 6
    assert shown.count("☑ yes") == 6


def test_an_empty_book_says_so(tmp_path, commands):
    """Nothing resolved is nothing to draw from."""
    Book(tmp_path).write("unknown")
    said = commands("audit", "sample")
    assert (said.code, said.out) == (0, "nothing is resolved yet, so there is nothing to draw from\n")
    assert commands("audit", "sample", "--json").json["operations"] == []


@pytest.mark.parametrize(
    "words", [("audit",), ("audit", "sample", "--n", "0"), ("audit", "sample", "--seed", "x"), ("audit", "draw")]
)
def test_a_call_that_cannot_be_read_is_refused(commands, words):
    """A number that is none, or no such thing to do: exit 2 before anything is read."""
    assert commands(*words).code == 2
