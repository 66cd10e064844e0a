"""What every image must satisfy: the real store opens it, and nothing that was promised before the cut is missing.

The product's own store opens each image, on the ordinary file system; what it shows is held against the tape. A script
writes one transaction after another, so there is a line of states that its file goes through, and an image must be
exactly one of them: none older than the last one promised, none newer than the last one begun.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from counterfoil.domain.audit import audit
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.event import EventKind, History, removed_before
from counterfoil.domain.payload import SALT_BYTES
from counterfoil.lab.images.recording import lay
from counterfoil.lab.images.stage import NOON
from counterfoil.lab.images.tape import Acked, Sent, Tape
from counterfoil.lab.run_folder import STORE
from counterfoil.store.sqlite import SqliteStore

LATER = NOON + 10_000.0
"""When images are opened, by the store's clock: after everything a script did."""
BESIDE = """
SELECT n, digest, at, record, policy, hash FROM policy UNION ALL
SELECT n, times, last_at, NULL, NULL, NULL FROM refusal UNION ALL
SELECT id, host, boot, pid, lock_path, lock_inode FROM worker UNION ALL
SELECT (SELECT count(*) FROM operation), (SELECT count(*) FROM event), (SELECT count(*) FROM body), NULL, NULL, NULL
"""
"""What stands beside the histories, and how many rows they must have: an event that belongs to nobody is one more."""

REFUSED, MALFORMED, LOST, HALF, UNSOUND, UNRECORDED, CAME_BACK = (
    "refused", "malformed", "lost", "half_committed", "unsound", "sent_unrecorded", "erased_came_back"
)  # fmt: skip
"""The store does not open it; SQLite finds it broken; something promised is missing; a transaction is there in part;
a receipt contradicts itself; something left that no receipt begins; bytes that were erased are there again."""


class Found(NamedTuple):
    """One violation."""

    kind: str
    detail: str


class Shown(NamedTuple):
    """What a store shows of one image."""

    state: bytes
    """A digest of all its rows."""
    histories: Mapping[str, History]
    problems: tuple[str, ...]
    """What SQLite says of the file; empty where it was not asked."""


def shown(folder: Path, *, whole: bool) -> Shown:
    """Open the receipts file of a folder as the product does, and read everything.

    Args:
        folder: where it stands.
        whole: let SQLite check the whole file too.

    Raises:
        CounterfoilError: the store does not open it.
    """
    store = SqliteStore(folder / STORE, clock=lambda: LATER)
    try:
        histories = {history.operation.id: history for history in store.histories()}
        state = msgspec.msgpack.encode((histories, store.query(BESIDE)))
        said = [str(row[0]) for row in store.query("PRAGMA integrity_check")] if whole else ["ok"]
    finally:
        store.close()
    return Shown(hashlib.sha256(state).digest(), histories, () if said == ["ok"] else tuple(said))


def promises_broken(histories: Mapping[str, History], acked: Sequence[Acked]) -> Iterator[Found]:
    """Every answer's event is there with its own hash, or stands before one that retention left in its place."""
    for each in acked:
        if not each.operation:
            continue
        history = histories.get(each.operation)
        if history is None:
            yield Found(LOST, f"{each.operation} was acknowledged and is not there")
            continue
        stood = {event.seq: event.hash for event in history.events}
        if stood.get(each.seq, each.hash if each.seq <= removed_before(history.events) else b"") != each.hash:
            yield Found(LOST, f"event {each.seq} of {each.operation} was acknowledged and is not there")


def unrecorded(histories: Mapping[str, History], sent: Sequence[Sent]) -> Iterator[Found]:
    """Invariant 1: whatever left had its attempt on record before, and what was recorded is what left."""
    for each in sent:
        history = histories.get(each.operation)
        if history is None:
            yield Found(UNRECORDED, f"{each.operation} was sent and has no receipt")
            continue
        if removed_before(history.events):
            continue  # resolved long ago: what was removed came to what the event in its place says
        begun = [event for event in history.events if event.kind is EventKind.BEGUN]
        if len(begun) < each.number:
            yield Found(UNRECORDED, f"send {each.number} of {each.operation} has no attempt on record")
        frozen = next((event.body for event in history.events), None)
        if frozen is not None and frozen[SALT_BYTES:] != each.payload:
            yield Found(UNRECORDED, f"{each.operation} was sent with another payload than is on record")


def unsound(histories: Mapping[str, History]) -> Iterator[Found]:
    """Every history verifies: its chain, its projection, its decisions."""
    for history in histories.values():
        for violation in audit(history):
            yield Found(UNSOUND, f"{history.operation.id}, event {violation.seq}: {violation.problem}")


class Line:
    """The states that one recorded run's file goes through, and what was promised at each boundary.

    Args:
        tape: the run.
        states: for each boundary, the digest of what a store shows when everything written until then arrived.
    """

    def __init__(self, tape: Tape, states: Sequence[bytes]) -> None:
        self._tape = tape
        order: dict[bytes, int] = {}
        self._latest = [order.setdefault(state, len(order)) for state in states]
        self._order = order
        self._promised = [0] * len(states)
        for each in tape.acked:
            for boundary in range(each.at, len(states)):
                self._promised[boundary] = max(self._promised[boundary], self._latest[each.at])

    def misplaced(self, boundary: int, state: bytes) -> Iterator[Found]:
        """The image is one of the states it may be in."""
        place = self._order.get(state)
        if place is None:
            yield Found(HALF, "it is no state that the file went through")
        elif place < self._promised[boundary]:
            yield Found(LOST, f"it is state {place}, and state {self._promised[boundary]} was acknowledged")
        elif place > self._latest[boundary]:
            yield Found(HALF, f"it is state {place}, and only state {self._latest[boundary]} was written")

    def until(self, boundary: int) -> tuple[list[Acked], list[Sent], list[bytes]]:
        """What was promised, what had left and what had been erased when the power went."""
        tape = self._tape
        return (
            [each for each in tape.acked if each.at <= boundary],
            [each for each in tape.sent if each.at <= boundary],
            [each.secret for each in tape.gone if each.at <= boundary],
        )


def examine(folder: Path, files: Mapping[str, bytes], line: Line, boundary: int, *, whole: bool) -> list[Found]:
    """Hold one image against what was promised.

    Args:
        folder: gets it.
        files: the image.
        line: the run it is of.
        boundary: where the power went.
        whole: let SQLite check the whole file too.
    """
    acked, sent, gone = line.until(boundary)
    found = [Found(CAME_BACK, f"in {name}") for name, content in files.items() for secret in gone if secret in content]
    lay(folder, files)
    try:
        image = shown(folder, whole=whole)
    except CounterfoilError as error:
        return [*found, Found(REFUSED, str(error))]
    except (msgspec.MsgspecError, ValueError) as error:  # a row that no product of ours writes
        return [*found, Found(MALFORMED, f"{type(error).__name__}: {error}")]
    found += [Found(MALFORMED, problem) for problem in image.problems]
    found += promises_broken(image.histories, acked)
    found += unrecorded(image.histories, sent)
    found += unsound(image.histories)
    found += line.misplaced(boundary, image.state)
    return found
