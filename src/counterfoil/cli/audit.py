"""`counterfoil audit sample`: receipts drawn at random, and whether each says by itself how it came to what it is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from counterfoil.runtime.sampling import Judged, Sample

SIZE, SIZE_MAX = 20, 100_000
SEED_MAX = 2**32 - 1
KEY_COLUMNS, SETTLED_COLUMNS = 40, 24
TABLE_COLUMNS = 100
"""From here on a table; below, each operation is a card."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    acts = verb.add_subparsers(metavar="WHAT", required=True, title="what")
    line = "draw resolved operations at random, and say of each whether its receipt alone explains it"
    act = parser.act(acts, "sample", line, run)
    act.add_argument(
        "--n", metavar="N", type=parser.count(1, SIZE_MAX), default=SIZE, help=f"how many (default {SIZE})"
    )
    act.add_argument(
        "--seed", metavar="N", type=parser.count(0, SEED_MAX), help="draw the same sample again (default: a new one)"
    )
    parser.store_option(act)
    parser.actions_option(act)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 only where nothing is wrong with any of them."""
    import secrets

    from counterfoil.cli.opening import for_reading
    from counterfoil.runtime.sampling import sample

    seed = secrets.randbelow(SEED_MAX + 1) if asked.seed is None else asked.seed
    with for_reading(asked) as ledger:
        found = sample(ledger, most=asked.n, seed=seed)
    if asked.json:
        from counterfoil.cli.terminal import print_json

        print_json(as_json(found))
    else:
        from counterfoil.cli.marks import Legible
        from counterfoil.cli.terminal import console

        out = console()
        out.print(Legible(page(found, out.width)))
    return exits.DONE if not any(one.because for one in found.drawn) else exits.UNSETTLED


def as_json(found: Sample) -> dict[str, Any]:
    """The whole answer."""
    return {
        "seed": found.seed,
        "resolved": found.resolved,
        "sampled": len(found.drawn),
        "operations": [{**msgspec.to_builtins(one), "reconstructed": one.reconstructed} for one in found.drawn],
        "ok": not any(one.because for one in found.drawn),
    }


# -- the page ----------------------------------------------------------------------------------------------------------


def page(found: Sample, width: int) -> RenderableType:
    """What was drawn, and what could not be reconstructed."""
    from rich.console import Group
    from rich.text import Text

    from counterfoil.cli.marks import QUIET, STRONG

    if not found.resolved:
        return Text("nothing is resolved yet, so there is nothing to draw from", style=QUIET)
    broken = sum(bool(one.because) for one in found.drawn)
    tombstones = sum(one.tombstone and not one.because for one in found.drawn)
    head = Text.assemble(
        (f"{len(found.drawn)} of {found.resolved} resolved", STRONG),
        (f"   --seed {found.seed} draws them again", QUIET),
    )
    body = _table(found) if width >= TABLE_COLUMNS else _cards(found)
    return Group(head, Text(""), body, Text(""), _verdict(broken, tombstones, len(found.drawn)))


def _verdict(broken: int, tombstones: int, drawn: int) -> Text:
    from counterfoil.cli import marks

    if not broken and tombstones:
        are = "is a tombstone" if tombstones == 1 else "are tombstones"
        said = f"{tombstones} {are}: removed by retention, and what it came to verifies"
        said += "; each other can be reconstructed" if tombstones < drawn else ""
        return marks.marked(marks.INTACT, said)
    if not broken:
        return marks.marked(marks.INTACT, "each can be reconstructed from its receipt alone")
    return marks.marked(marks.BROKEN, f"{broken} cannot be reconstructed")


def _table(found: Sample) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from counterfoil.cli.marks import QUIET, RED
    from counterfoil.cli.terminal import safe

    table = Table(box=box.SIMPLE_HEAD, header_style=QUIET, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    for name in ("operation", "action and key", "outcome", "events", "body", "reconstructed"):
        table.add_column(name, justify="right" if name == "events" else "left", overflow="fold")
    for one in found.drawn:
        table.add_row(*_cells(one), Group(_verdict_on(one), *(Text(safe(said), style=RED) for said in one.because)))
    return table


def _cells(one: Judged) -> tuple[Text, Text, Text, Text, Text]:
    from rich.text import Text

    from counterfoil.cli.marks import QUIET, STRONG, word
    from counterfoil.cli.named import SHORT_CHARS
    from counterfoil.cli.terminal import clipped
    from counterfoil.domain.words import Outcome

    outcome = word(Outcome(one.outcome)) if one.outcome else Text("unreadable", style=QUIET)
    return (
        Text(one.operation_id[:SHORT_CHARS]),
        Text.assemble((clipped(one.action, KEY_COLUMNS), STRONG), "  ", clipped(one.key, KEY_COLUMNS)),
        outcome + Text(f"  {clipped(one.settled_by, SETTLED_COLUMNS)}", style=QUIET),
        Text(str(one.events)),
        Text(one.body.value, style="" if one.body.value == "present" else QUIET),
    )


def _verdict_on(one: Judged) -> Text:
    from counterfoil.cli import marks

    if one.tombstone and not one.because:
        return marks.marked(marks.REMOVED, "tombstone")
    return marks.marked(marks.MET, "yes") if one.reconstructed else marks.marked(marks.BROKEN, "no")


def _cards(found: Sample) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from counterfoil.cli.leaf import Flow
    from counterfoil.cli.marks import RED
    from counterfoil.cli.terminal import safe

    cards: list[RenderableType] = []
    for one in found.drawn:
        name, action, outcome, events, body = _cells(one)
        facts = Flow(
            [
                events + Text(" event" if one.events == 1 else " events"),
                Text("body ") + body,
                Text("reconstructed: ") + _verdict_on(one),
            ]
        )
        lines: list[RenderableType] = [outcome, facts, *(Text(safe(said), style=RED) for said in one.because)]
        cards += [Flow([name, action]), *(Padding(line, (0, 0, 0, 2)) for line in lines), Text("")]
    return Group(*cards[:-1])
