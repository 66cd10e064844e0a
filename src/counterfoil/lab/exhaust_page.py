"""What `exhaust` prints: per kind of provider, how many schedules there are and how many broke a law."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import QUIET, RED, STRONG, SUCCEEDED
from counterfoil.cli.terminal import counted, safe
from counterfoil.lab.fitted import fitted, table_of
from counterfoil.lab.simulate_page import short

if TYPE_CHECKING:
    from rich.console import Console


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the figures of a search."""
    table = table_of("kind", "first send", "schedules", "complete", "violations", right=(2, 3, 4))
    for row in result["rows"]:
        complete = Text("yes", style=SUCCEEDED) if row["complete"] else Text("no", style=f"bold {RED}")
        count = Text(str(row["violations"]), style=f"bold {RED}" if row["violations"] else SUCCEEDED)
        table.add_row(Text(row["kind"], style=STRONG), row["base"], f"{row['schedules']:,}", complete, count)
    console.print(fitted(table, console))
    scope = result["scope"]
    said = ", ".join(counted(scope[name], name) for name in ("faults", "switches", "callers", "workers"))
    console.print(
        Text(f"{said}; {sum(result['schedules'].values()):,} schedules in {result['seconds']} s", style=QUIET)
    )
    for row in result["rows"]:
        _broken(row, console)
    console.print(_verdict(result))


def _broken(row: Mapping[str, Any], console: Console) -> None:
    for again, said in groupby(row["broken"], key=lambda each: each["again"]):
        for each in said:
            console.print(Text(f"{row['kind']}, {row['base']}: {short(each['said'])}", style=RED))
        console.print(Text(f"  event by event: {safe(again)}", style=QUIET), soft_wrap=True)
    more = row["violations"] - len(row["broken"])
    if more:
        console.print(Text(f"{row['kind']}, {row['base']}: and {more:,} more", style=RED))


def _verdict(result: Mapping[str, Any]) -> Text:
    if result["violations"]:
        return Text(f"Broken: {counted(result['violations'], 'violations')}.", style=f"bold {RED}")
    if result["sabotage"]:
        return Text(f"No law was broken: {result['sabotage']} was off, and nothing noticed.", style=f"bold {RED}")
    if not result["ok"]:
        return Text("No law was broken, and not everything was tried.", style=f"bold {RED}")
    tried = "Every schedule within that scope was" if result["complete"] else "As many schedules as were asked for were"
    rest = "" if result["complete"] else " (not all)"
    return Text(f"{tried} tried{rest}, and every law held in each.")
