"""The durable store: one answer per command, and the answer is given after the commit."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Protocol

from counterfoil.domain.command import Command, Reply
from counterfoil.domain.event import History
from counterfoil.domain.operation import Operation
from counterfoil.domain.steady import Steady


class Store(Protocol):
    """Where receipts live.

    Every `write` returns only after its transaction is durable, or raises `Unavailable`: then nothing of the
    command is durable, or the command recognises itself when it is written again.
    """

    def write(self, command: Command) -> Reply:
        """Make one command durable and answer it."""
        ...

    def awrite(self, command: Command) -> Awaitable[Reply]:
        """The same from an event loop, which never waits for a lock or a disk; shielded from cancellation."""
        ...

    def find(self, tenant: str, actor: str, action: str, key: str) -> History | None:
        """Read the operation of one key."""
        ...

    def load(self, operation: str) -> History:
        """Read one operation whole; raises `NoSuchOperation`."""
        ...

    def unresolved(self) -> list[Operation]:
        """Read every unresolved operation, oldest first; none is paged or filtered away."""
        ...

    def operations(self, *, limit: int, before: int | None = None) -> list[Operation]:
        """Read operations, newest first, from below row number `before`."""
        ...

    def histories(self) -> Iterator[History]:
        """Read every operation whole, for verification."""
        ...

    def uptime(self) -> Steady:
        """Read the clock that nobody can set, of the machine this process runs on."""
        ...

    def now(self) -> float:
        """The store's clock, in seconds since the epoch."""
        ...
