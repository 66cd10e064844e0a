"""The figures of the chaos as they are printed: what befell the workers, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from counterfoil.cli.marks import RED, SUCCEEDED
from counterfoil.lab.chaos import MUST_BE_NOUGHT

if TYPE_CHECKING:
    from rich.console import Console

BEFELL = ("kills_by_aim", "kills_by_window", "troubles")
COUNTED = ("operations", "effects", "sends", "unknown_seen", "safe_to_retry", "manual_review")


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print all of it."""
    for group in BEFELL:
        table = Table(*(_named(name) for name in result[group]), box=SIMPLE_HEAD, pad_edge=False, title=_named(group))
        table.title_justify = "left"
        table.add_row(*map(str, result[group].values()))
        console.print(table)
    counts = Table(*map(_named, COUNTED), box=SIMPLE_HEAD, pad_edge=False)
    counts.add_row(*(str(result[name]) for name in COUNTED))
    nought = [name for name in MUST_BE_NOUGHT if name in result]
    noughts = Table(*map(_named, nought), box=SIMPLE_HEAD, pad_edge=False)
    noughts.add_row(*(Text(str(result[n]), style=f"bold {RED if result[n] else SUCCEEDED}") for n in nought))
    console.print(counts)
    console.print(noughts)
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
    return f"the database was restarted {result['restarts']} times, and {cuts}"


def _named(name: str) -> str:
    return name.replace("_", " ")
