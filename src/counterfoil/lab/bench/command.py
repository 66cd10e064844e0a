"""`counterfoil-lab bench`: ratios to floors, every figure measured beside its floor in one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterfoil.lab.bench import growth, peers, plot, postgresql, sqlite

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ROUNDS = "rounds.json"
"""Every round's own figure, kept for whoever takes the ratios again."""
Bar = tuple[str, float]


def run(  # noqa: PLR0913 - each is an option of the command
    *,
    store: str,
    rounds: int,
    with_peers: bool = False,
    grown: int | None = None,
    keep: Path | None = None,
    plots: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure everything that is asked for and return the figures, `ok` saying whether every bar is met.

    Args:
        store: `sqlite`, or `postgresql` on a server of our own.
        rounds: interleaved blocks of each subject.
        with_peers: also measure other libraries beside it, see `peers`.
        grown: also measure a store that holds so many operations, see `growth`.
        keep: a folder that receives every round's own figures, and a file's receipts.
        plots: a folder that receives a picture of one caller and of many, with what `with_peers` measures.
        progress: told what is measured next.
    """
    if store == "postgresql":
        figures = postgresql.run(rounds=rounds, progress=progress)
    else:
        figures = sqlite.run(rounds=rounds, keep=keep, progress=progress)
    kept = figures.pop("rounds_kept")
    if with_peers:
        found = peers.run(store, rounds=rounds, progress=progress)
        kept["peers"] = found.pop("rounds_kept")
        figures |= found
    if grown:
        found = growth.run(store, grown, rounds=rounds, progress=progress)
        kept["growth"] = found.pop("rounds_kept")
        figures |= {growth.name_of(grown): found["ratio"], "growth": found}
    if plots is not None:
        plot.draw(figures, plots)
    if keep is not None:
        (keep / ROUNDS).write_text(json.dumps(kept) + "\n", encoding="utf-8")
    figures["ok"] = not missed(figures)
    return figures


def bars(figures: Mapping[str, Any]) -> dict[str, Bar]:
    """What the figures are held against; what was not measured is named, and held against nothing."""
    store = figures["store"]
    found = dict(postgresql.BARS if store == "postgresql" else sqlite.BARS)
    for peer, times in peers.BARS[store].items():
        if peer in figures.get("concurrent_over", {}):
            found[f"concurrent_over.{peer}"] = (">=", times)
    operations = figures.get("growth", {}).get("operations", 0)
    if operations >= growth.BAR_FROM:
        found[growth.name_of(operations)] = ("<=", growth.RATIO_MAX)
    return found


def _measured(figures: Mapping[str, Any]) -> Iterator[tuple[str, Bar, Any]]:
    for name, bar in bars(figures).items():
        value: Any = figures
        for part in name.split("."):
            value = value[part]
        yield name, bar, value


def missed(figures: Mapping[str, Any]) -> list[str]:
    """The bars that are not met, each with its figure."""
    found = []
    for name, (how, bar), value in _measured(figures):
        met = {"<=": value <= bar, ">=": value >= bar, "==": value == bar}[how]
        if not met:
            found.append(f"{name} is {value}, wanted {how} {bar}")
    return found


def show(figures: Mapping[str, Any], console: Console) -> None:
    """Print the figures beside their bars."""
    table = _table("One guarded call, beside what the store itself costs", "measure", "figure", "quartiles", "bar")
    for name, (how, bar), value in _measured(figures):
        between = " to ".join(map(str, figures["quartiles"].get(name, ())))
        table.add_row(name.replace("_", " "), str(value), between, f"{how} {bar:g}")
    for name in ("bytes_per_operation", "cli_start_ms", "import_ms"):
        if name in figures:
            table.add_row(name.replace("_", " "), str(figures[name]), "", "")
    console.print(table)
    if "peers" in figures:
        console.print(_peers(figures["peers"]))
        for name, why in figures["missing"].items():
            console.print(f"not measured: {name}, {why}")
    if "growth" in figures:
        console.print(_growth(figures["growth"]))
    for line in missed(figures):
        console.print(f"missed: {line}")


def _table(title: str, *headings: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    return table


def _peers(found: Mapping[str, Any]) -> Table:
    title = f"Others beside it: one caller, then {peers.CALLERS}"
    table = _table(title, "peer", "on", "over our p50", "syncs a call", "calls a second", "ours", "we over them")
    for name, f in found.items():
        rates = f"{f['per_second']:g}", f"{f['ours_per_second']:g}", f"{f['over']:g}"
        syncs = "?" if f["fsyncs_per_call"] is None else f"{f['fsyncs_per_call']:g}"
        table.add_row(f"{name} {f['version']}, {f['way']}", f["on"], f"{f['mine_ratio']:g}", syncs, *rates)
    return table


def _growth(found: Mapping[str, Any]) -> Table:
    held = f"A store of {found['operations']:,} operations ({found['mib']:g} MiB): a call costs {found['ratio']:g}"
    table = _table(f"{held} of one in an empty store", "verb", "seconds", "MiB")
    for name, took in found["verbs"].items():
        table.add_row(name.replace("_", " "), f"{took['seconds']:g}", f"{took['mib']:g}")
    return table
