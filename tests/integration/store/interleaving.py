"""Two sessions whose statements are run one by one, in an order that a test chooses; who waits for a lock, waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from counterfoil.store.postgresql import PostgresStore

if TYPE_CHECKING:
    import psycopg

WAITS = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"


class Actor:
    """One command of one store's, in a thread of its own, that stops before each statement until it is let go.

    Args:
        store: whose writing connection is stepped through.
        act: what is done with it.
    """

    def __init__(self, store: PostgresStore, act: Callable[[PostgresStore], Any]) -> None:
        self._session = store._lines.writing()
        self.pid = self._session.db.info.backend_pid
        self._go, self._stopped = threading.Semaphore(0), threading.Event()
        self.done = self._free = False
        self.reply: Any = None
        for name in ("run", "commit"):
            setattr(self._session, name, self._before(getattr(self._session, name)))
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
            for name in ("run", "commit"):
                delattr(self._session, name)

    def ready(self, observer: psycopg.Connection) -> bool:
        """Whether it stands before a statement; waits until it does, is through, or waits for the other's lock."""
        while not self._stopped.is_set():
            if observer.execute(WAITS, (self.pid,)).fetchone()[0]:
                return False
        return not self.done

    def step(self) -> None:
        """Let one statement go."""
        self._stopped.clear()
        self._go.release()

    def join(self) -> None:
        """Let it go on by itself, wherever it stands, and wait until it is through."""
        self._free = True
        self._go.release()
        self._thread.join()


def played(actors: Sequence[Actor], observer: psycopg.Connection, chosen: Sequence[int]) -> list[int]:
    """Run two actors to their end; return how many could have gone at each step, of whom the chosen one went.

    Args:
        actors: who acts.
        observer: sees who waits for whom.
        chosen: whose turn it is, step by step, among those who can go; after its end the first of them.
    """
    choices: list[int] = []
    try:
        while not all(actor.done for actor in actors):
            able = [actor for actor in actors if actor.ready(observer)]
            if able:  # else a lock was let go, and its waiter is on its way
                turn = chosen[len(choices)] if len(choices) < len(chosen) else 0
                choices.append(len(able))
                able[turn].step()
    finally:
        for actor in actors:
            actor.join()
    return choices


def schedules(play: Callable[[Sequence[int]], list[int]]) -> Iterator[list[int]]:
    """Every schedule there is, depth first; `play` runs one and says how many choices each of its steps had."""
    chosen: list[int] = []
    while True:
        choices = play(chosen)
        whole = chosen + [0] * (len(choices) - len(chosen))
        yield whole
        while whole and whole[-1] + 1 >= choices[len(whole) - 1]:
            whole.pop()
        if not whole:
            return
        chosen = [*whole[:-1], whole[-1] + 1]
