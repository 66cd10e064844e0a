"""Contracts as a terminal shows them: the catalogue as a table, one contract clause by clause."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil.cli import clauses as words
from counterfoil.cli import leaf
from counterfoil.cli.marks import AMBER, QUIET, RED, STRONG, Legible
from counterfoil.cli.terminal import console, safe
from counterfoil.contracts import Flaw
from counterfoil.domain import reach
from counterfoil.domain.contract import Contract

WIDTH_MAX = 140
WIDE, NARROW = 110, 76
"""Columns from which everything has room, and below which a table has none."""
TOLD = ("contract", "kept", "lost answer", "sent again")
"""What a retry depends on."""


def show(page: RenderableType) -> None:
    """Print a page."""
    console().print(Legible(Constrain(page, WIDTH_MAX)))


def catalogue(every: Sequence[Contract], counted: dict[str, Any], width: int) -> RenderableType:
    """A line for each contract, and what there is in all; on a narrow terminal only what a retry depends on.

    Args:
        every: the contracts.
        counted: how many there are of which kind.
        width: columns.
    """
    rows = [_row(contract) for contract in every]
    body = _listed(rows) if width < NARROW else _tabled(rows, rows[0].keys() if rows and width >= WIDE else TOLD)
    said = (
        f"{counted['contracts']} provider actions and {counted['laboratory']} of the laboratory and for functions; "
        f"{counted['key_retention_mismatch']} with key, retention and mismatch known, "
        f"{counted['found_by_known_look']} found by a look of known consistency, "
        f"{counted['fence_or_absence']} with a fence or provable absence"
    )
    return Group(body, Text(said, style=QUIET))


def _row(contract: Contract) -> dict[str, Text]:
    follows = dict(words.follows(contract))
    return {
        "contract": Text(contract.id, style=STRONG),
        "group": Text(contract.group.value),
        "protected by": Text(contract.protection.kind.value.replace("_", " ")),
        "kept": Text(words.lasts(contract)),
        "lost answer": Text("a look" if "look" in follows["a lost answer"] else "a person"),
        "sent again": Text("yes", style=STRONG) if reach.repeats(contract) else Text("no", style=QUIET),
    }


def _tabled(rows: Sequence[dict[str, Text]], columns: Collection[str]) -> RenderableType:
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.columns[0].min_width = max((len(row["contract"]) for row in rows), default=0)
    for row in rows:
        table.add_row(*(row[name] for name in columns))
    return table


def _listed(rows: Sequence[dict[str, Text]]) -> RenderableType:
    said: list[RenderableType] = []
    for row in rows:
        told = Text("; ").join(Text.assemble(f"{name} ", row[name]) for name in TOLD[1:])
        said += [row["contract"], Padding(told, (0, 0, 0, 2))]
    return Group(*said, "")


def one(contract: Contract) -> RenderableType:
    """One contract: what follows from it, each clause, and each source."""
    head = Text.assemble((contract.id, STRONG), (f"  version {contract.version}", QUIET), f"  {safe(contract.effect)}")
    follows = leaf.facts([(name, safe(said)) for name, said in words.follows(contract)])
    table = Table("clause", "says", "rests on", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[0].no_wrap = True
    table.columns[1].overflow = table.columns[2].overflow = "fold"
    for said in words.clauses(contract):
        confidence = contract.sources[said.source].confidence.value
        unsure = AMBER if confidence in ("inferred", "unknown") else QUIET
        rests = Text.assemble(safe(said.source), (f"  {confidence.replace('_', ' ')}", unsure))
        table.add_row(Text(said.clause, style=STRONG), safe(said.says), rests)
    sources = leaf.facts(
        [(safe(name), f"{safe(c.says)} {safe(c.url or c.document)}") for name, c in contract.sources.items()]
    )
    return Group(head, Text(""), follows, table, Text("Sources", style=STRONG), sources)


def flaws(found: Sequence[tuple[str, Sequence[Flaw]]]) -> RenderableType:
    """What is wrong with each file, by line and clause."""
    parts: list[RenderableType] = []
    for name, wrong in found:
        if not wrong:
            parts.append(Text.assemble((safe(name), STRONG), ("  holds", QUIET)))
        for flaw in wrong:
            where = Text.assemble((f"{safe(name)}:{flaw.line}", STRONG), f"  {safe(flaw.clause)}  ")
            parts.append(where.append(safe(flaw.problem), style=RED))
    return Group(*parts)
