"""`counterfoil-lab approvals`: whatever is done to an approval, nothing goes without its authority.

The cases are played by a process of its own, of the product as it is; what came of each is counted here, from the
provider's own logs and the receipts' rows.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab import sabotage
from counterfoil.lab.approvals_count import Count, Entry, bytes_of, count, name_of
from counterfoil.lab.approvals_scene import Case
from counterfoil.lab.approvals_stage import CASES, PLAYED, folder_of
from counterfoil.lab.credential import ENVIRONMENT
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.ground_truth import EFFECTS, WIRE
from counterfoil.lab.journal import read
from counterfoil.lab.processes import Child, start_provider
from counterfoil.lab.watch import POLL_SECONDS, Tail

__all__ = ["CASES", "CASES_MIN", "Row", "run"]

CASES_MIN = 50
"""Fewer would leave a field or a moment out."""
SECONDS_MAX = 240.0
"""For all cases together; they take a few seconds."""
RULES: tuple[Mapping[str, Any], ...] = ({"route": "key", "behaviour": "lose_reply"},)
"""One of the provider's routes does what it is asked and never says so."""

ANY = "*"
"""Either permission, either outcome: it depends on who won."""


class Row(NamedTuple):
    """What one case had to come to, and what it came to."""

    case: str
    expected: str
    sent: int
    """Sends that the provider received for this case's operations."""
    effects: int
    authorised: int
    """Claims that the receipts' rows show to have been allowed."""
    permission: str
    outcome: str
    held: bool
    """It came to what was expected, and nothing went or was used without authority."""


def run(top: Path, mutant: str | None, step: Callable[[str], None], only: Iterable[str] = ()) -> dict[str, Any]:
    """Play the cases and count what came of them.

    Args:
        top: gets the provider's logs and a folder per case.
        mutant: a rule that is off in the process that plays them, or None.
        step: told of each case when it was played.
        only: names of the cases to play; none: all.
    """
    chosen = tuple(only)
    with start_provider(top, rules=RULES) as provider, _stage(top, provider.port, mutant, chosen) as stage:
        _watch(stage, top, step)
    played = [CASES[entry["case"]] for entry in read(top / PLAYED)]
    if len(played) != len(chosen or CASES):
        raise RunFailed(f"only {len(played)} of {len(chosen or CASES)} cases were played")
    return _figures(top, played, least=len(chosen) or CASES_MIN)


def _stage(top: Path, port: int, mutant: str | None, only: Sequence[str]) -> Child:
    arguments = ["--folder", str(top), "--port", str(port), *(word for name in only for word in ("--case", name))]
    if mutant is not None:
        arguments += ["--mutant", mutant]
    argv = sabotage.command(mutant, "counterfoil.lab.approvals_stage", *arguments)
    return Child(argv, env=ENVIRONMENT, ready_seconds=None)


def _watch(stage: Child, top: Path, step: Callable[[str], None]) -> None:
    """Tell of each case that was played, until all were."""
    played, until = Tail(top / PLAYED), time.monotonic() + SECONDS_MAX
    code: int | None = None
    while code is None:
        try:
            code = stage.wait(10 * POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() > until:
                raise RunFailed(f"the cases were not played within {SECONDS_MAX:g} seconds") from None
        for entry in played.more():
            step(entry["case"])
    if code != 0:
        raise RunFailed(f"the process that plays the cases ended with {code}: {stage.errors()}")


def _figures(top: Path, played: Sequence[Case], *, least: int) -> dict[str, Any]:
    effects = read(top / EFFECTS)
    sends = [entry for entry in read(top / WIRE) if entry["act"] == "send"]
    counts = [(case, count(folder_of(top, case.name), sends, effects)) for case in played]
    rows = [_row(case, found) for case, found in counts]
    without = sum(found.without for _, found in counts) + _unnamed(sends, counts)
    twice = sum(found.twice for _, found in counts)
    refused = sum(case.mutates and found.sent == 0 for case, found in counts)
    held = all(row.held for row in rows)
    return {
        "cases": len(rows),
        "bytes_sent_without_authority": without,
        "approvals_used_twice": twice,
        "mutations_refused": refused,
        "rows": [row._asdict() for row in rows],
        "ok": held and not without and not twice and len(rows) >= least and (refused > 0 or least < CASES_MIN),
    }


def _unnamed(sends: Iterable[Entry], counts: Iterable[tuple[Case, Count]]) -> int:
    """Bytes that went under a name which no case's receipts know."""
    known = {name for _, found in counts for name in found.names}
    return bytes_of(send for send in sends if name_of(send) not in known)


def _row(case: Case, found: Count) -> Row:
    wanted = found.authorised if case.sent is None else case.sent
    figures = (found.sent, found.effects) == (wanted, wanted if case.effects is None else case.effects)
    words = case.permission in {ANY, found.permission} and case.outcome in {ANY, found.outcome}
    return Row(
        case=case.name, expected=_expected(case), sent=found.sent, effects=found.effects, authorised=found.authorised,
        permission=found.permission, outcome=found.outcome,
        held=figures and words and not found.without and not found.twice,
    )  # fmt: skip


def _expected(case: Case) -> str:
    """In words and figures; where two race, what the winner says."""
    if case.sent is None:
        return f"{case.expected}: as many sent as claimed while approved"
    return f"{case.expected}: {case.sent} sent, {case.permission}, {case.outcome}"
