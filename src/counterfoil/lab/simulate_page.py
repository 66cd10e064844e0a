"""What `simulate` prints: the worlds and their figures, what they met, and every law that was broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from counterfoil.cli.marks import QUIET, RED, STRONG, SUCCEEDED
from counterfoil.cli.terminal import safe

if TYPE_CHECKING:
    from rich.console import Console

CAVEAT = "That holds for the faults that are simulated, and for them only."


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the figures of a simulation."""
    table = Table(
        "worlds", "operations", "sends", "effects", "situations", "violations", box=SIMPLE_HEAD, pad_edge=False
    )
    for column in table.columns:
        column.justify = "right"
    met = result["situations"]
    count = Text(str(result["violations"]), style=f"bold {RED}" if result["violations"] else SUCCEEDED)
    figures = (f"{result[name]:,}" for name in ("worlds", "operations", "sends", "effects"))
    table.add_row(*figures, f"{met['hit']} of {met['total']}", count)
    console.print(table)
    rarest = ", ".join(f"{name} ({count})" for name, count in list(met["rarest"].items())[:3])
    console.print(Text(f"seed {result['seed']}, trace {result['trace'][:16]}, {result['seconds']} s", style=QUIET))
    console.print(Text(f"rarest: {rarest}", style=QUIET))
    for name in met["missing"]:
        console.print(Text(f"never met: {name}", style=QUIET))
    for said in result["broken"]:
        console.print(Text(safe(said), style=RED))
    if result["smallest"]:
        _smallest(result["smallest"], console)
    if result["ok"]:
        console.print(f"Every law held in every world. {CAVEAT}")
    else:
        console.print(Text("A law is broken.", style=f"bold {RED}"))


def _smallest(smallest: Mapping[str, Any], console: Console) -> None:
    console.print(Text("The smallest world found that breaks the same law:", style=STRONG))
    console.print(f"  {smallest['options']}", markup=False)
    for said in smallest["violations"]:
        console.print(Text(f"  {safe(said)}", style=RED))


def tell(story: Iterable[Mapping[str, Any]], console: Console) -> int:
    """Print the story of one world as it is told, and return how many laws it broke."""
    broken = 0
    for line in story:
        if "options" in line:
            _options(line["options"], console)
        elif "violations" in line:
            broken = len(line["violations"])
            for said in line["violations"]:
                console.print(Text(safe(said), style=f"bold {RED}"))
            console.print(f"{line['operations']} operations, {broken} laws broken", markup=False)
        else:
            console.print(f"{line['at']:14.4f}  {safe(line['said'])}", markup=False)
    return broken


LEGEND = (
    "seconds in the world, then who does what: `before` and `after` an effect of a plan (a process may die at either), "
    "`commit` for what the store answered, `told` for what a caller was told; op_... is the operation it is about."
)


def _options(options: Mapping[str, Any], console: Console) -> None:
    """What the world was drawn with, a line for each, and how to read what follows."""
    table = Table("the world has", "", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[1].overflow = "fold"
    for name, value in options.items():
        table.add_row(name.replace("_", " "), _plain(value))
    console.print(table)
    console.print(Text(LEGEND, style=QUIET))
    console.print()


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_plain(share)}" for name, share in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value) or "none"
