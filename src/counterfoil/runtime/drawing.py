"""Drawing ids and random bytes: the only chance there is in a call."""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable

from counterfoil.domain.action import Draw
from counterfoil.domain.identifier import NONCE_BYTES, number, operation_id
from counterfoil.domain.payload import SALT_BYTES

_RANDOM_BYTES = NONCE_BYTES + 2 * SALT_BYTES + 1


_POOL = 64
"""Draws per system call."""

_live: weakref.WeakSet[Drawer] = weakref.WeakSet()


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
        self._pool: list[bytes] = []
        _live.add(self)

    def draw(self) -> Draw:
        """Draw everything one call needs."""
        worker = self._worker()
        try:
            noise = self._pool.pop()
        except IndexError:
            noise = self._refill()
        salt = noise[-1]
        with self._guard:
            self._last = n = max(self._last + 1, number(time.time(), salt))
        return Draw(
            n=n,
            id=operation_id(n, noise[:NONCE_BYTES]),
            worker=worker,
            token=f"{worker}.{next(self._tokens)}",
            salts=noise[NONCE_BYTES:-1],
            jitter=salt / 255,
        )

    def _refill(self) -> bytes:
        """Fill the pool from the system and take one; the pool is dropped in a forked child."""
        fresh = os.urandom(_RANDOM_BYTES * _POOL)
        noises = [fresh[i : i + _RANDOM_BYTES] for i in range(0, len(fresh), _RANDOM_BYTES)]
        noise = noises.pop()
        self._pool.extend(noises)
        return noise

    def forget(self) -> None:
        """In a forked child: what the parent may also draw must not be drawn here."""
        self._guard = threading.Lock()  # another thread may have held it when the fork came
        self._pool.clear()


def _forget() -> None:
    for drawer in _live:
        drawer.forget()


os.register_at_fork(after_in_child=_forget)
