"""`counterfoil brief`: what must not be repeated, or nothing."""

from __future__ import annotations

import pytest
from tests.surface.books import SECRET, Book

import counterfoil

pytestmark = pytest.mark.slow  # each test starts at least one interpreter


def test_what_is_unresolved_is_named_and_counted(tmp_path, commands):
    """The briefing names each unresolved operation and says that it must not be repeated."""
    book = Book(tmp_path).write("succeeded", "unknown", "contradicted")
    said = commands("brief", "--store", book.path)
    assert said.code == 0
    assert said.out.startswith("Unresolved effects: 2. Each may already have happened; do not repeat any of them.\n")
    assert book.ids["unknown"] in said.out
    assert book.ids["succeeded"] not in said.out
    assert SECRET not in said.out


def test_it_is_what_the_library_says(tmp_path, commands):
    """The command prints the ledger's own briefing, and with `--json` the exact count beside it."""
    book = Book(tmp_path).write("unknown", "contradicted")
    told = commands("brief", "--store", book.path, "--tenant", "shop", "--json").json
    assert told["unresolved"] == 2
    assert told["tenants"]["shop"] == told["briefing"]
    with counterfoil.open(book.path) as ledger:
        assert ledger.briefing(tenant="shop").split(", ")[0] == told["briefing"].split(", ")[0]


def test_only_what_the_caller_may_touch(tmp_path, commands):
    """Another tenant's effects and other accounts are not told."""
    book = Book(tmp_path).write("unknown")
    assert commands("brief", "--store", book.path, "--tenant", "other").out == ""
    assert commands("brief", "--store", book.path, "--account", "other").out == ""
    assert commands("brief", "--store", book.path, "--account", "other", "--account", "acct").out != ""
    assert commands("brief", "--store", book.path, "--account", "other", "--json").json["unresolved"] == 0


def test_nothing_unresolved_is_no_word(tmp_path, commands):
    """Where nothing is unresolved a prompt gets nothing."""
    book = Book(tmp_path).write("succeeded", "rejected")
    said = commands("brief", "--store", book.path)
    assert (said.code, said.out, said.err) == (0, "", "")
