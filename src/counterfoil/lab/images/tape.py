"""A recording: everything that was done to the files of one run, and what was promised meanwhile, in one order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from counterfoil.domain.command import (
    Adopted,
    Amended,
    Claim,
    Claimed,
    Command,
    Counted,
    NewlyHeld,
    NewlyProposed,
    Reply,
    Settle,
    Settled,
)
from counterfoil.domain.event import History
from counterfoil.lab.images.disk import Create, Delete, Operation


class Acked(NamedTuple):
    """The store answered that something is durable."""

    at: int
    """Boundary: how many operations the disk had seen."""
    operation: str = ""
    """Whose; empty where it is of no operation: a policy, a count, a worker's place."""
    seq: int = 0
    """Number of its last event."""
    hash: bytes = b""
    """Of that event."""


class Sent(NamedTuple):
    """A byte may have left."""

    at: int
    operation: str
    """The provider key, which is the operation's id."""
    number: int
    """How many of this operation have left, this one included."""
    payload: bytes


class Gone(NamedTuple):
    """Somebody was told that these bytes are nowhere any more."""

    at: int
    secret: bytes


class Fault:
    """One operation of the system's, or every one from then on, is answered with an error.

    Args:
        codes: SQLite's number of the error, for each act that may fail (as `Watch.refused` names them).
        at: which of these acts fails, from 1.
        lasting: and every later one.
    """

    def __init__(self, codes: Mapping[str, int], at: int, *, lasting: bool) -> None:
        self._codes, self._at, self._lasting = codes, at, lasting
        self._seen = 0
        self.fired = 0
        self.over = False
        """Mended: nothing fails any more."""

    def answers(self, act: str) -> int:
        """The error for one operation; 0 where it succeeds."""
        if self.over or act not in self._codes:
            return 0
        self._seen += 1
        if self._seen < self._at or (self._seen > self._at and not self._lasting):
            return 0
        self.fired += 1
        return self._codes[act]


class Tape:
    """Records one run; it is the `Watch` of that run's folder.

    Args:
        files: what surely stood there at first.
        fault: what fails, if anything does.
    """

    def __init__(self, files: Mapping[str, bytes], fault: Fault | None = None) -> None:
        self.files = dict(files)
        self.operations: list[Operation] = []
        self.acked: list[Acked] = []
        self.sent: list[Sent] = []
        self.gone: list[Gone] = []
        self.ended = ""
        """The error that ended it before its time."""
        self._fault = fault
        self._names = set(files)

    def refused(self, act: str, file: str) -> int:
        """Whether the fault is due."""
        del file
        return 0 if self._fault is None else self._fault.answers(act)

    def done(self, operation: Operation) -> None:
        """Record one operation; opening a file that stands there changes nothing."""
        match operation:
            case Create(name):
                if name in self._names:
                    return
                self._names.add(name)
            case Delete(name):
                self._names.discard(name)
            case _:
                pass
        self.operations.append(operation)

    def answered(self, command: Command, reply: Reply) -> None:
        """Record what the store promised by an answer."""
        at = len(self.operations)
        match reply:
            case Claimed(head=head) if isinstance(command, Claim):
                self.acked.append(Acked(at, command.id, 1, head))
            case Settled(head=head) if isinstance(command, Settle):
                self.acked.append(Acked(at, command.id, command.seq + 1, head))
            case NewlyProposed(history=history) | NewlyHeld(history=history) | Amended(history=history):
                self.acked.append(Acked(at, *_last(history)))
            case Adopted() | Counted():
                self.acked.append(Acked(at))
            case _:
                pass  # nothing new was promised

    def written(self) -> None:
        """Record that a statement of no operation is durable."""
        self.acked.append(Acked(len(self.operations)))

    def left(self, operation: str, payload: bytes) -> None:
        """Record that a send began."""
        number = sum(sent.operation == operation for sent in self.sent) + 1
        self.sent.append(Sent(len(self.operations), operation, number, payload))

    def forgotten(self, secret: bytes) -> None:
        """Record that an erasure was reported as done."""
        self.gone.append(Gone(len(self.operations), secret))


def _last(history: History) -> tuple[str, int, bytes]:
    return history.operation.id, history.operation.seq, history.head
