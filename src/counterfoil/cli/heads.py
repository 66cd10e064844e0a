"""Chain heads that are kept somewhere else: what a receipts file alone cannot show is that it lacks something.

A line of JSON for each operation: its `operation` id, the `seq` of its last event, and that event's `hash`. They are
not signed: whoever can change the file they are in can change them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import History, removed_before, start_of
from counterfoil.domain.identifier import row_number
from counterfoil.domain.violation import Law, Violation

if TYPE_CHECKING:
    from counterfoil.ports.store import Row
    from counterfoil.runtime.ledger import Ledger

PAGE = 256
TAILS = ("", "-wal", "-shm")
"""Files of one store."""


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last event of one operation, at some time."""

    operation: str
    seq: int
    hash: str
    """In hexadecimal."""


def write(name: str, ledger: Ledger) -> None:
    """Write the head of every operation into a private file (0600), whole or not at all.

    Raises:
        BadValue: it cannot be written there, or it is the receipts file itself.
    """
    from counterfoil.runtime.spool import write_private

    path, store = Path(name), ledger.store.path
    if store is not None and path.resolve() in {store.resolve().with_name(store.name + tail) for tail in TAILS}:
        raise BadValue("--write-heads", name, wanted="is the receipts file itself; name another file")
    lines = b"".join(msgspec.json.encode(head) + b"\n" for head in _heads(ledger))
    try:
        write_private(path, lines)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "bad path"
        raise BadValue("--write-heads", name, wanted=f"cannot be written: {why}") from error


def _heads(ledger: Ledger) -> Iterator[Head]:
    after = -1
    statement = (
        "SELECT o.n, o.id, o.seq, e.hash FROM operation o JOIN event e ON e.id = o.n * 32768 + o.seq "
        "WHERE o.n > ? ORDER BY o.n LIMIT ?"
    )
    while page := ledger.store.query(statement, (after, PAGE)):
        for n, operation, seq, hashed in page:
            after = int(str(n))
            whole = hashed if isinstance(hashed, bytes) else b""
            yield Head(operation=str(operation), seq=int(str(seq)), hash=whole.hex())


def read(name: str) -> dict[str, Head]:
    """Read heads that were kept, by operation.

    Raises:
        BadValue: there is no such file, or a line of it is no head.
    """
    try:
        lines = Path(name).read_bytes().splitlines()
        heads = [msgspec.json.decode(line, type=Head) for line in lines]
    except (OSError, ValueError) as error:
        raise BadValue("--heads", name, wanted="is no file of heads that `verify --write-heads` wrote") from error
    return {head.operation: head for head in heads}


class Watch:
    """Looks for kept heads among operations as they are read; see `read`.

    Args:
        kept: the heads, by operation.
    """

    def __init__(self, kept: Mapping[str, Head]) -> None:
        self._left = dict(kept)
        self._found: list[Violation] = []

    def saw(self, row: Row) -> None:
        """Hold one operation against its head, if one was kept; a row that is not the one its id names is nobody's."""
        head = self._left.pop(row.id, None) if row_number(row.id) == row.n else None
        if head is not None:
            self._wrong(head, _problem(head, row.history))

    def against(self) -> tuple[Violation, ...]:
        """Every operation that is another than when its head was kept; those that were not seen are gone."""
        for head in self._left.values():
            self._wrong(head, "it stood there when the heads were kept, and is gone")
        self._left = {}
        return tuple(self._found)

    def _wrong(self, head: Head, problem: str) -> None:
        if problem:
            self._found.append(Violation(operation=head.operation, seq=head.seq, law=Law.CHAIN, problem=problem))


def _problem(head: Head, history: History | ValueError) -> str:
    if isinstance(history, ValueError):
        return "it cannot be read, and a head was kept of it"
    events = history.events
    if head.seq <= removed_before(events):
        last, hashed = start_of(events)  # of those that retention removed, only the last one's hash is left
        same = head.seq < last or hashed.hex() == head.hash
        return "" if same else "retention removed another event than the one whose head was kept"
    found = {event.seq: event.hash.hex() for event in events}
    return "" if found.get(head.seq) == head.hash else "its event is not the one whose head was kept"
