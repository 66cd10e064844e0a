"""The kill loop's figures as they are printed: one line per contract, and where the kills fell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from counterfoil.cli.marks import RED, STRONG, SUCCEEDED
from counterfoil.lab.kill_loop import MUST_BE_NOUGHT
from counterfoil.lab.kill_window import Window

if TYPE_CHECKING:
    from rich.console import Console

COUNTED = ("operations", "effects", "unknown_seen", "safe_to_retry", "manual_review")


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the figures of every contract."""
    names = [*COUNTED, *MUST_BE_NOUGHT]
    table = Table("", *(name.replace("_", " ") for name in names), box=SIMPLE_HEAD, pad_edge=False)
    windows = Table("", "kills", *(w.value.replace("_", " ") for w in Window), box=SIMPLE_HEAD, pad_edge=False)
    for column in (*table.columns[1:], *windows.columns[1:]):
        column.justify = "right"
    for contract, figures in result["contracts"].items():
        table.add_row(Text(contract, style=STRONG), *(_figure(name, figures[name]) for name in names))
        by_window = figures["kills_by_window"]
        windows.add_row(Text(contract, style=STRONG), str(figures["kills"]), *(str(by_window[w]) for w in Window))
    console.print(table)
    console.print(windows)
    if result["ok"]:
        console.print("No effect twice, none without a receipt, and no receipt that says what did not happen.")
    for said in result["why"]:
        console.print(Text(said, style=f"bold {RED}"))


def _figure(name: str, value: int) -> Text:
    if name in MUST_BE_NOUGHT:
        return Text(str(value), style=SUCCEEDED if value == 0 else f"bold {RED}")
    return Text(str(value))
