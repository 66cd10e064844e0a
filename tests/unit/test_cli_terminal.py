"""How a command speaks and ends: no text acts on a terminal, and every error has a documented exit code."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pytest

from counterfoil.cli import exits
from counterfoil.cli.terminal import clipped, console, print_json, safe
from counterfoil.domain.errors import CounterfoilError


def test_every_error_has_an_exit_code_of_the_table():
    """The command line answers every error of the tree, and every code it answers with is documented."""
    documented = {code for code, _ in exits.EXITS}
    found = [CounterfoilError]
    for error in found:
        found += error.__subclasses__()
        assert error.exit_code in documented, error


@pytest.mark.parametrize(("codes", "first"), [({1, 2, 5, 4}, 4), ({1, 2, 5}, 5), ({1, 2}, 2), ({1}, 1), (set(), 0)])
def test_the_most_urgent_code_wins(codes, first):
    """Of several codes the one is answered that must be acted upon first."""
    assert exits.most_urgent(codes) == first


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode ✓", "plain ünïcode ✓"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\u2028\x00\x7f", "\\u2028\\x00\\x7f"),
    ],
)
def test_no_stored_text_acts_on_a_terminal(text, shown):
    """What does not print is shown as its escape; everything else stays as it is."""
    assert safe(text) == shown
    assert safe(text).isprintable()


def test_a_long_text_is_cut_with_a_sign():
    """A cut says that it is one, and never exceeds its width."""
    assert clipped("x" * 50, 10) == "x" * 9 + "…"
    assert clipped("\x1b" * 50, 10) == "\\x1b\\x1b\\…"
    assert clipped("short", 10) == "short"


@pytest.mark.parametrize(
    ("said", "width"), [("80", 80), ("40", 40), ("", 120), ("wide", 120), ("0", 120), ("-5", 120), ("٣", 120)]
)
def test_a_pipe_is_as_wide_as_columns_says(monkeypatch, said, width):
    """COLUMNS names the width where no terminal does; what is no width is as if nothing were said."""
    monkeypatch.setenv("COLUMNS", said)
    assert console(io.StringIO()).width == width


def test_json_is_one_line_of_ascii(capsys):
    """Nothing in the output of --json can be an escape sequence, a second line or a character that is missing."""
    print_json({"text": "\x1b[31m\n\u202e\x9b ü"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.count("\n") == 1
    assert out.rstrip("\n").isprintable()
    assert json.loads(out) == {"text": "\x1b[31m\n\u202e\x9b ü"}


def test_json_spells_what_json_lacks(capsys):
    """Exact decimals and bytes appear in the house's own tagged form."""
    print_json({"amount": Decimal("1.50"), "raw": b"hi"})
    assert json.loads(capsys.readouterr().out) == {"amount": {"$decimal": "1.50"}, "raw": {"$bytes": "aGk="}}
