"""What `exhaust` prints: per kind of provider, how many schedules there are and how many broke a law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from counterfoil.cli.marks import QUIET, RED, STRONG, SUCCEEDED
from counterfoil.cli.terminal import safe

if TYPE_CHECKING:
    from rich.console import Console


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the figures of a search."""
    table = Table("", "first send", "schedules", "complete", "violations", box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for row in result["rows"]:
        complete = Text("yes", style=SUCCEEDED) if row["complete"] else Text("no", style=f"bold {RED}")
        count = Text(str(row["violations"]), style=f"bold {RED}" if row["violations"] else SUCCEEDED)
        table.add_row(Text(row["kind"], style=STRONG), row["base"], f"{row['schedules']:,}", complete, count)
    console.print(table)
    scope = result["scope"]
    said = (
        f"{scope['faults']} faults, {scope['switches']} switches, {scope['callers']} callers, {scope['workers']} worker"
    )
    console.print(
        Text(f"{said}; {sum(result['schedules'].values()):,} schedules in {result['seconds']} s", style=QUIET)
    )
    for row in result["rows"]:
        for each in row["broken"]:
            console.print(Text(f"{row['kind']}, {row['base']}, path {each['path']}: {safe(each['said'])}", style=RED))
    if not result["ok"]:
        console.print(Text("A law is broken, or not everything was tried.", style=f"bold {RED}"))
    elif result["complete"]:
        console.print("Every schedule within that scope was tried, and every law held in each.")
    else:
        console.print("As many schedules as were asked for were tried, not all; every law held in each.")
