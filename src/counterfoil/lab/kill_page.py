"""The kill loop's figures as they are printed: one line per contract, and where the kills fell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import RED, SUCCEEDED
from counterfoil.lab.fitted import fitted, table_of
from counterfoil.lab.kill_loop import MUST_BE_NOUGHT
from counterfoil.lab.kill_window import Window

if TYPE_CHECKING:
    from rich.console import Console

COUNTED = ("operations", "effects", "unknown_seen", "safe_to_retry", "manual_review")


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the figures of every contract, one beside the other."""
    contracts = {name.removeprefix("lab."): figures for name, figures in result["contracts"].items()}
    right = tuple(range(1, len(contracts) + 1))
    table = table_of("under lab.", *contracts, right=right)
    for name in (*COUNTED, *MUST_BE_NOUGHT):
        table.add_row(_named(name), *(_figure(name, figures[name]) for figures in contracts.values()))
    windows = table_of("kills", *contracts, right=right)
    for window in Window:
        windows.add_row(_named(window.value), *(str(f["kills_by_window"][window]) for f in contracts.values()))
    windows.add_row("together", *(str(figures["kills"]) for figures in contracts.values()))
    console.print(fitted(table, console))
    console.print(fitted(windows, console))
    if result["ok"]:
        console.print("No effect twice, none without a receipt, and no receipt that says what did not happen.")
    for said in result["why"]:
        console.print(Text(said, style=f"bold {RED}"))


def _named(name: str) -> str:
    return name.replace("_", " ")


def _figure(name: str, value: int) -> Text:
    if name in MUST_BE_NOUGHT:
        return Text(str(value), style=SUCCEEDED if value == 0 else f"bold {RED}")
    return Text(str(value))
