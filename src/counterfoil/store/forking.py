"""Around a fork nothing is open: every store of this process lets its connections go before, and comes back after.

A child inherits SQLite's table of the locks this process holds, but not the locks: a connection it opened on the
same file would believe itself protected (test_fork_with_open_connection_loses_commits).
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """What has connections open."""

    def before_fork(self) -> None:
        """Wait for whoever uses a connection, keep everybody out and close them all."""
        ...

    def after_in_parent(self) -> None:
        """Let the waiting go on."""
        ...

    def after_in_child(self) -> None:
        """Start anew: the threads that held or awaited anything do not exist here."""
        ...


class Forks:
    """The stores of this process, and what a fork does to them."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        """Held while a store is opened and while a fork happens: no connection is born unseen, and no thread
        closes the descriptor it made a file with while another already relies on locks there."""
        self._live: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self._still: list[Forkable] = []

    def add(self, store: Forkable) -> None:
        """Take a store in; `opening` is held."""
        self._live.add(store)

    def before(self) -> None:
        """Still every store, in one order everywhere: two stores and two forks make no deadlock."""
        self.opening.acquire()
        for store in sorted(self._live, key=id):
            store.before_fork()
            self._still.append(store)  # only these are woken: a store that is made or lost meanwhile is no matter

    def after_in_parent(self) -> None:
        """Wake what was stilled."""
        while self._still:
            self._still.pop().after_in_parent()
        self.opening.release()

    def after_in_child(self) -> None:
        """Begin what was stilled anew."""
        while self._still:
            self._still.pop().after_in_child()
        self.opening = threading.Lock()


FORKS = Forks()
os.register_at_fork(before=FORKS.before, after_in_parent=FORKS.after_in_parent, after_in_child=FORKS.after_in_child)
