"""What `approvals` prints: each kind of case on one line, what came out otherwise in full, and the four figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import QUIET, RED, STRONG, SUCCEEDED
from counterfoil.lab.fitted import fitted, table_of

if TYPE_CHECKING:
    from rich.console import Console

ZERO = ("bytes_sent_without_authority", "approvals_used_twice")
"""Figures that must be nought."""
AUTHORISED = (
    "authorised: claims that people's approvals allowed. Fewer may be sent, where somebody died in between; never more."
)
COUNTED = ("cases", "mutations_refused")


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the kinds of case with what the provider counted, and each row that did not hold."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for row in result["rows"]:
        kinds.setdefault(_kind(row["case"]), []).append(row)
    table = table_of("", "cases", "sent", "effects", "authorised", "as expected", right=(1, 2, 3, 4, 5))
    for kind, rows in kinds.items():
        sums = [str(sum(row[name] for row in rows)) for name in ("sent", "effects", "authorised")]
        table.add_row(Text(kind, style=STRONG), str(len(rows)), *sums, _share(rows))
    console.print(fitted(table, console))
    console.print(Text(AUTHORISED, style=QUIET))
    for row in (row for row in result["rows"] if not row["held"]):
        console.print(Text(row["case"], style=f"bold {RED}"))
        console.print(f"  expected  {row['expected']}", markup=False)
        counted = f"{row['sent']} sent, {row['permission']}, {row['outcome']}; {row['authorised']} authorised"
        console.print(f"  counted   {counted}", markup=False)
    for name in (*COUNTED, *ZERO):
        console.print(f"{name.replace('_', ' ')}: ", _figure(name, result[name]), sep="")
    if result["ok"]:
        console.print("Nothing went without its authority, and no approval was used twice.")
    else:
        console.print(Text("Not every case came out as it must.", style=f"bold {RED}"))


def _kind(case: str) -> str:
    """What stands before the colon."""
    return case.partition(": ")[0]


def _share(rows: list[Mapping[str, Any]]) -> Text:
    held = sum(row["held"] for row in rows)
    return Text(str(held), style=SUCCEEDED if held == len(rows) else f"bold {RED}")


def _figure(name: str, value: int) -> Text:
    if name in ZERO:
        return Text(str(value), style=SUCCEEDED if value == 0 else f"bold {RED}")
    return Text(str(value))
