"""Tables that fit the terminal: one that is too wide for it is told row by row, and no word of it is cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from counterfoil.cli.marks import QUIET

if TYPE_CHECKING:
    from rich.console import Console

READABLE_COLUMNS = 20
"""A sentence in less than this is a stack of single words."""
BLANKS, EDGES = (1, 0), 2
"""At both sides of a cell: as a table usually is, and as tight as it can be."""


def table_of(*headers: str, right: tuple[int, ...] = ()) -> Table:
    """An empty table as the laboratory prints them.

    Args:
        headers: of its columns.
        right: the places of those that hold numbers.
    """
    table = Table(*headers, box=SIMPLE_HEAD, pad_edge=False)
    for place in right:
        table.columns[place].justify = "right"
    return table


def fitted(table: Table, console: Console, width: int | None = None) -> RenderableType:
    """Return the table, a tight one where it must be, or where that has no room either a paragraph for each row.

    Args:
        table: with a header.
        console: where it will be printed.
        width: of the page; None: the console's.
    """
    for column in table.columns:
        column.overflow = "fold"
    least = sum(_least(column, console) for column in table.columns) + EDGES
    for blanks in BLANKS:
        if least + (2 * blanks + 1) * (len(table.columns) - 1) <= (width or console.width):
            table.padding = (0, blanks)
            return table
    return Group(*_paragraphs(table))


def _least(column: Column, console: Console) -> int:
    """How wide a column must be: its longest word has room, and a sentence can be read."""
    cells = [Measurement.get(console, console.options, cell) for cell in (column.header, *column.cells)]
    return max(max(cell.minimum, min(cell.maximum, READABLE_COLUMNS)) for cell in cells)


def _paragraphs(table: Table) -> Iterator[RenderableType]:
    for row in zip(*(column.cells for column in table.columns), strict=True):
        yield Text("")
        for cell, column in zip(row, table.columns, strict=True):
            named = Text(f"{column.header}  " if column.header else "", style=QUIET, overflow="fold")
            if str(cell):
                yield named.append_text(cell if isinstance(cell, Text) else Text(str(cell), style="default"))
    yield Text("")
