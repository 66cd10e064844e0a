"""`counterfoil retain`: remove receipts and erase bodies that the policy in force keeps no longer.

It may be stopped anywhere and run again: each operation is one commit, and what was done is on record.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.retaining import Retained

WORDS = ("removed", "erased", "kept")
LIMIT_MAX = 1_000_000_000
KEPT_MAX = 20
"""Operations named that are kept although their time has come."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verb.add_argument("--dry-run", action="store_true", help="only say what would be done")
    verb.add_argument(
        "--limit", metavar="N", type=parser.count(1, LIMIT_MAX), help="operations changed at most (default: all)"
    )
    parser.store_option(verb)
    parser.actions_option(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 1 where something was kept whose time had come."""
    from counterfoil.cli.opening import for_reading
    from counterfoil.cli.terminal import print_json

    with exits.terminable(), for_reading(asked) as ledger:
        policy = _policy(ledger)
        counts: dict[str, Counter[str]] = {}
        kept: list[Retained] = []
        try:
            with _progress() as advance:
                for each in ledger.retain(limit=asked.limit, dry_run=asked.dry_run):
                    counts.setdefault(each.sensitivity, Counter())[each.did] += 1
                    if each.did == "kept":
                        kept.append(each)
                    advance()
        finally:  # where it is stopped, too: what was done stays done
            if asked.json:
                print_json(_as_json(policy, counts, kept, dry_run=asked.dry_run))
            else:
                _say(policy, counts, kept, dry_run=asked.dry_run)
    return exits.UNSETTLED if kept else exits.DONE


def _policy(ledger: Ledger) -> str | None:
    """The digest of the policy in force, where it says how long anything is kept."""
    from counterfoil.domain.policy import digest
    from counterfoil.runtime.policies import in_force

    policy = in_force(ledger.store)[1]
    return digest(policy) if policy and policy.retention else None


def _as_json(
    policy: str | None, counts: dict[str, Counter[str]], kept: list[Retained], *, dry_run: bool
) -> dict[str, object]:
    return {
        "policy": policy,
        "dry_run": dry_run,
        "classes": {name: {word: counts[name][word] for word in WORDS} for name in sorted(counts)},
        "kept": [{"id": each.operation, "because": list(each.because)} for each in kept],
    }


def _say(policy: str | None, counts: dict[str, Counter[str]], kept: list[Retained], *, dry_run: bool) -> None:
    from counterfoil.cli.terminal import safe

    if policy is None:
        print("nothing is removed and nothing erased: no policy in force says how long anything is kept", flush=True)
        return
    would = "would be " if dry_run else ""
    for name in sorted(counts):
        said = ", ".join(f"{counts[name][word]:,} {would}{word}" for word in WORDS if counts[name][word])
        print(f"{safe(name)}: {said}")
    if not counts:
        print("nothing has come to its time")
    for each in kept[:KEPT_MAX]:
        print(f"  kept {each.operation}: {safe('; '.join(each.because))}")
    sys.stdout.flush()


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[], None]]:
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from counterfoil.cli.terminal import console

    columns = (SpinnerColumn(), TextColumn("retention"), TextColumn("{task.completed:,.0f}"), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task("retention", total=None)
        yield lambda: progress.advance(task)
