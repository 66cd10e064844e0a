"""The crash matrix sampled on PostgreSQL: every row that a database can have, under one kind of provider each."""

from __future__ import annotations

import contextlib

import msgspec
import pytest

from counterfoil.lab.matrix.cells import CELLS, ROWS
from counterfoil.lab.matrix.database import lives_of, played
from counterfoil.lab.matrix.expected import CODES
from counterfoil.lab.matrix.life import END, Moment
from counterfoil.lab.mirror import mirror

SAMPLE = [
    cell
    for number in ROWS
    for cell in (CELLS[f"{number}-{tuple(CODES)[number % len(CODES)]}"],)
    if not cell.awaits and lives_of(cell)
]


@pytest.mark.parametrize("cell", SAMPLE, ids=lambda cell: cell.name)
def test_cell_in_a_database(postgres, cell):
    """Its fault fires, and what stands, what may follow and what really happened are the row's."""
    for life in lives_of(cell):
        assert played(life, cell.kind, postgres.book()) == []


def test_a_cell_in_a_database_that_shows_nothing_fails(postgres):
    """A fact that is otherwise is said, and what stood is in the database and nowhere else."""
    cell, book = CELLS["7-LS"], postgres.book()
    life = msgspec.structs.replace(lives_of(cell)[0], moments=(Moment(END, {"sends": 2}),))
    assert [said.partition(":")[0] for said in played(life, cell.kind, book)] == ["stands"]
    with contextlib.closing(mirror(book)) as tables:
        assert tables.execute("SELECT count(*) FROM operation").fetchone() == (1,)


def test_the_sample_is_wide():
    """Nearly every row is in it, and every kind of provider; what is not has no life without a file system."""
    assert len(SAMPLE) >= 38
    assert {cell.code for cell in SAMPLE} == set(CODES)
