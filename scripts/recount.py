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
Every kind of run has a list of figures that its report must have (``recounting/kinds.py``). Each is counted again from
the raw files; or it is held against other figures of the report only, and named under ``consistent_only``; or nothing
in the raw files shows it, and it is named under ``not_recounted``. ``ok`` is worked out anew. The raw files are held
against one another too: the same payload, byte for byte, in what was asked for, in the store, on the wire and in the
effect; each line with its receipt; each kill in its window.

Exit codes: 0 the counts agree with the report; 1 they do not, or the report says ok and something is not nought; 2 the
folder cannot be counted; 3 there is no report, or one of another kind: the counts were held against nothing.
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

from recounting import authority, checks, images, rounds, searches, worlds
from recounting.compare import TOP, disagreements, is_of, report_of
from recounting.ground import EFFECTS, RESULT, Counts, NotCountable
from recounting.kinds import CASES, kind_of, not_recounted
from recounting.run import count, together

AGREES, DISAGREES, NOT_COUNTABLE, UNREPORTED = 0, 1, 2, 3

SHOWN_MAX = 20
"""Runs that are printed, a line each; `--json` has all of them."""
APART = ("runs", "searches", "trials", "modes")
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
    if any(top.glob(f"*/{CASES}")):
        return checks.checks(top)
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
        for one, figures in named[:SHOWN_MAX]:
            print(f"{one:>16}: {short(figures)}")
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
        counts, report = recount(asked.folder), report_of(asked.folder / RESULT)
    except (NotCountable, OSError) as reason:
        print(f"cannot count: {reason}", file=sys.stderr)
        return NOT_COUNTABLE
    kind = kind_of(asked.folder, report)
    if report is None or not is_of(kind, report):
        code, against, left = UNREPORTED, [f"there is no report of the kind `{kind.name}` beside the raw files"], []
    else:
        against, left = disagreements(kind, report, counts), not_recounted(kind, report, TOP)
        code = DISAGREES if against else AGREES
    said = {
        "kind": kind.name, "disagreements": against, "not_recounted": left, "consistent_only": list(kind.summed),
        "ok": code == AGREES,
    }  # fmt: skip
    if asked.json:
        print(json.dumps({**counts, **said}))
        return code
    show(counts)
    print(f"{'not recounted':>16}  {', '.join(left) or 'nothing'}")
    print(f"{'only consistent':>16}  {', '.join(kind.summed) or 'nothing'}")
    for line in against:
        print(f"{'DISAGREES' if code == DISAGREES else 'NO REPORT'}  {line}")
    return code


if __name__ == "__main__":
    sys.exit(main())
