"""Every cell of the matrix: 45 rows by six kinds, each with its lives, or with what will build what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from counterfoil.lab.matrix import rows_crashing, rows_looking, rows_people, rows_racing, rows_sending, rows_store
from counterfoil.lab.matrix.expected import CODES
from counterfoil.lab.matrix.life import Life
from counterfoil.lab.matrix.row import Row
from counterfoil.lab.matrix.wire import once_on_the_wire

ROWS_MAX = 45
RESTORE, UPGRADE = "restore from a backup", "upgrade: a schema epoch that old workers are refused by (issue 5)"
AWAITED = (RESTORE, UPGRADE)
"""What is not built, in the words of what will build it; nothing else may be pending."""

_OTHERS = (
    Row(
        number=43, point="the client or a proxy sends again by itself", requires="one attempt, one request on the wire",
        never="a second request", real=once_on_the_wire, noticed="transport_retries",
    ),
    Row(
        number=44, point="the receipts are restored from a backup", requires="what was not settled before it is U",
        never="send what it says was never sent", awaits=RESTORE,
    ),
    Row(
        number=45, point="schema upgrade with old and new workers", requires="old code is refused",
        never="lose an unknown", awaits=UPGRADE,
    ),
)  # fmt: skip
_GROUPS = (
    rows_sending.ROWS, rows_crashing.ROWS, rows_store.ROWS, rows_racing.ROWS, rows_people.ROWS, rows_looking.ROWS,
    _OTHERS,
)  # fmt: skip
ROWS: Mapping[int, Row] = {row.number: row for row in sorted((r for g in _GROUPS for r in g), key=lambda r: r.number)}
"""Every row, by its number."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One row under one kind."""

    row: Row
    code: str

    @property
    def name(self) -> str:
        """As it is called: `7-LS`."""
        return f"{self.row.number}-{self.code}"

    @property
    def kind(self) -> str:
        """The laboratory's provider of this kind."""
        return CODES[self.code]

    @property
    def awaits(self) -> str:
        """What will build what it is about; empty where it is built."""
        return self.row.awaits

    @property
    def mutant(self) -> str:
        """The mutant that makes it fail."""
        return self.row.mutant(self.code)

    def lives(self) -> tuple[Life, ...]:
        """Each way in which its fault is played."""
        return self.row.lives(self.code) if self.row.lives else ()


CELLS: Mapping[str, Cell] = {
    cell.name: cell for row in ROWS.values() for code in CODES for cell in (Cell(row=row, code=code),)
}
"""Every cell that is defined, by name."""
NAMES = tuple(f"{number}-{code}" for number in range(1, ROWS_MAX + 1) for code in CODES)
"""Every cell that there must be."""


def missing() -> list[str]:
    """Cells that nobody has defined."""
    return [name for name in NAMES if name not in CELLS or not _defined(CELLS[name])]


def _defined(cell: Cell) -> bool:
    return bool(cell.awaits) or ((cell.row.lives or cell.row.real) is not None and bool(cell.mutant))


def folder_of(top: Path, cell: str, number: int) -> Path:
    """Where one life of a cell leaves its truth."""
    return top / f"{cell}.{number}"
