"""What a full store is made of: whole receipts, in whichever store, and figures that only sound ones have."""

from __future__ import annotations

import contextlib

import pytest

from counterfoil.domain.audit import audit
from counterfoil.lab.bench import command, growth, stock
from counterfoil.lab.bench.footprint import footprint
from counterfoil.lab.bench.subject import Subject
from counterfoil.lab.failure import RunFailed

MANY = 1_200
"""More than one batch of the store's own pages, and two that are unresolved."""


@pytest.fixture(params=["sqlite", "postgresql"])
def subject(request, tmp_path):
    """A ledger to fill, in each kind of store."""
    url = tmp_path / "receipts.db" if request.param == "sqlite" else request.getfixturevalue("postgres").book()
    with contextlib.closing(Subject(url)) as made:
        yield made


def test_what_a_store_is_filled_with_is_whole(subject):
    """Each has an identity of its own, everything about it holds, and as many are unresolved as is said."""
    stuck = stock.fill(subject, MANY)
    histories = list(subject.ledger.store.histories())
    made = histories[:MANY]  # what it was cast from stands behind it
    assert [fault for history in histories for fault in audit(history)] == []
    for name in ("id", "key", "fingerprint", "effect"):
        assert len({getattr(history.operation, name) for history in made}) == MANY, name
    assert sum(bool(history.operation.unresolved) for history in made) == stuck == 2
    assert subject.call().operation.n > histories[-1].operation.n


def test_what_is_cast_is_as_long_as_what_was_called(subject):
    """As many bytes: a shorter key or record would make a smaller store, and another measurement."""
    subject.call()
    mould = stock.Mould(subject.ledger.store, subject.call().operation.n)
    operation, events = mould.cast(mould.operation[0] + 1)
    assert [lengths(row) for row in (operation, *events)] == [lengths(row) for row in (mould.operation, *mould.events)]


def lengths(row):
    """Of the texts and bytes of a row."""
    return [len(value) for value in row if isinstance(value, str | bytes)]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_growth_measures_a_call_and_the_verbs(tmp_path, monkeypatch):
    """The whole section: a ratio, and seconds and MiB of what reads them all."""
    monkeypatch.chdir(tmp_path)
    found = growth.run("sqlite", MANY, rounds=2)
    assert found["ratio"] > 0.0
    assert found["mib"] > 1.0
    assert set(found["verbs"]) == {"list", "list_all", "queue", "verify"}
    assert all(took["seconds"] > 0.0 and took["mib"] > 1.0 for took in found["verbs"].values())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_verb_that_fails_is_no_figure(tmp_path):
    """A command that ends at once is fast, and so is `verify` where it finds nothing to read."""
    with pytest.raises(RunFailed, match="ended with"):
        footprint(["verify", "--json", "--store", str(tmp_path / "none" / "receipts.db")])


@pytest.mark.parametrize(("operations", "name"), [
    (1_000_000, "growth_1e6"), (20_000, "growth_2e4"), (1_200, "growth_1200"), (1, "growth_1"),
    (50_000_000, "growth_5e7"),
])  # fmt: skip
def test_a_ratio_is_named_for_how_many_there_are(operations, name):
    """`growth_1e6` is a million."""
    assert growth.name_of(operations) == name


@pytest.mark.parametrize(
    ("operations", "ratio", "count"), [(1_000_000, 1.26, 1), (1_000_000, 1.25, 0), (2_000, 9.9, 0)]
)
def test_a_store_that_slows_its_calls_down_is_a_miss(held, operations, ratio, count):
    """Only what a million does to a call is held against the bar; a smaller store says nothing either way."""
    grown = {growth.name_of(operations): ratio, "growth": {"operations": operations}}
    assert len(command.missed({**held, **grown})) == count
