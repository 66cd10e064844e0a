"""What `images` prints: how much of what was examined, what the weakened modes show, and everything that was wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import RED, STRONG, SUCCEEDED
from counterfoil.cli.terminal import counted
from counterfoil.lab.fitted import fitted, table_of
from counterfoil.lab.images.share import PRODUCT, ROLLBACK, WEAK

if TYPE_CHECKING:
    from rich.console import Console

SAID: Mapping[str, str] = {
    PRODUCT: "a log, synced with every commit: the product",
    "wal_normal": "a log, synced now and then",
    "wal_off": "a log, never synced",
    ROLLBACK: "no log (no shared memory)",
    "full": "disk full, from then on",
    "io_error": "one operation fails",
    "busy": "locked, from then on",
}


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the figures, and the first violations in words."""
    table = table_of("crash images", "images", "violating", "", right=(1, 2))
    for mode in (PRODUCT, *WEAK):
        figures = result["modes"][mode]
        must = figures["violations"] == 0 if mode == PRODUCT else figures["violations"] > 0
        count = Text(str(figures["violations"]), style=SUCCEEDED if must else f"bold {RED}")
        table.add_row(Text(SAID[mode], style=STRONG), str(figures["images"]), count, _kinds(figures["found"]))
    refused = result["modes"][ROLLBACK]["refused"]
    table.add_row(Text(SAID[ROLLBACK], style=STRONG), "", "", "refused" if refused else Text("opened", style=RED))
    console.print(fitted(table, console))
    runs = table_of("faults", "runs", right=(1,))
    for kind, count in result["faults"].items():
        runs.add_row(Text(SAID[kind], style=STRONG), str(count))
    console.print(fitted(runs, console))
    where = f"{counted(result['boundaries'], 'boundaries')} of {counted(len(result['scenarios']), 'scripts')}"
    console.print(f"{where}, seed {result['seed']}")
    for each in result["first"]:
        console.print(Text(f"{each['mode']}, {each['script']}: {each['kind']}", style=f"bold {RED}"))
        console.print(f"  {each['detail']}", markup=False)
    if result["ok"]:
        failed = " and whatever failed" if any(result["faults"].values()) else "; nothing was made to fail"
        console.print(f"Whatever was promised was there, whole, wherever the power went{failed}.")
    else:
        console.print(Text(f"violations: {result['violations']} {_kinds(result['found'])}", style=f"bold {RED}"))


def _kinds(found: Mapping[str, int]) -> str:
    return ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in found.items())
