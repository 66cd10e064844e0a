"""What `simulate` prints: the worlds and their figures, what they met, and every law that was broken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from counterfoil.cli.marks import QUIET, RED, STRONG, SUCCEEDED
from counterfoil.cli.named import SHORT_CHARS
from counterfoil.cli.terminal import safe
from counterfoil.lab.fitted import fitted, table_of
from counterfoil.lab.world.score import BROKEN, law_of

if TYPE_CHECKING:
    from rich.console import Console

MET_SHOWN = 3
CAVEAT = "That holds for the faults that are simulated, and for them only."


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print the figures of a simulation."""
    table = table_of("worlds", "operations", "sends", "effects", "situations", "violations", right=tuple(range(6)))
    met = result["situations"]
    count = Text(str(result["violations"]), style=f"bold {RED}" if result["violations"] else SUCCEEDED)
    figures = (f"{result[name]:,}" for name in ("worlds", "operations", "sends", "effects"))
    table.add_row(*figures, f"{met['hit']} of {met['total']}", count)
    console.print(fitted(table, console))
    console.print(Text(f"seed {result['seed']}, trace {result['trace'][:16]}, {result['seconds']} s", style=QUIET))
    _situations(met, console)
    _broken(result, console)
    if result["violations"]:
        console.print(Text(f"Broken: {_laws(result['laws'])}.", style=f"bold {RED}"))
    elif result["sabotage"]:
        console.print(Text(f"{result['sabotage']} was off, and nothing noticed.", style=f"bold {RED}"))
    else:
        console.print(f"Every law held in every world. {CAVEAT}")


def _situations(met: Mapping[str, Any], console: Console) -> None:
    rarest = ", ".join(f"{name} ({count})" for name, count in list(met["rarest"].items())[:MET_SHOWN])
    console.print(Text(f"rarest: {rarest}", style=QUIET))
    if met["missing"]:
        first, more = met["missing"][:MET_SHOWN], len(met["missing"]) - MET_SHOWN
        others = f", and {more} more (--json)" if more > 0 else ""
        console.print(Text(f"never met: {', '.join(first)}{others}", style=QUIET))


def _broken(result: Mapping[str, Any], console: Console) -> None:
    """What was broken, as far as it is shown, and how to see it happen."""
    for said in result["broken"]:
        console.print(Text(short(said), style=RED))
    more = result["violations"] - len(result["broken"])
    if more:
        console.print(Text(f"and {more:,} more", style=RED))
    if result["again"]:
        console.print(Text(f"event by event: {safe(result['again'])}", style=STRONG), soft_wrap=True)
    if result["smallest"]:
        console.print(Text("The smallest world found that breaks the same law:", style=STRONG))
        for said in result["smallest"]["violations"]:
            console.print(Text(f"  {short(said)}", style=RED))
        console.print(Text(f"event by event: {safe(result['smallest']['again'])}", style=STRONG), soft_wrap=True)


def _laws(laws: Mapping[str, int]) -> str:
    return ", ".join(f"{law} {count} {'time' if count == 1 else 'times'}" for law, count in laws.items())


_NAMED = re.compile(r"\bop_[0-9a-f]{32}\b")


def short(said: str) -> str:
    """Name an operation as a story does: by the beginning of its id, which no other of its world has."""
    return _NAMED.sub(lambda name: name[0][:SHORT_CHARS], safe(said))


def tell(story: Iterable[Mapping[str, Any]], console: Console) -> int:
    """Print the story of one world as it is told, and return how many times a law was broken in it."""
    broken = 0
    for line in story:
        if "options" in line:
            _options(line["options"], console)
        elif "violations" in line:
            broken = len(line["violations"])
            laws = Counter(map(law_of, line["violations"]))
            plural = "operation" if line["operations"] == 1 else "operations"
            held = f"broken: {_laws(laws)}" if laws else "every law held"
            console.print(Text(f"{line['operations']} {plural}; {held}", style=f"bold {RED}" if laws else ""))
        else:
            style = RED if line["said"].startswith(BROKEN) else ""
            console.print(Text(f"{line['at']:14.4f}  {short(line['said'])}", style=style))
    return broken


LEGEND = (
    "seconds in the world, then who does what: `before` and `after` an effect of a plan (a process may die at either), "
    "`commit` for what the store answered, `told` for what a caller was told, `✗` for a law that is "
    "broken there; op_... is the operation it is about."
)


def _options(options: Mapping[str, Any], console: Console) -> None:
    """What the world was drawn with, a line for each, and how to read what follows."""
    table = table_of("the world has", "")
    for name, value in options.items():
        table.add_row(name.replace("_", " "), _plain(value))
    console.print(fitted(table, console))
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
