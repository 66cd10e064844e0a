"""Writers of a database whose statements are let go one by one, in an order that somebody chooses; who waits, waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from counterfoil.store.postgresql import PostgresStore

if TYPE_CHECKING:
    import psycopg

WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
BY_PID, BY_NAME = WAITS + "pid = %s", WAITS + "application_name = %s"
STATEMENTS = ("run", "commit")
"""What of a session its writer stops before."""


class Actor:
    """One command of one store's, in a thread of its own, that stops before each statement until it is let go.

    Args:
        store: whose writing connection is stepped through.
        act: what is done with it.
        name: of its application, nobody else's; behind a pooler it is told by that, as any process may serve it.
    """

    def __init__(self, store: PostgresStore, act: Callable[[PostgresStore], Any], name: str = "") -> None:
        self._session = store._lines.writing()  # noqa: SLF001 - it is looked into from outside, as a debugger would
        self._waits = (BY_NAME, name) if name else (BY_PID, self._session.db.info.backend_pid)
        self._go, self._stopped = threading.Semaphore(0), threading.Event()
        self.done = self._free = False
        self.reply: Any = None
        for statement in STATEMENTS:
            setattr(self._session, statement, self._before(getattr(self._session, statement)))
        self._thread = threading.Thread(target=self._carry, args=(store, act))
        self._thread.start()

    def _before(self, statement: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any) -> Any:
            self._stopped.set()
            if not self._free:
                self._go.acquire()
            return statement(*arguments)

        return stepped

    def _carry(self, store: PostgresStore, act: Callable[[PostgresStore], Any]) -> None:
        try:
            self.reply = act(store)
        except Exception as error:  # noqa: BLE001 - an answer like any other, for the test to judge
            self.reply = error
        finally:
            self.done = True
            self._stopped.set()
            for statement in STATEMENTS:
                delattr(self._session, statement)

    def ready(self, observer: psycopg.Connection) -> bool:
        """Whether it stands before a statement; waits until it does, is through, or waits for the other's lock."""
        while not self._stopped.is_set():
            if self.waits(observer):
                return False
        return not self.done

    def waits(self, observer: psycopg.Connection) -> bool:
        """Whether it waits for another's lock."""
        asked, who = self._waits
        found = observer.execute(asked, (who,)).fetchone()
        return bool(found and found[0])

    def step(self) -> None:
        """Let one statement go."""
        self._stopped.clear()
        self._go.release()

    def let_go(self) -> None:
        """Let it go on by itself, wherever it stands."""
        self._free = True
        self._go.release()

    def join(self) -> None:
        """The same, and wait until it is through."""
        self.let_go()
        self._thread.join()
