"""The certificate of real servers as it is printed: a line per case, and what stands against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from counterfoil.cli.marks import RED, STRONG, SUCCEEDED, Legible
from counterfoil.cli.terminal import clipped
from counterfoil.lab.real.run import Trial

if TYPE_CHECKING:
    from rich.console import Console

LAST_WORDS_COLUMNS = 160


def show(trials: Sequence[Trial], result: Mapping[str, Any], console: Console) -> None:
    """Print what each server really holds, and what the receipt says of it."""
    table = Table("server", "the answer is", "sent", "effects", "outcome", "lifecycle", box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[2:4]:
        column.justify = "right"
    for trial in trials:
        row = trial.row
        effects = Text(str(row.effects), style=f"bold {RED if trial.against else SUCCEEDED}")
        table.add_row(Text(row.server, style=STRONG), row.case, str(row.sent), effects, row.outcome, row.lifecycle)
    console.print(Legible(table))
    for line in result["why"]:
        console.print(Text(line, style=f"bold {RED}"))
    for trial in trials:
        if trial.against and trial.last_words:
            said = clipped(trial.last_words, LAST_WORDS_COLUMNS)
            console.print(Text(f"{trial.row.server}, {trial.row.case}, its last words: {said}"))
    console.print(f"{result['automatic_second_sends']} automatic second sends")
