"""The durable store: one answer per command, and the answer is given after the commit."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from counterfoil.domain.command import Adopt, Command, Reply
from counterfoil.domain.event import History
from counterfoil.domain.operation import Operation
from counterfoil.domain.steady import Steady

if TYPE_CHECKING:
    from counterfoil.domain.policy import OnRecord


class Found(Protocol):
    """What one statement found or did."""

    @property
    def rowcount(self) -> int:
        """How many rows a writing statement wrote."""
        ...

    def fetchone(self) -> Any:  # noqa: ANN401 - a row is what its statement selects
        """Read the next row; None where there is none."""
        ...

    def fetchall(self) -> list[Any]:
        """Read the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Runs(Protocol):
    """What runs statements: a connection or a cursor of either store. Each statement ends the one before.

    Statements are written once for both, with `?` where a value goes. No statement may be left to fail: on PostgreSQL
    a refused one ends its transaction, so that whatever may collide says ON CONFLICT DO NOTHING and is counted.
    """

    def execute(self, statement: str, parameters: Any = (), /) -> Found:  # noqa: ANN401 - whatever can be bound
        """Run one statement."""
        ...


class Row(NamedTuple):
    """One row of an operation, and what can be read of it."""

    n: int
    id: str
    history: History | ValueError
    """With all its events, as they stood at one moment; or what keeps it from being read."""


class Store(Protocol):
    """Where receipts live.

    Every `write` returns only after its transaction is durable, or raises `Unavailable`: then nothing of the
    command is durable, or the command recognises itself when it is written again.
    """

    @property
    def name(self) -> str:
        """What errors and pages call it; no secret of its address is in it."""
        ...

    @property
    def path(self) -> Path | None:
        """The receipts file; None where receipts stand in a database."""
        ...

    def beside(self, tail: str) -> Path:
        """Where this host keeps what belongs to it and cannot stand in it: answers it could not take, and locks."""
        ...

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
        """Read every operation whole, oldest first."""
        ...

    def walk(self) -> Iterator[Row]:
        """Read every operation whole, oldest first, whatever can be read of it: for verification."""
        ...

    def uptime(self) -> Steady:
        """Read the clock that nobody can set, of the machine this process runs on."""
        ...

    def now(self) -> float:
        """The store's clock, in seconds since the epoch."""
        ...

    def keep_time(self, *, within: float) -> None:
        """Keep the time where nothing is written: a restart goes on from at most so many seconds before it."""
        ...

    # -- what waits, and policies --------------------------------------------------------------------------------------

    def holders(self, effect: str) -> list[Operation]:
        """Read the unresolved operations of one effect: what holds the others back."""
        ...

    def waiting(self) -> list[Operation]:
        """Read what waits for people or its caller, or was approved and not sent; none is paged or filtered away."""
        ...

    def pending(self) -> list[Operation]:
        """Read what is unresolved and what waits, as both stood at one moment."""
        ...

    def policy(self) -> tuple[int, bytes] | None:
        """Read the policy in force with its number, or None where none was ever adopted."""
        ...

    def policies(self) -> list[OnRecord]:
        """Read every policy that was ever in force, oldest first."""
        ...

    def adopt(self, command: Adopt) -> Reply:
        """Put a policy in force; whatever this process claims from now on is judged under it."""
        ...

    # -- retention and maintenance -------------------------------------------------------------------------------------

    def aged(self, *, after: int, until: float, limit: int) -> list[Operation]:
        """Read resolved operations with something left to remove, oldest first."""
        ...

    def refusals(self, n: int) -> int:
        """Read how often a call was answered from an operation's receipt, as far as that is counted yet."""
        ...

    def settle_down(self) -> None:
        """Let what was erased leave the store's own log as well, where the store can see to that."""
        ...

    def execute(self, statement: str, parameters: tuple[object, ...] = ()) -> None:
        """Run one small writing statement of its own; never on receipts."""
        ...

    def query(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Run one reading statement."""
        ...

    def lead(self) -> AbstractContextManager[Any]:
        """Own the writing connection for a while: maintenance and measurement, never receipts."""
        ...

    def close(self) -> None:
        """Write what is queued and let the store go."""
        ...
