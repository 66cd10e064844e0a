"""How often each law was asked, how often it was broken, and how often nobody could ask it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from counterfoil.domain.event import Event, EventKind, History
from counterfoil.domain.operation import Operation
from counterfoil.domain.record import digest_of, record_of
from counterfoil.domain.rejudge import MENDABLE, Judgement
from counterfoil.domain.violation import Law, Violation

_OF_A_WHOLE = (Law.AUTHORITY, Law.BASIS, Law.EVIDENCE, Law.PROJECTION)
"""Laws that are asked only where every record can be read."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One law over a whole store."""

    law: Law
    asked: int
    """Of how many operations, events or files."""
    broken: int
    """In how many of those; one may be broken in several ways."""
    not_asked: int


class Laws:
    """Counts over one operation after the other; it keeps no operation."""

    def __init__(self) -> None:
        self._asked: Counter[Law] = Counter()
        self._broken: Counter[Law] = Counter()
        self._not_asked: Counter[Law] = Counter()
        self.not_rejudged: Counter[str] = Counter()
        """Why findings were not judged anew, and how many each."""

    @property
    def unjudged(self) -> int:
        """How many findings could have been judged anew and were not."""
        return sum(count for reason, count in self.not_rejudged.items() if reason in MENDABLE)

    def rows(self) -> tuple[Asked, ...]:
        """Every law, in the order they are asked."""
        return tuple(
            Asked(law=law, asked=self._asked[law], broken=self._broken[law], not_asked=self._not_asked[law])
            for law in Law
        )

    def operation(self, history: History, violations: tuple[Violation, ...]) -> None:
        """Count what the audit asked of one operation."""
        unread = any(violation.law is Law.RECORD for violation in violations)
        for law, questions in _questions(history).items():
            counted = self._not_asked if unread and law in _OF_A_WHOLE else self._asked
            counted[law] += questions
        self._not_asked[Law.BODY] += 0 if unread else _erased(history.events)
        self._count(violations)

    def unreadable(self, violations: tuple[Violation, ...]) -> None:
        """Count an operation of which there is no history: whatever its violations do not name was not asked."""
        named = {violation.law for violation in violations}
        self._asked.update(named)
        self._not_asked.update(law for law in Law if law not in named and law is not Law.FILE)
        self._count(violations)

    def elsewhere(self, law: Law, questions: int, violations: Iterable[Violation]) -> None:
        """Count what was asked of the file and of the policies.

        Args:
            law: what was asked.
            questions: how often.
            violations: what was found; those of another law were asked by being found.
        """
        found = tuple(violations)
        others = {(v.law, v.operation, v.seq) for v in found if v.law is not law}
        self._asked[law] += questions
        self._asked.update(other for other, *_ in others)
        self._count(found)

    def judged(self, operation: Operation, judgements: tuple[Judgement, ...]) -> tuple[Violation, ...]:
        """Count what was judged anew of one operation, and return what did not hold."""
        for judgement in judgements:
            if judgement.unasked:
                self._not_asked[Law.JUDGEMENT] += 1
                self.not_rejudged[judgement.unasked] += 1
            else:
                self._asked[Law.JUDGEMENT] += 1
        broken = tuple(
            Violation(operation=operation.id, seq=judgement.seq, law=Law.JUDGEMENT, problem=judgement.broken)
            for judgement in judgements
            if judgement.broken
        )
        self._count(broken)
        return broken

    def _count(self, violations: tuple[Violation, ...]) -> None:
        self._broken.update(law for law, *_ in {(v.law, v.operation, v.seq) for v in violations})


def _questions(history: History) -> dict[Law, int]:
    """How often each law is asked of one history."""
    events = history.events
    kinds = Counter(event.kind for event in events)
    words = kinds[EventKind.BEGUN] + kinds[EventKind.PROPOSED]
    return {
        Law.IDENTITY: 1, Law.SEQUENCE: 1 + len(events), Law.CHAIN: len(events), Law.RECORD: len(events),
        Law.BODY: sum(event.body is not None for event in events),
        Law.AUTHORITY: words + kinds[EventKind.HELD] + kinds[EventKind.DECIDED], Law.BASIS: words,
        Law.EVIDENCE: kinds[EventKind.OBSERVED], Law.PROJECTION: 1,
    }  # fmt: skip


def _erased(events: tuple[Event, ...]) -> int:
    """How many bodies are named on record and are there no more."""
    bare = (event for event in events if event.body is None)
    return sum(bool(digest_of(event, record_of(event))) for event in bare)
