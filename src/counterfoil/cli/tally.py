"""What became of a file of intents: every operation under one word, every refused line with its reason."""

from __future__ import annotations

import msgspec

from counterfoil.cli import exits
from counterfoil.domain.words import Dispatch, Lifecycle, Permission, Standing
from counterfoil.runtime.receipt import Receipt

PROBLEMS_MAX = 1000
"""Refused lines that are named; the rest is counted."""

HELD, NOT_SENT, UNKNOWN, REFUSED = "held", "not_sent", "unknown", "refused"

WORDS = (
    Lifecycle.SUCCEEDED.value,
    Lifecycle.ACCEPTED.value,
    Lifecycle.REJECTED.value,
    Lifecycle.SAFE_TO_RETRY.value,
    Lifecycle.MANUAL_REVIEW.value,
    UNKNOWN,
    Lifecycle.SUBMITTED.value,
    HELD,
    *(permission.value for permission in Permission if permission is not Permission.AUTHORIZED),
    NOT_SENT,
)
"""Under one of these stands every operation, in this order."""

_UNKNOWN = frozenset({Lifecycle.OUTCOME_UNKNOWN, Lifecycle.RECONCILING})
_SETTLED_WELL = frozenset({Lifecycle.SUCCEEDED.value, Lifecycle.ACCEPTED.value})


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing was done for one line; line 0 is the sweep."""

    line: int
    code: str
    problem: str


class Tally:
    """The counts of one run; its owner holds a lock."""

    def __init__(self) -> None:
        self.operations: dict[str, str] = {}
        """The word of each operation by its id."""
        self.open: set[str] = set()
        """Operations to be read again at the end."""
        self.unresolved: set[str] = set()
        self.new = 0
        """Attempts that this run dispatched."""
        self.problems: list[Problem] = []
        self.refused_lines = 0
        self.stopped = False
        """The rest of the file was not asked."""
        self._codes: set[int] = set()
        self._said: set[tuple[int, str]] = set()

    def answered(self, line: int, receipt: Receipt) -> None:
        """Count the answer to one line."""
        del line
        self.new += receipt.standing is Standing.NEW
        self.stands(receipt)
        if receipt.operation.unresolved or receipt.standing is Standing.HELD:
            self.open.add(receipt.id)

    def stands(self, receipt: Receipt) -> None:
        """Keep how an operation stands now."""
        self.operations[receipt.id] = word_of(receipt)
        if receipt.operation.unresolved:
            self.unresolved.add(receipt.id)
        else:
            self.unresolved.discard(receipt.id)

    def refused(self, line: int, code: str, problem: str, exit_code: int) -> bool:
        """Count a line that was refused; False when the same was said before, or enough was said."""
        self._codes.add(exit_code)
        self.refused_lines += line > 0
        if (line, problem) in self._said or len(self.problems) >= PROBLEMS_MAX:
            return False
        self._said.add((line, problem))
        self.problems.append(Problem(line=line, code=code, problem=problem))
        return True

    def counts(self) -> dict[str, int]:
        """How many operations stand under each word."""
        counted = dict.fromkeys(WORDS, 0)
        for word in self.operations.values():
            counted[word] += 1
        return counted

    def exit_code(self) -> int:
        """The one code for all of it."""
        codes = set(self._codes)
        if self.unresolved or self.stopped or not _SETTLED_WELL.issuperset(self.operations.values()):
            codes.add(exits.UNSETTLED)
        return exits.most_urgent(codes)

    def as_json(self) -> dict[str, object]:
        """Everything counted, as one object."""
        return {
            "operations": len(self.operations),
            **self.counts(),
            "unresolved": len(self.unresolved),
            "new": self.new,
            REFUSED: self.refused_lines,
            "stopped": self.stopped,
            "errors": [msgspec.to_builtins(problem) for problem in self.problems],
        }


def word_of(receipt: Receipt) -> str:
    """The one word an operation is counted under."""
    found = receipt.lifecycle
    if found in _UNKNOWN:
        return UNKNOWN
    if found is Lifecycle.PLANNED or (receipt.dispatch is Dispatch.NOT_STARTED and not receipt.operation.unresolved):
        if receipt.permission is not Permission.AUTHORIZED:
            return receipt.permission.value
        return HELD if receipt.operation.held_by or receipt.standing is Standing.HELD else NOT_SENT
    return found.value
