"""`counterfoil list`: what stands in the book, as it reads now, and why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.surface.books import SECRET, Book

import counterfoil
from counterfoil.domain.operation import COLUMNS

pytestmark = pytest.mark.slow  # each test starts at least one interpreter


def listed(commands, *words):
    """The JSON lines of a list, by key."""
    return {line["key"]: line for line in commands("list", "--store", "receipts.db", "--json", *words).lines}


@pytest.fixture
def book(tmp_path):
    """A closed receipts file with every outcome in it."""
    return Book(tmp_path).write("succeeded", "rejected", "unknown", "not_sent", "contradicted", "held")


READS = {
    "succeeded": ("succeeded", "the provider's answer", ""),
    "rejected": ("rejected", "the provider's answer", ""),
    "unknown": ("manual_review", "the contract names no look", "resolve with evidence"),
    "not_sent": ("planned", "nothing left", "the same call may send it"),
    "contradicted": ("manual_review", "evidence contradicts evidence", "resolve with evidence"),
    "holder": ("manual_review", "the contract names no look", "resolve with evidence"),
}


def test_every_column_and_what_follows_from_it(commands, book):
    """A JSON line has every column of its row, `outcome` as it reads now, and the derived names."""
    lines = listed(commands)
    assert all(set(COLUMNS) <= line.keys() for line in lines.values())
    assert {k: (v["lifecycle"], v["why"], v["next"]) for k, v in lines.items() if k in READS} == READS
    assert lines["api-holder"]["why"] == f"held by {book.ids['holder']}"
    assert (lines["unknown"]["outcome"], lines["unknown"]["exposed_value"]) == ("unknown", 100.0)
    assert (lines["succeeded"]["exposed_value"], lines["succeeded"]["unresolved"]) == (0.0, False)
    assert lines["contradicted"]["exposure"] == 0
    assert lines["contradicted"]["exposed_value"] == 100.0


def test_newest_first_and_the_rest_is_counted(commands, book):
    """A limit cuts the oldest, and says how many more there are."""
    keys = list(listed(commands))
    assert keys == ["api-holder", "holder", "contradicted", "not_sent", "unknown", "rejected", "succeeded"]
    said = commands("list", "--store", "receipts.db", "--limit", "3")
    assert f"and {len(keys) - 3} more" in said.out
    cut = commands("list", "--store", "receipts.db", "--limit", "3", "--json")
    assert [line["key"] for line in cut.lines] == keys[:3]
    assert cut.err == f"and {len(keys) - 3} more\n"
    assert "more" not in commands("list", "--store", "receipts.db", "--limit", str(len(keys))).out


def test_what_is_unresolved_comes_by_exposure_and_age(tmp_path, commands):
    """The most exposed for the longest comes first, and nothing that is settled comes at all."""
    Book(tmp_path).write("succeeded", "contradicted", value=5.0)
    Book(tmp_path).write("unknown", value=5000.0)
    assert list(listed(commands, "--unresolved")) == ["unknown", "contradicted"]
    assert list(listed(commands, "--unresolved", "--limit", "1")) == ["unknown"]
    assert "5,005 exposed" in commands("list", "--store", "receipts.db", "--unresolved").out


def test_glyph_and_word_without_colour(commands, book):
    """A pipe gets no escape sequence: the glyph and the word say everything, one line an operation."""
    said = commands("list", "--store", "receipts.db", env={"COLUMNS": ""})
    assert "\x1b" not in said.out
    (line,) = [line for line in said.out.splitlines() if book.ids["unknown"][:15] in line]
    assert all(part in line for part in ("100", "refund", "⬖ manual_review", "the contract names no look", "payments"))
    assert max(map(len, said.out.splitlines())) <= 120
    assert "· nothing is exposed" in said.out
    assert "manual_review: a person is next; counterfoil show ID" in said.out
    assert "✓ succeeded" in said.out
    assert "☒ rejected" in said.out


def test_unknown_is_solid_violet_where_there_is_colour(commands, book):
    """On a terminal the unresolved stand on the only solid ground."""
    code, shown = commands.in_terminal("list", "--store", "receipts.db", env={"COLORTERM": "truecolor"})
    assert code == 0
    assert "\x1b[1;38;2;255;255;255;48;2;91;43;176m ⬖ manual_review \x1b[0m" in shown


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_width_has_every_fact(commands, book, width):
    """A narrow terminal gets cards, a wide one a line each; no line is wider, and every id is one that `show` takes."""
    env = {"COLUMNS": str(width), "NO_COLOR": "1"}
    code, shown = commands.in_terminal("list", "--store", "receipts.db", env=env)
    assert code == 0
    assert all(len(line) <= width for line in shown.splitlines())
    named = [name if width < 120 else name[:15] for name in book.ids.values()]
    assert all(name in shown for name in named)
    assert width < 120 or all(
        sum(name in line for line in shown.splitlines() if "held by" not in line) <= 1 for name in named
    )
    assert commands("show", named[0], "--store", "receipts.db", "--json").json["operation_id"] == next(
        iter(book.ids.values())
    )
    assert ("resolve with evidence" in shown) is (width != 120)


def test_a_long_why_breaks_before_a_key_is_cut(commands, tmp_path):
    """At 120 columns the key and the action are read whole; the sentence beside them goes on in the next line."""
    with counterfoil.open(tmp_path / "receipts.db") as ledger:
        said = {"account": "a", "owner": "payments-at-home", "authoriser": "l"}
        ledger.action(lost, name="refund.by.hand.of.the.shop", key=lambda k: k, **said)("order-2026-000123456")
    code, shown = commands.in_terminal(
        "list", "--unresolved", "--store", tmp_path / "receipts.db", env={"COLUMNS": "120", "NO_COLOR": "1"}
    )
    assert code == 0
    assert all(len(line) <= 120 for line in shown.splitlines())
    assert "refund.by.hand.of.the.shop" in shown
    assert "order-2026-000123456" in shown


def lost(k):
    raise TimeoutError


def test_a_narrow_encoding_gets_ascii(commands, book):
    """Where the locale has no room for a glyph, a plain one stands for it; nothing is lost and nothing fails."""
    said = commands("list", "--store", "receipts.db", env={"PYTHONIOENCODING": "ascii"})
    assert (said.code, said.out.isascii()) == (0, True)
    assert "? manual_review" in said.out
    assert "\\u" not in said.out


def test_nothing_of_a_payload_is_listed(commands, book):
    """No column holds what was sent."""
    assert SECRET not in commands("list", "--store", "receipts.db", "--json").out


def test_an_empty_book_says_so(tmp_path, commands):
    """Nothing on record is a sentence for people and no line for scripts."""
    Book(tmp_path).write()
    assert commands("list", "--store", "receipts.db").out == "no operation is on record\n"
    assert commands("list", "--store", "receipts.db", "--unresolved").out == "nothing is unresolved\n"
    assert commands("list", "--store", "receipts.db", "--json").out == ""


def test_a_started_attempt_is_in_flight_until_its_worker_is_dead(shop):
    """While its worker lives it is submitted; the moment the kernel proves it dead it already reads as unknown."""
    shop.faults({"route": "*", "behaviour": "hang"})
    shop.intents(1)
    running = shop.start("run", "lab.jsonl")
    shop.until_sent(1)
    (line,) = shop("list", "--json").lines
    assert (line["outcome"], line["lifecycle"], line["why"]) == ("unobserved", "submitted", "in flight")
    running.send_signal(signal.SIGKILL)
    running.wait(60)
    (line,) = shop("list", "--json").lines
    assert (line["outcome"], line["outcome_recorded"]) == ("unknown", "unobserved")
    assert (line["lifecycle"], line["why"]) == ("outcome_unknown", "nobody reported back")


def test_a_page_that_nobody_reads_ends_by_its_own_code(tmp_path, book):
    """For people as for scripts: 1 would say that something is unresolved."""
    for words in ([], ["--json"]):
        mine, theirs = os.pipe()
        os.close(mine)
        argv = [sys.executable, "-m", "counterfoil.cli", "list", "--store", "receipts.db", *words]
        run = subprocess.run(argv, cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False)
        os.close(theirs)
        assert (run.returncode, run.stderr) == (141, b"")


@pytest.mark.parametrize("limit", ["0", "-1", "many", "9999999"])
def test_a_limit_is_a_number_above_zero(commands, limit):
    """A limit that is none is refused before anything is read."""
    assert commands("list", "--limit", limit).code == 2
