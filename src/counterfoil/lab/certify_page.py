"""A certificate as it is printed: a line per accident, and what stands against the worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from counterfoil.cli.marks import OUTCOMES, QUIET, RED, STRONG, SUCCEEDED, Legible, marked
from counterfoil.cli.terminal import clipped, safe
from counterfoil.domain.words import Outcome
from counterfoil.lab.accident import ACCIDENTS
from counterfoil.lab.certify import Row, Trial
from counterfoil.lab.fitted import fitted

if TYPE_CHECKING:
    from rich.console import Console

LAST_WORDS_COLUMNS = 160
_WORDS = {outcome.value: outcome for outcome in Outcome}


def show(trials: Sequence[Trial], why: Sequence[str], console: Console, *, kept: bool = False) -> None:
    """Print what the worker made of every accident, by the provider's own record."""
    first = trials[0].row
    console.print(Text.assemble((safe(first.subject), STRONG), f" ({first.runner}), by the provider's own record:"))
    table = Table("case", "accident", "sent", "effects", "the worker ends with", box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[2:4]:
        column.justify = "right"
    for trial in trials:
        row, held = trial.row, not trial.against
        effects = Text(str(row.effects), style=f"bold {SUCCEEDED if held else RED}")
        told = f"{ACCIDENTS[row.case].told}{_waited(row)}"
        table.add_row(Text(row.case, style=STRONG), Text(told), str(row.sent), effects, _outcome(row))
    console.print(Legible(fitted(table, console)))
    for line in why:
        console.print(Text(line, style=f"bold {RED}"))
    for trial in trials:
        if trial.against and trial.last_words:
            console.print(Text(f"{trial.row.case}, its last words: {clipped(trial.last_words, LAST_WORDS_COLUMNS)}"))
    if why and not kept:
        console.print(Text("--keep DIR leaves all that it said, and what the provider wrote down.", style=QUIET))
    if not why:
        console.print("One effect for one key, whatever became of the reply or of the worker.")


def _waited(row: Row) -> str:
    return f" ({row.waited_seconds:.1f} s)" if row.waited_seconds > 1 else ""


def _outcome(row: Row) -> Text:
    outcome = _WORDS.get(row.outcome)
    return marked(OUTCOMES[outcome], row.outcome) if outcome else Text(row.outcome)
