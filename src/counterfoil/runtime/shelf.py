"""The receipts of some actions by the names that the world knows them by, read once from the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from counterfoil.domain.errors import ReceiptBroken
from counterfoil.domain.event import History
from counterfoil.domain.identifier import row_number
from counterfoil.domain.matching import Known, Match, Named, compared, known, match
from counterfoil.ports.store import Store
from counterfoil.runtime.objects import on_record
from counterfoil.runtime.registered import Registered

PAGE = 1_024
"""Row numbers read at once."""
_IDS = "SELECT n, id FROM operation WHERE tenant = ? AND action = ? AND n > ? ORDER BY n LIMIT ?"
_ID = "SELECT id FROM operation WHERE n = ?"
UUID_ROW_DIGITS = (8, 13)
"""Where the row number of an operation stands in its key's form as a UUID."""


class Fits(msgspec.Struct, frozen=True, kw_only=True):
    """One operation beside what something from outside names."""

    operation: str
    action: str
    match: Match
    compared: dict[str, str]


def alone(fits: list[Fits]) -> Fits | None:
    """The one operation that something speaks of; None where there are several, or its object is another's effect."""
    matched = [one for one in fits if one.match is Match.MATCHED]
    return matched[0] if len(matched) == 1 and not any(_has_object(one, matched[0]) for one in fits) else None


def _has_object(other: Fits, matched: Fits) -> bool:
    """It is of the same action and account, and the object that is named stands on its record."""
    said = other.compared
    alike = other.action == matched.action and said["account"] != "different"
    return other is not matched and alike and said["external_id"] == "equal"


class Shelf:
    """Finds operations by reference and by external id.

    Args:
        store: read once, when a name is first asked for that is no key of our own.
        actions: whose operations are looked at.
    """

    def __init__(self, store: Store, actions: Iterable[Registered]) -> None:
        self._store = store
        self._actions = {registered.action.name: registered for registered in actions}
        self._names: dict[str, dict[str, None]] | None = None
        self._known: dict[str, tuple[str, Known]] = {}
        self.unreadable: dict[str, str] = {}
        """Operations whose receipts cannot be read, with why: whatever is theirs is found nowhere."""

    def fits(self, named: Named) -> list[Fits]:
        """Every operation that a strong name of it speaks of, with how well it fits."""
        own = self._of_own_key(named.reference)
        found = dict.fromkeys([own, *self._with_object(named.external_id)] if own else self._sharing(named))
        fields = {operation: compared(named, self._known[operation][1]) for operation in found}
        return [
            Fits(operation=operation, action=self._known[operation][0], match=match(said), compared=said)
            for operation, said in fields.items()
            if match(said) is not Match.UNMATCHED
        ]

    def every(self) -> Iterator[tuple[str, str, Known]]:
        """Every operation by id, with its action and its names."""
        self._read()
        for operation, (action, stands) in self._known.items():
            yield operation, action, stands

    def _of_own_key(self, reference: str) -> str:
        """The operation whose own key a reference is; found by its row number, without reading any other."""
        number = _row(reference)
        rows = self._store.query(_ID, (number,)) if number is not None else []
        for (identifier,) in rows:
            operation = str(identifier)
            self._take(operation)
            if operation in self._known and reference in self._known[operation][1].references:
                return operation
        return ""

    def _with_object(self, external_id: str) -> list[str]:
        """Every operation on whose record that object stands."""
        if not external_id:
            return []
        if self._names is None:
            self._take_all_with(external_id)
        return [one for one, (_, stands) in self._known.items() if external_id in stands.external_ids]

    def _take_all_with(self, external_id: str) -> None:
        for registered in self._actions.values():
            for operation in on_record(self._store, registered.action.tenant, registered.action.name, external_id):
                self._take(operation)

    def _sharing(self, named: Named) -> list[str]:
        self._read()
        names = self._names or {}
        wanted = [("reference", named.reference), ("external_id", named.external_id)]
        found = [operation for kind, name in wanted if name for operation in names.get(f"{kind}\x00{name}", ())]
        return list(dict.fromkeys(found))

    def _read(self) -> None:
        if self._names is not None:
            return
        self._names = {}
        for action in self._actions.values():
            for operation in self._ids(action.action.tenant, action.action.name):
                self._take(operation)
        for operation, (_, stands) in self._known.items():
            named = [f"reference\x00{name}" for name in stands.references]
            for name in [*named, *(f"external_id\x00{name}" for name in stands.external_ids)]:
                self._names.setdefault(name, {})[operation] = None

    def _ids(self, tenant: str, action: str) -> Iterator[str]:
        after = -1
        while rows := self._store.query(_IDS, (tenant, action, after, PAGE)):
            yield from (str(row[1]) for row in rows)
            after = int(str(rows[-1][0]))

    def _take(self, operation: str) -> None:
        if operation in self._known:
            return
        try:
            history: History = self._store.load(operation)
            registered = self._actions.get(history.operation.action)
            if registered is not None:
                self._known[operation] = registered.action.name, known(history, registered.action.contract)
        except ReceiptBroken as error:
            self.unreadable[operation] = str(error)


def _row(reference: str) -> int | None:
    if reference.startswith("op_"):
        return row_number(reference)
    first, second = UUID_ROW_DIGITS
    digits = reference[:first] + reference[first + 1 : second]
    plain = len(reference) == 36 and reference[first] == "-"  # noqa: PLR2004 - the length of a UUID
    return row_number(f"op_{digits}{'0' * 20}") if plain else None
