"""A store of each kind there is, and as many openers of the same book as a test asks for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from tests.integration.store.commands import faults

from counterfoil.ports.store import Store
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.sqlite import SqliteStore

MakeStore = Callable[..., Store]


def sqlite(request):
    """Opens the one file of this test's folder."""
    folder = request.getfixturevalue("tmp_path")
    return lambda clock: SqliteStore(folder / "receipts.db", clock=clock or time.time)


def postgresql(request):
    """Opens one book of the session's server."""
    url = request.getfixturevalue("postgres").book()
    return lambda clock: PostgresStore(url, clock=clock)


KINDS = {"sqlite": sqlite, "postgresql": postgresql}
"""Every store passes the same tests."""


@pytest.fixture(params=KINDS)
def make_store(request) -> Iterator[MakeStore]:
    """Open this test's book, again at each call; afterwards every history in it must add up."""
    opened = []
    kind = KINDS[request.param](request)

    def make(*, clock: Callable[[], float] | None = None) -> Store:
        opened.append(kind(clock))
        return opened[-1]

    yield make
    if opened:
        assert [fault for history in opened[0].histories() for fault in faults(history)] == []
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store) -> Store:
    """This test's book, opened."""
    return make_store()


@pytest.fixture
def path(tmp_path):
    """Where a receipts file of this test stands."""
    return tmp_path / "receipts.db"


@pytest.fixture
def open_sqlite(path) -> Iterator[Callable[..., SqliteStore]]:
    """Open this test's SQLite file, again at each call."""
    opened: list[SqliteStore] = []

    def make(**arguments) -> SqliteStore:
        opened.append(SqliteStore(path, **arguments))
        return opened[-1]

    yield make
    for store in opened:
        store.close()
