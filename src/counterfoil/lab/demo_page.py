"""The demo as it is printed: the two agents' words, the true effects, and one receipt from unknown to succeeded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from counterfoil.cli.marks import OUTCOMES, QUIET, RED, STRONG, SUCCEEDED, Legible, marked
from counterfoil.cli.story import story
from counterfoil.cli.timeline import draw
from counterfoil.domain.words import Outcome
from counterfoil.lab.accident import ACCIDENTS
from counterfoil.lab.agentloop import AMOUNT, GUARDED, NAIVE, ORDER, TRANSCRIPT
from counterfoil.lab.demo import RUNNERS, Row, folder_of
from counterfoil.lab.fitted import fitted, table_of
from counterfoil.lab.journal import read
from counterfoil.lab.run_folder import STORE

SHOWN = "T"
"""The case whose words and timeline are printed; all three are kept by --keep."""
WIDTH_MAX = 110

_WORDS = {outcome.value: outcome for outcome in Outcome}


def show(rows: Sequence[Row], top: Path, console: Console) -> None:
    """Print the whole page."""
    width = min(console.width, WIDTH_MAX)
    for part in _page(rows, top, width, console):
        console.print(Legible(part), width=width)


def _page(rows: Sequence[Row], top: Path, width: int, console: Console) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(f"One agent refunds {ORDER}. What it and its tool say in case {SHOWN}:", style=STRONG)
    yield Text("")
    yield _dialogues(top)
    yield Text("")
    yield Text("What really happened, by the provider's own record:", style=STRONG)
    yield fitted(_effects(rows), console, width)
    yield Text(f"The guarded receipt of case {SHOWN}, not to scale:", style=STRONG)
    yield Text("")
    yield Group(*_timeline(folder_of(top, SHOWN, GUARDED) / STORE, width))
    yield Text("")
    yield _close(rows)


def _dialogues(top: Path) -> Table:
    table = Table.grid(padding=(0, 4, 0, 0))
    for _ in RUNNERS:
        table.add_column()
    said = [Text("\n").join(_lines(read(folder_of(top, SHOWN, runner) / TRANSCRIPT))) for runner in RUNNERS]
    table.add_row(*(Text(runner, style=QUIET) for runner in RUNNERS))
    table.add_row(*said)
    return table


def _lines(transcript: Sequence[dict[str, Any]]) -> Iterator[Text]:
    for line in transcript:
        if line["who"] == "model":
            asked = f"refund({ORDER}, {AMOUNT})" if line["what"] == "refund" else f"{line['what']}()"
            yield Text.assemble(("model  ", QUIET), asked)
        elif line["who"] == "tool":
            yield Text.assemble(("tool  ", QUIET), _answer(line["answer"]))


def _answer(answer: dict[str, Any]) -> Text:
    outcome = answer["outcome"]
    mark = marked(OUTCOMES[_WORDS[outcome]], outcome) if outcome in _WORDS else Text(f"✗ {outcome}", style=RED)
    mark = mark if mark.plain.startswith(" ") else Text.assemble(" ", mark)  # a solid ground reaches one cell beyond
    more = [answer.get("error"), answer.get("result", {}).get("id"), answer.get("recovery_action")]
    return Text.assemble(mark, (f" {', '.join(word for word in more if word)}", QUIET))


def _effects(rows: Sequence[Row]) -> Table:
    table = table_of("case", "accident", "runner", "sent", "effects", "the agent says", right=(3, 4))
    for row in rows:
        first = row.runner == NAIVE
        effects = Text(str(row.effects), style=f"bold {SUCCEEDED if row.effects == 1 else RED}")
        outcome = _WORDS.get(row.outcome)
        table.add_row(
            Text(row.case if first else "", style=STRONG), Text(ACCIDENTS[row.case].told if first else ""),
            Text(row.runner), str(row.sent), effects,
            marked(OUTCOMES[outcome], row.outcome) if outcome else Text(row.outcome), end_section=not first,
        )  # fmt: skip
    return table


def _timeline(store: Path, width: int) -> list[Text]:
    import counterfoil

    with counterfoil.open(store) as ledger:
        (operation,) = ledger.store.operations(limit=1)
        history = ledger.history(operation.id)
        return draw(story(history, outcome=ledger.get(operation.id).outcome, now=ledger.store.now()), width)


def _close(rows: Sequence[Row]) -> Text:
    counted = {runner: sum(row.effects for row in rows if row.runner == runner) for runner in RUNNERS}
    due = len(ACCIDENTS)
    if not all(row.held for row in rows):
        return Text("Not every row came out as it must: a rule is broken.", style=f"bold {RED}")
    return Text(
        f"{due} refunds were due: {counted[NAIVE]} without receipts, {counted[GUARDED]} with them. The guarded tool "
        "sent each once, called silence unknown, blocked the repeats, and a look settled it."
    )
