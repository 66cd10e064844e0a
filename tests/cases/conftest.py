"""A provider process for each module, and a receipts file for each test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

import pytest
import yaml
from tests.cases.stage import Lab

import counterfoil
from counterfoil.lab.contract_copy import write_copy
from counterfoil.lab.processes import start_provider


@pytest.fixture(name="provider", scope="module")
def _provider(tmp_path_factory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("truth")
    with start_provider(folder) as child:
        yield Lab(child, folder)


@pytest.fixture
def lab(provider) -> Iterator[Lab]:
    """The module's provider, in order before and after; every test counts under names of its own."""
    provider.faults()
    yield provider
    provider.faults()


@pytest.fixture
def book(tmp_path) -> Iterator[Callable[..., counterfoil.Ledger]]:
    """Open the test's receipts file, once more for every restart that is played; all are closed with the test."""
    with contextlib.ExitStack() as opened:

        def open_book(name="receipts.db", **fields):
            ledger = counterfoil.open(tmp_path / name, **{"actor": "agent:desk", **fields})
            opened.callback(ledger.close)
            return ledger

        yield open_book


@pytest.fixture
def brief(tmp_path) -> Callable[..., str]:
    """Write a copy of a laboratory contract with other clauses, in its one look too, and return its path."""

    def copy(kind: str, *, look: Mapping[str, object] | None = None, **changes: object) -> str:
        path = write_copy(tmp_path, f"lab.{kind}", changes)
        if look:
            found = yaml.safe_load(path.read_text(encoding="utf-8"))
            found["looks"][0].update(look)
            path.write_text(yaml.safe_dump(found), encoding="utf-8")
        return str(path)

    return copy
