"""What `mutants` prints: each rule that was turned off, and what noticed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import QUIET, RED, STRONG, SUCCEEDED
from counterfoil.cli.terminal import safe
from counterfoil.lab.fitted import fitted, table_of

if TYPE_CHECKING:
    from rich.console import Console


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print what came of each mutant."""
    table = table_of("", "mutant", "noticed by", "in", "after", "seconds", right=(0, 4, 5))
    for row in result["rows"]:
        law = Text(row["law"], style=SUCCEEDED) if row["law"] else Text("nothing", style=f"bold {RED}")
        after = f"{row['operations']:,} operations" if row["subject"] == "simulate" else ""
        table.add_row(
            str(row["number"]), Text(row["slug"], style=STRONG), law, row["subject"], after, f"{row['seconds']:g}"
        )
    console.print(fitted(table, console))
    for pending in result["pending"]:
        console.print(Text(f"{pending['number']:>2} {pending['slug']}: awaits {pending['awaits']}", style=QUIET))
    if result["left"]:
        console.print(Text(f"left for the full tier: {', '.join(result['left'])}", style=QUIET))
    for said in result["broken_without"]:
        console.print(Text(f"broken with every rule in force: {safe(said)}", style=RED))
    count = f"{result['killed']} of the list's {result['mutants']} noticed, {len(result['pending'])} pending"
    beyond = f"{len(result['beyond'])} beyond the list noticed, {len(result['survivors'])} survived"
    console.print(Text(f"{count}; {beyond}; {result['seconds']} s", style=STRONG))
    if result["ok"]:
        console.print("Whatever was turned off was noticed by a law, and with it on every law held.")
    else:
        console.print(Text("Not every mutant was noticed as it must be.", style=f"bold {RED}"))


def show_list(mutants: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the catalogue."""
    table = table_of("", "mutant", "what is done wrong", "noticed by", "in", right=(0,))
    table.columns[1].min_width = max(len(m["slug"]) for m in mutants)  # never broken: it is what --only takes
    for m in mutants:
        where = Text(f"awaits {m['awaits']}", style=QUIET) if m["awaits"] else m["subject"]
        table.add_row(str(m["number"]), Text(m["slug"], style=STRONG), m["rule"], ", ".join(m["laws"]), where)
    console.print(fitted(table, console))
