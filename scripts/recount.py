"""Recount a laboratory run from its raw ground truth, with nothing of the project in between.

``python scripts/recount.py DIR [--json]`` reads what ``counterfoil-lab ... --keep DIR`` left: ``effects.jsonl`` (a line
per applied effect, written by the provider), ``wire.jsonl`` (a line per request the provider received), ``receipts.db``
(the store, opened read-only), ``kills.jsonl`` (a line per SIGKILL) and ``troubles.jsonl`` (a line per other trouble),
of a database also ``restarts.jsonl`` (a line per restart), ``commit_cuts.jsonl`` (a line per commit whose answer was
lost, with the events that stood then) and ``acknowledged.jsonl`` (a line per event that it said is durable), in DIR or
in each folder directly below it. It prints its own counts and compares them with ``DIR/result.json``, where that
exists: the sums, the figures of each contract (folder ``CONTRACT``) and each row (folder ``CASE-RUNNER``; or
``CASE``, where a certified worker's own store stands below it, ``state/receipts.db``). What ``counterfoil-lab
approvals`` left has one wire for all and a store per case (``cases/CASE/receipts.db``): there each send is held against
the store's own event rows, and bytes that nobody had allowed are counted, and uses of an approval beyond those it was
good for. What ``counterfoil-lab simulate`` left has a folder per virtual world, with what people decided there
(``words.jsonl``) and whether what the deployment assumes held there (``world.json``); so have the worlds in which
``counterfoil-lab mutants`` noticed something, and samples of those that ``counterfoil-lab exhaust`` tried, whose every
schedule has a line. Of ``counterfoil-lab images`` each boundary has a line, and the images that were kept are opened.
What only a clock could say is not counted.

Exit codes: 0 the counts agree, or there is nothing to compare; 1 they do not; 2 the folder cannot be counted.
A count whose source is missing is null; a result that claims it all the same disagrees.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `python -I` leaves it out

from recounting import authority, images, rounds, searches, worlds
from recounting.compare import disagreements
from recounting.ground import EFFECTS, RESULT, Counts, NotCountable
from recounting.run import count, together

SHOWN_MAX = 20
"""Runs that are printed, a line each; `--json` has all of them."""
APART = ("runs", "searches", "modes")
"""What is printed a line each."""


def recount(top: Path) -> Counts:
    """Count the run in a folder, or the sum of the runs in the folders directly below it."""
    if (top / authority.CASES).is_dir():
        return count(top) | authority.authority(top)
    if (top / images.BOUNDARIES).is_dir():
        return images.images(top)
    if (top / searches.SCHEDULES).is_dir():
        return searches.searched(top)
    if (top / searches.TRIALS).exists():
        return searches.hunted(top)
    if (top / rounds.ROUNDS).exists():
        return rounds.bench(top)
    if (top / EFFECTS).exists():
        return count(top)
    if any(top.glob(f"*/{worlds.WORDS}")):
        return worlds.simulation(top)
    return together(top)


def show(counts: Counts) -> None:
    """Print every figure, and of the runs a line each."""
    for name, number in counts.items():
        if name not in APART:
            print(f"{name:>16}  {number}")
    for group in APART:
        listed = counts.get(group, {})
        named = list(listed.items()) if isinstance(listed, dict) else list(enumerate(listed))
        for name, figures in named[:SHOWN_MAX]:
            print(f"{name:>16}: {short(figures)}")
        if len(named) > SHOWN_MAX:
            print(f"{'':>16}  and {len(named) - SHOWN_MAX} more; --json has all of them")


def short(figures: dict[str, Any]) -> str:
    """The figures of one run that are plain and not nought."""
    plain = (int, str)
    return ", ".join(f"{name} {number}" for name, number in figures.items() if number and isinstance(number, plain))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts and whether they agree."""
    parser = argparse.ArgumentParser(prog="recount.py", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="what --keep left")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    try:
        counts = recount(asked.folder)
        against = disagreements(counts, asked.folder / RESULT)
    except (NotCountable, OSError) as reason:
        print(f"cannot count: {reason}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps({**counts, "disagreements": against, "ok": not against}))
    else:
        show(counts)
        for line in against:
            print(f"DISAGREES  {line}")
    return 1 if against else 0


if __name__ == "__main__":
    sys.exit(main())
