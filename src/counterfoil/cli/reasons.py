"""Why what was not sent was not, and what was rejected was: the top reasons under each word, with their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from counterfoil.cli.tally import NOT_SENT
from counterfoil.cli.terminal import clipped
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.event import EventKind, History, evidence_of
from counterfoil.domain.words import Lifecycle
from counterfoil.runtime.export import body_of

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

Reasons = dict[str, tuple[str, ...]]
"""Under each word, the reasons as they are said."""

ASKED = frozenset({NOT_SENT, Lifecycle.REJECTED.value, Lifecycle.SAFE_TO_RETRY.value})
READ_MAX = 1_000
"""Operations whose history is read for it: a reason that stands in none of them is no top reason."""
TOP = 3
REASON_COLUMNS = 60


def reasons(ledger: Ledger, operations: Mapping[str, str]) -> Reasons:
    """Read the reasons.

    Args:
        ledger: where they stand.
        operations: the word of each operation by its id.
    """
    counted: dict[str, Counter[str]] = {}
    for operation in [o for o, word in operations.items() if word in ASKED][:READ_MAX]:
        try:
            said = reason(ledger.history(operation))
        except (CounterfoilError, ValueError):
            continue  # a store that failed is reported already
        counted.setdefault(operations[operation], Counter())[said] += 1
    return {word: _top(counter) for word, counter in counted.items()}


def reason(history: History) -> str:
    """What the last evidence of one operation says of why, in the words on its record."""
    observed = [event for event in history.events if event.kind is EventKind.OBSERVED]
    if not observed:
        return "nothing was attempted"
    said = evidence_of(observed[-1])
    facts = body_of(observed[-1]).get("facts") or {}
    status = f"HTTP {facts['status']}" if facts.get("status") else ""
    told = str(facts.get("refusal") or "") or " ".join(part for part in (status, said.reason or said.rule) if part)
    return clipped(told or said.finding.value, REASON_COLUMNS)


def _top(counter: Counter[str]) -> tuple[str, ...]:
    named = counter.most_common(TOP)
    rest = sum(counter.values()) - sum(count for _, count in named)
    return tuple(f"{said} ({count})" for said, count in named) + ((f"others ({rest})",) if rest else ())
