"""What `contracts --check` prints: a line for each contract, and in full whatever is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import QUIET, RED, STRONG, SUCCEEDED
from counterfoil.cli.terminal import safe
from counterfoil.lab.fitted import fitted, table_of

if TYPE_CHECKING:
    from rich.console import Console

_RIGHT = (2, 3, 4, 5)


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print what came of each contract."""
    table = table_of("contract", "protected by", "cases", "weakened", "caught", "seconds", "", right=_RIGHT)
    for row in result["rows"]:
        verdict = Text("safe", style=SUCCEEDED) if row["passed"] else Text("not safe", style=f"bold {RED}")
        table.add_row(
            Text(row["contract"], style=STRONG), row["mechanism"].replace("_", " "), f"{row['cases']:,}",
            str(row["weakened"]), str(len(row["caught"])), f"{row['seconds']:.2f}", verdict,
        )  # fmt: skip
    console.print(fitted(table, console))
    for line in _wrong(result):
        console.print(Text(safe(line), style=RED))
    count = f"{result['passed']} of {result['contracts']} safe in {result['cases']:,} cases"
    caught = f"{result['weakened_caught']} of {result['weakened']} weakened clauses noticed"
    console.print(Text(f"{count}; {caught}, {result['equivalent']} could not matter", style=STRONG))
    if result["ok"]:
        console.print("No answer was unsafe, and whatever a contract claims beyond the facts was noticed.")
    else:
        console.print(
            Text("Not every contract is safe under every provider that its facts allow.", style=f"bold {RED}")
        )
    console.print(Text("what was turned into what, and by which rule some could not matter: --json", style=QUIET))


def _wrong(result: Mapping[str, Any]) -> Iterator[str]:
    for row in result["rows"]:
        for kind, said in (("", row["unsafe"]), ("", row["misfits"]), ("not noticed: ", row["survivors"])):
            yield from (f"{row['contract']}: {kind}{one}" for one in said)
