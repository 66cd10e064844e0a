"""`counterfoil store`: where receipts stand, and the way from a file into a database."""

from __future__ import annotations

import contextlib

import pytest
from tests.surface.books import Book

import counterfoil

CASES = ("succeeded", "rejected", "unknown", "held", "large")


@pytest.fixture
def url(postgres):
    """An empty book, by a URL with a password nobody asks for."""
    return postgres.book().replace("postgres@", "postgres:hunter2@")


@pytest.fixture
def book(commands):
    """A file with something of everything."""
    return Book(commands.folder).write(*CASES)


def test_an_empty_database_is_refused_until_it_is_migrated(commands, url):
    """A command that reads makes no tables; the one that is asked for makes them, and says from where to where."""
    refused = commands("list", "--store", url)
    assert (refused.code, "store migrate" in refused.err) == (4, True)
    made = commands("store", "migrate", "--store", url, "--json")
    assert (made.code, made.json["before"], made.json["schema"]) == (0, 0, 4)
    assert "as this version makes it" in commands("store", "migrate", env={"COUNTERFOIL_STORE": url}).out
    checked = commands("store", "check", "--store", url, "--json")
    assert (checked.json["fsync"], checked.json["operations"], checked.json["schema"]) == ("on", 0, 4)
    assert not any("hunter2" in said.out + said.err for said in (refused, made, checked))


def test_a_file_is_checked_by_the_same_word(commands, book):
    """Where receipts stand in a file, its own settings are said."""
    checked = commands("store", "check", "--store", book.path, "--json").json
    assert (checked["journal"], checked["schema"], checked["unresolved"]) == ("wal", 4, 2)


def test_a_file_goes_on_in_a_database(commands, book, url):
    """Everything is read there as it was, verified; the file sends nothing any more."""
    before = commands("list", "--store", book.path, "--json").lines
    copied = commands("store", "copy", "--from", book.path, "--to", url, "--json")
    assert copied.code == 0, copied
    after = commands("list", "--store", url, "--json").lines
    stands = [{k: v for k, v in each.items() if k != "age_seconds"} for each in after]
    assert stands == [{k: v for k, v in each.items() if k != "age_seconds"} for each in before]
    assert commands("verify", "--store", url, "--json").json["violations"] == []
    shown = commands("show", book.ids["unknown"], "--store", url)
    assert '--store "$COUNTERFOIL_STORE"' in shown.out
    refused = commands("list", "--store", book.path)
    assert (refused.code, "moved by" in refused.err) == (4, True)
    with pytest.raises(counterfoil.OperatorError, match="moved by"):
        counterfoil.open(book.path)


def test_a_file_in_use_is_not_copied(commands, url):
    """A process that goes on with the file would send what another on the database sends too."""
    with contextlib.closing(counterfoil.open(commands.folder / "receipts.db")) as ledger:
        ledger.action(lambda: {"id": 1}, name="pay", key=lambda: "k", owner="o", authoriser="a")()
        refused = commands("store", "copy", "--from", "receipts.db", "--to", url)
    assert (refused.code, "in use by process" in refused.err) == (4, True)


def test_a_broken_chain_is_not_carried_on(commands, book, url):
    """What does not verify is not copied, and stays where it is."""
    book.sqlite("UPDATE event SET at = at + 1")
    refused = commands("store", "copy", "--from", book.path, "--to", url)
    assert (refused.code, "does not verify" in refused.err) == (4, True)
    assert commands("list", "--store", book.path).code == 0


def test_grants_are_printed_and_run(commands, url, postgres):
    """What is printed is SQL for the owner, and nothing else stands beside it."""
    commands("store", "migrate", "--store", url)
    printed = commands("store", "grants", "--application", "cli_app", "--eraser", "cli_era").out
    with postgres.connect(options=url.partition("options=")[2].replace("%20", " ").replace("%3D", "=")) as db:
        db.execute("CREATE ROLE cli_app")
        db.execute("CREATE ROLE cli_era")
        db.execute(printed)
        asked = "SELECT has_table_privilege(%s, 'event', %s)"
        assert db.execute(asked, ("cli_app", "UPDATE")).fetchone() == (False,)
        assert db.execute(asked, ("cli_era", "DELETE")).fetchone() == (True,)


def test_an_actions_file_names_a_database(shop, url):
    """`store:` of an actions file may be a URL: the run records there, once, and the worker settles what it left."""
    actions = shop.folder / "lab.yaml"
    plain = url.replace(":hunter2", "")
    actions.write_text(actions.read_text().replace("actor:", f"store: {plain}\nactor:", 1))
    shop.faults({"route": "*", "every": 2, "behaviour": "lose_reply"})
    ran = shop("run", shop.intents(6), "--json")
    assert ran.code in (0, 1), ran
    shop("worker", "--once", "--actions", "lab.yaml")
    again = shop("run", "lab.jsonl", "--json")
    assert (again.code, sorted(shop.effects()), shop.sends()) == (0, list(range(6)), 6), again
    assert not (shop.folder / "receipts.db").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("migrate", "--store", "receipts.db"),
        ("copy", "--from", "receipts.db", "--to", "other.db"),
        ("grants", "--application", "a b", "--eraser", "c"),
    ],
)
def test_what_makes_no_sense_is_said(commands, words):
    """A file is no database, and a sentence is no role."""
    assert commands("store", *words).code == 2
