"""A line of intents that undoes an operation, and how both receipts show it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow  # each test starts a provider and at least one interpreter


@pytest.fixture
def paid(shop):
    """The id of an operation that succeeded."""
    shop.intents(1)
    assert shop("run", "lab.jsonl").code == 0
    return shop("list", "--json").json["id"]


def undo(shop, operation, **fields):
    """Run one line that undoes it."""
    shop.write("undo.jsonl", {"action": "lab.key", "key": "u", "payload": {"n": 7}, "compensates": operation} | fields)
    return shop("run", "undo.jsonl", "--actions", "lab.yaml", "--store", "receipts.db")


def test_both_receipts_name_the_other(shop, paid):
    """Drawn and exported."""
    assert undo(shop, paid).code == 0
    (undone,) = [found["id"] for found in shop("list", "--json").lines if found["id"] != paid]
    assert f"compensates    {undone}" not in shop("show", paid).out
    assert undone in shop("show", paid).out
    assert paid in shop("show", undone).out
    assert shop("show", paid, "--json").json["compensated_by"] == [undone]
    assert shop("export", undone, "--json").json["compensates"] == paid
    assert shop("verify").code == 0


@pytest.mark.parametrize(
    ("named", "problem"),
    [("", "is not the id of an operation"), (7, "is not the id of an operation"), ("op_x", "the id of the operation")],
)
def test_a_line_that_undoes_nothing_is_named(shop, paid, named, problem):
    """Nothing is sent for it."""
    before = shop.sends()
    said = undo(shop, named)
    assert said.code == 2
    assert problem in said.out + said.err
    assert shop.sends() == before
