"""Drawing ids and random bytes: the only chance there is in a call."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable

from counterfoil.domain.action import Draw
from counterfoil.domain.identifier import NONCE_BYTES, number, operation_id
from counterfoil.domain.payload import SALT_BYTES

_RANDOM_BYTES = NONCE_BYTES + 2 * SALT_BYTES + 1


class Drawer:
    """Draws for one process: row numbers rise, tokens never repeat.

    Args:
        worker: this process's id among the store's workers.
    """

    def __init__(self, worker: Callable[[], str]) -> None:
        self._worker = worker
        self._tokens = itertools.count(1)
        self._guard = threading.Lock()
        self._last = 0

    def draw(self) -> Draw:
        """Draw everything one call needs."""
        worker = self._worker()
        noise = os.urandom(_RANDOM_BYTES)
        n = self._number(noise[-1])
        nonce = noise[:NONCE_BYTES]
        return Draw(
            n=n,
            id=operation_id(n, nonce),
            worker=worker,
            token=f"{worker}.{next(self._tokens)}",
            salts=noise[NONCE_BYTES:-1],
            jitter=noise[-1] / 255,
        )

    def _number(self, salt: int) -> int:
        with self._guard:
            self._last = n = max(self._last + 1, number(time.time(), salt))
            return n
