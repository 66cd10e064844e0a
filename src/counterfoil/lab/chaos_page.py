"""The figures of the chaos as they are printed: what befell the workers, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import RED, SUCCEEDED
from counterfoil.lab.chaos import MUST_BE_NOUGHT
from counterfoil.lab.fitted import fitted, table_of

if TYPE_CHECKING:
    from rich.console import Console

BEFELL = ("kills_by_aim", "kills_by_window", "troubles")
COUNTED = ("operations", "effects", "sends", "unknown_seen", "safe_to_retry", "manual_review")


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print all of it."""
    for group in BEFELL:
        table = table_of(_named(group), "", right=(1,))
        for name, count in result[group].items():
            table.add_row(_named(name), str(count))
        console.print(fitted(table, console))
    table = table_of("it came to", "", right=(1,))
    for name in (*COUNTED, *(name for name in MUST_BE_NOUGHT if name in result)):
        table.add_row(_named(name), _figure(name, result[name]))
    console.print(fitted(table, console))
    console.print(f"{result['kills']} kills in {result['seconds']:.0f} s; {_suffered(result)}.")
    if result["ok"]:
        console.print(
            "No effect twice, none without a receipt, no false outcome, and nothing unresolved without owner."
        )
    for said in result["why"]:
        console.print(Text(said, style=f"bold {RED}"))


def _suffered(result: Mapping[str, Any]) -> str:
    """What befell the store itself."""
    if "ambiguous" not in result:
        return f"the disk was full by {result['disk_full']}"
    stood = result["ambiguous"]["durable"]
    cuts = f"{result['commit_cuts']} commits lost their answer, of which {stood} stood"
    pooler = ", its pooler killed before each" if result["pooler"] else ""
    return f"the database was restarted {result['restarts']} times{pooler}, and {cuts}"


def _figure(name: str, value: int) -> Text:
    if name in MUST_BE_NOUGHT:
        return Text(str(value), style=f"bold {RED}" if value else SUCCEEDED)
    return Text(str(value))


def _named(name: str) -> str:
    return name.replace("_", " ")
