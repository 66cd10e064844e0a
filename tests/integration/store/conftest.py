"""A store of each kind there is, and as many openers of the same book as a test asks for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest
from tests.integration.store.commands import faults

from counterfoil.ports.store import Store
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.sqlite import SqliteStore

NIGHTLY = bool(os.environ.get("COUNTERFOIL_NIGHTLY"))
MakeStore = Callable[..., Store]


def sqlite(request):
    """Opens the one file of this test's folder."""
    folder = request.getfixturevalue("tmp_path")
    return lambda clock: SqliteStore(folder / "receipts.db", clock=clock or time.time)


def postgresql(request):
    """Opens one book of the session's server."""
    url = request.getfixturevalue("postgres").book()
    return lambda clock: PostgresStore(url, clock=clock)


def postgresql_through_pgbouncer(request):
    """Opens one book of the session's server, by way of a pooler of transactions."""
    url = request.getfixturevalue("pooled").book()
    return lambda clock: PostgresStore(url, clock=clock)


POOLED = "postgresql through pgbouncer"
KINDS = {"sqlite": sqlite, "postgresql": postgresql, POOLED: postgresql_through_pgbouncer}
"""Every store passes the same tests."""
POOLED_ALWAYS = ("test_claiming", "test_reading", "test_settling")
"""What is tried through the pooler whenever the tests run; nightly all of it is."""


def pytest_generate_tests(metafunc):
    """Try every test of a store on each kind there is."""
    if "make_store" in metafunc.fixturenames:
        always = metafunc.module.__name__.rpartition(".")[2] in POOLED_ALWAYS
        kinds = [kind for kind in KINDS if kind != POOLED or always or NIGHTLY]
        metafunc.parametrize("make_store", kinds, indirect=True)


@pytest.fixture
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
