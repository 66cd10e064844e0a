"""What `matrix` prints: 45 rows by six kinds, a mark for each cell, and whatever is not as it must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import AMBER, QUIET, RED, STRONG, SUCCEEDED
from counterfoil.cli.terminal import counted, safe
from counterfoil.lab.fitted import fitted, table_of
from counterfoil.lab.matrix.cells import ROWS
from counterfoil.lab.matrix.expected import CODES

if TYPE_CHECKING:
    from rich.console import Console

_PASSED, _FAILED, _PENDING, _MISSING = (
    Text("✓", style=SUCCEEDED), Text("✗", style=f"bold {RED}"), Text("⋯", style=AMBER), Text("?", style=f"bold {RED}"),
)  # fmt: skip
_ELSEWHERE = Text("·", style=QUIET)
"""Not asked for."""
SAID_MAX = 8
"""Sentences shown of one cell."""


def show(result: Mapping[str, Any], names: Iterable[str], console: Console) -> None:
    """Print the cells that were played.

    Args:
        result: as the command returns it.
        names: the cells that were asked for.
        console: where.
    """
    marks = dict.fromkeys(names, _PASSED)
    marks |= {row["cell"]: _FAILED for row in result["failed"]}
    marks |= {row["cell"]: _PENDING for row in result["pending"]} | dict.fromkeys(result["missing"], _MISSING)
    table = table_of("", "fault point", *CODES, right=(0,))
    for row in ROWS.values():
        cells = [marks.get(f"{row.number}-{code}", _ELSEWHERE) for code in CODES]
        if any(cell is not _ELSEWHERE for cell in cells):
            table.add_row(str(row.number), row.point, *cells)
    console.print(fitted(table, console))
    _sweeps(result, console)
    for row in result["failed"]:
        for said in row["said"][:SAID_MAX]:
            console.print(Text(f"{row['cell']}: {safe(said)}", style=RED))
    for each in result["unnoticed"]:
        console.print(Text(f"{each['cell']}: {each['mutant']} was not noticed", style=RED))
    for awaits, count in _awaited(result["pending"]).items():
        said = f"⋯ {counted(count, 'cells')} {'awaits' if count == 1 else 'await'}: {safe(awaits)}"
        console.print(Text(said, style=QUIET))
    figures = f"{result['passed']} of {counted(result['cells'], 'cells')} passed, {len(result['pending'])} pending"
    lives = f"{counted(result['lives'], 'lives')}; {result['seconds']} s"
    console.print(Text(f"{figures}, {len(result['failed'])} failed; {lives}", style=STRONG))
    console.print(*_word(result))


def _sweeps(result: Mapping[str, Any], console: Console) -> None:
    if result["sweeps"]:
        total = sum(result["sweeps"].values())
        each = ", ".join(f"{name} {count}" for name, count in result["sweeps"].items())
        console.print(Text(f"died at {total:,} places of every plan: {each}", style=QUIET))
    for row in result["sweeps_broken"]:
        for said in row["said"][:SAID_MAX]:
            console.print(Text(f"{row['sweep']}, {row['code']}, {row['times']}: {safe(said)}", style=RED))


def _awaited(pending: Iterable[Mapping[str, str]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in pending:
        counts[each["awaits"]] = counts.get(each["awaits"], 0) + 1
    return counts


def _word(result: Mapping[str, Any]) -> tuple[str | Text, ...]:
    if not result["ok"]:
        return (Text("Not everything is as the table says.", style=f"bold {RED}"),)
    if result["mutants_checked"]:
        return (f"Each is as the table says, and {result['mutants_checked']} fail without the rule they are about.",)
    return ("Each fault fired, and what followed is as the table says.",)


def show_list(rows: Iterable[Mapping[str, Any]], console: Console) -> None:
    """Print the table itself."""
    table = table_of(
        "", "fault point", "what must be durable, and what may follow", "never", "noticed without", right=(0,)
    )
    for row in rows:
        last = Text(f"awaits {row['awaits']}", style=AMBER) if row["awaits"] else ", ".join(row["mutants"])
        table.add_row(str(row["row"]), Text(row["point"], style=STRONG), row["requires"], row["never"], last)
    console.print(fitted(table, console))
