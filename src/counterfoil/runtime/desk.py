"""A statement beside the receipts: every line compared with the operation it names, and recorded where it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from counterfoil.domain import statement
from counterfoil.domain.event import History
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.matching import Match
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.statement import Entry, Layout, Line
from counterfoil.ports.store import Store
from counterfoil.runtime.fed import Found, against, shown
from counterfoil.runtime.shelf import Fits, Shelf, alone

Keep = Callable[[Found, History, Evidence, bytes], Found]
"""Puts evidence on record: what is known of its line, the operation, what was judged, and the document it came in."""


class Desk:
    """Compares one statement.

    Args:
        store: of the receipts.
        shelf: finds them.
        layout: how the statement is read.
        effects: the name of each action's effect.
        keep: puts on record what counts.
    """

    def __init__(self, store: Store, shelf: Shelf, layout: Layout, effects: dict[str, str], keep: Keep) -> None:
        self._store, self._shelf, self._layout = store, shelf, layout
        self._effects, self._keep = effects, keep
        self._amounts: dict[str, object] = {}
        self._by_amount: dict[tuple[str, object], list[tuple[str, str]]] | None = None

    def take(self, lines: Iterable[Line]) -> tuple[Found, ...]:
        """Compare every line, record what counts, and say of each what became of it, in the file's order."""
        ours: dict[str, list[tuple[Fits, Line]]] = {}
        said: list[Found] = []
        read = [(line, self._shelf.fits(line.named(self._layout))) for line in lines]
        shared = self._shared(read)
        for line, fits in read:
            matched = alone(fits)
            if matched is not None and self._thing(line, matched) not in shared:
                ours.setdefault(matched.operation, []).append((matched, line))
            else:
                said.append(shown(fits or self._in_part(line), line=line.number))
        for operation, about in ours.items():
            said += self._about(operation, [(self._entry(*one), one[0]) for one in about])
        return tuple(sorted(said, key=lambda found: found.line))

    def _shared(self, read: list[tuple[Line, list[Fits]]]) -> set[tuple[str, str, str]]:
        """The objects that this very file gives to several operations: no line about them is anybody's."""
        owners: dict[tuple[str, str, str], set[str]] = {}
        for line, fits in read:
            matched = alone(fits)
            if matched is not None and line.named(self._layout).external_id:
                owners.setdefault(self._thing(line, matched), set()).add(matched.operation)
        return {thing for thing, operations in owners.items() if len(operations) > 1}

    def _thing(self, line: Line, matched: Fits) -> tuple[str, str, str]:
        named = line.named(self._layout)
        return matched.action, named.account, named.external_id

    def _entry(self, fits: Fits, line: Line) -> Entry:
        amount = statement.agree(self._amount(fits.operation), statement.amount_of(line, self._layout))
        compared = {**fits.compared, "amount": amount}
        return Entry(line=line, compared=compared, finding=statement.finding_of(line, self._layout))

    def _amount(self, operation: str) -> object:
        if operation not in self._amounts:
            payload = frozen_payload(self._store.load(operation))
            self._amounts[operation] = statement.amount_in(payload, self._layout)
        return self._amounts[operation]

    def _about(self, operation: str, entries: list[tuple[Entry, Fits]]) -> Iterator[Found]:
        """Everything the file says of one operation."""
        history = self._store.load(operation)
        every = tuple(entry for entry, _ in entries)
        doubled, refused = statement.is_doubled(every), against(history, None)
        effect = self._effects[history.operation.action]
        for entry, fits in entries:
            found = Found(line=entry.line.number, match=fits.match, operations=(operation,), compared=entry.compared)
            because = refused or ("" if doubled else entry.against)
            if because:
                yield msgspec.structs.replace(found, match=Match.CANDIDATE, because=(because,))
            elif doubled:
                document = statement.document_of_all(every)
                yield self._keep(found, history, statement.duplicate(every, effect=effect), document)
            else:
                yield self._keep(found, history, statement.evidence_of(entry, effect=effect), entry.line.document)

    def _in_part(self, line: Line) -> list[Fits]:
        """Operations whose account and amount fit a line that names no reference: for people to look at."""
        named, amount = line.named(self._layout), statement.amount_of(line, self._layout)
        if named.reference or amount is MISSING:
            return []
        compared = {"account": "equal", "reference": "missing", "external_id": "missing", "amount": "equal"}
        return [
            Fits(operation=operation, action=action, match=Match.CANDIDATE, compared=compared)
            for operation, action in self._of_amount().get((named.account, amount), ())
        ]

    def _of_amount(self) -> dict[tuple[str, object], list[tuple[str, str]]]:
        if self._by_amount is None:
            self._by_amount = {}
            for operation, action, known in self._shelf.every():
                place = known.account, self._amount(operation)
                self._by_amount.setdefault(place, []).append((operation, action))
        return self._by_amount
