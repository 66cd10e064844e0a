"""Refused repetitions, counted: calls that were answered from a receipt instead of being sent."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable

from counterfoil.domain.command import CountRefusals
from counterfoil.domain.errors import CounterfoilError
from counterfoil.ports.store import Store

BATCH_MAX = 256
"""Calls counted before they are written: less than a thousandth of a commit each."""
BATCH_SECONDS = 5.0
"""And no later than this after the first, at the next one: a crash loses at most one batch."""


class Refusals:
    """The counts of one process: in memory, and written in batches. A count never fails or delays an answer for long.

    Args:
        store: where they are added up, over all processes.
        clock: seconds of a clock that never goes back.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._forget()

    def _forget(self) -> None:
        """Start anew, in a forked child too: what the parent counted is the parent's to write."""
        self._pid = os.getpid()
        self._guard, self._writing = threading.Lock(), threading.Lock()
        self._counts: Counter[int] = Counter()
        self._noted, self._since = 0, 0.0
        self._batch: CountRefusals | None = None
        """What is being written; kept as it is until it is known to stand, so that it is counted once."""
        self._at = 0.0

    def note(self, n: int) -> None:
        """Count one call that was answered from operation row `n`, and write the batch when it is time."""
        if self.count(n):
            self.flush()

    async def anote(self, n: int) -> None:
        """The same from an event loop, which does not wait for the disk."""
        if self.count(n):
            import asyncio

            await asyncio.to_thread(self.flush)

    def count(self, n: int) -> bool:
        """Count one call; True when it is time to write."""
        if self._pid != os.getpid():
            self._forget()
        now = self._clock()
        with self._guard:
            self._counts[n] += 1
            if self._noted == 0:
                self._since = now
            self._noted += 1
            due = self._noted >= BATCH_MAX or now - self._since >= BATCH_SECONDS
            if due:  # whoever is told writes it; the next is told after another batch, also where the store is busy
                self._noted = 0
            return due

    def flush(self) -> None:
        """Write what is counted; what the store cannot take now is kept for the next time."""
        if self._pid != os.getpid():
            self._forget()
        with self._writing:
            while self._batch is not None or self._taken():
                batch = self._batch
                assert batch is not None  # noqa: S101 - just taken
                try:
                    self._store.write(batch)
                except CounterfoilError:
                    return
                self._batch = None

    def _taken(self) -> bool:
        """Close a batch, under a time of its own."""
        with self._guard:
            if not self._counts:
                return False
            counts = tuple(sorted(self._counts.items()))
            self._at = max(self._store.now(), math.nextafter(self._at, math.inf))
            self._batch = CountRefusals(counts=counts, at=self._at)
            self._counts, self._noted = Counter(), 0
            return True
