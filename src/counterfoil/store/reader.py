"""What can be read of a receipts file: each answer is of one moment, and nothing is paged or filtered out of sight."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from counterfoil.domain.errors import NoSuchOperation
from counterfoil.domain.event import History
from counterfoil.domain.identifier import row_number
from counterfoil.domain.operation import Operation
from counterfoil.store import rows

if TYPE_CHECKING:
    from counterfoil.domain.policy import OnRecord
    from counterfoil.ports.store import Row


class Reader:
    """The reading half of a store; the store gives it one snapshot at a time."""

    def _read(self) -> contextlib.AbstractContextManager[rows.Runs]:
        raise NotImplementedError

    def find(self, tenant: str, actor: str, action: str, key: str) -> History | None:
        """Read the operation of one key, or None."""
        with self._read() as db:
            operation = rows.by_key(db, tenant, actor, action, key)
            return None if operation is None else rows.history(db, operation)

    def load(self, operation: str) -> History:
        """Read one operation whole; raises `NoSuchOperation`."""
        n = row_number(operation)
        with self._read() as db:
            found = None if n is None else rows.by_number(db, n)
            if found is None or found.id != operation:
                raise NoSuchOperation(operation)
            return rows.history(db, found)

    def unresolved(self) -> list[Operation]:
        """Read every unresolved operation, oldest first."""
        with self._read() as db:
            return rows.select(db, "WHERE unresolved > 0 ORDER BY n")

    def operations(self, *, limit: int, before: int | None = None) -> list[Operation]:
        """Read operations, newest first, from below row number `before`."""
        with self._read() as db:
            if before is None:
                return rows.select(db, "ORDER BY n DESC LIMIT ?", (limit,))
            return rows.select(db, "WHERE n < ? ORDER BY n DESC LIMIT ?", (before, limit))

    def histories(self) -> Iterator[History]:
        """Read every operation whole, oldest first."""
        for row in self.walk():
            if isinstance(row.history, ValueError):
                raise row.history
            yield row.history

    def walk(self) -> Iterator[Row]:
        """Read every operation whole, oldest first, whatever can be read of it; each page is of one moment."""
        after = rows.N_MIN
        while True:
            with self._read() as db:
                page = rows.page(db, after)
            if not page:
                return
            yield from page
            after = page[-1].n

    def policy(self) -> tuple[int, bytes] | None:
        """Read the policy in force with its number, or None where none was ever adopted."""
        from counterfoil.store import policies

        with self._read() as db:
            return policies.in_force(db)

    def policies(self) -> list[OnRecord]:
        """Read every policy that was ever in force, oldest first; the last one is."""
        from counterfoil.store import policies

        with self._read() as db:
            return policies.every(db)

    def aged(self, *, after: int, until: float, limit: int) -> list[Operation]:
        """Read resolved operations with something left to remove, oldest first; see `retention.aged`."""
        from counterfoil.store import retention

        with self._read() as db:
            return retention.aged(db, after, until, limit)

    def refusals(self, n: int) -> int:
        """Read how often a call was answered from an operation's receipt, as far as that is counted yet."""
        from counterfoil.store import retention

        with self._read() as db:
            return retention.refusals(db, n)

    def query(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Run one reading statement."""
        with self._read() as db:
            return db.execute(statement, parameters).fetchall()

    def holders(self, effect: str) -> list[Operation]:
        """Read the unresolved operations of one effect: what holds the others back."""
        with self._read() as db:
            return rows.select(db, "WHERE effect = ? AND unresolved > 0 ORDER BY unresolved", (effect,))

    def waiting(self) -> list[Operation]:
        """Read what waits for people or its caller, or was approved and not sent; none is paged or filtered away."""
        with self._read() as db:
            return rows.select(db, "WHERE unresolved = 0 AND step <> '' ORDER BY n")

    def pending(self) -> list[Operation]:
        """Read what is unresolved and what waits, as both stood at one moment: none is missed."""
        with self._read() as db:
            open_ones = rows.select(db, "WHERE unresolved > 0 ORDER BY n")
            return open_ones + rows.select(db, "WHERE unresolved = 0 AND step <> '' ORDER BY n")
