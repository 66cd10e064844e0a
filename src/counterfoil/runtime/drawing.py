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
        self._pool: list[tuple[bytes, bytes, int]] = []
        """Nonce, salts and jitter of draws to come, cut while they are fetched."""
        _live.add(self)

    def draw(self) -> Draw:
        """Draw everything one call needs."""
        worker = self._worker()
        try:
            nonce, salts, salt = self._pool.pop()
        except IndexError:
            nonce, salts, salt = self._refill()
        with self._guard:
            n = number(time.time(), salt)
            if n <= self._last:
                n = self._last + 1
            self._last = n
        return Draw(
            n=n,
            id=operation_id(n, nonce),
            worker=worker,
            token=f"{worker}.{next(self._tokens)}",
            salts=salts,
            jitter=salt / 255,
        )

    def _refill(self) -> tuple[bytes, bytes, int]:
        """Fill the pool from the system and take one; the pool is dropped in a forked child."""
        fresh = os.urandom(_RANDOM_BYTES * _POOL)
        noises = [fresh[i : i + _RANDOM_BYTES] for i in range(0, len(fresh), _RANDOM_BYTES)]
        draws = [(noise[:NONCE_BYTES], noise[NONCE_BYTES:-1], noise[-1]) for noise in noises]
        mine = draws.pop()
        self._pool.extend(draws)
        return mine

    def forget(self) -> None:
        """In a forked child: what the parent may also draw must not be drawn here."""
        self._guard = threading.Lock()  # another thread may have held it when the fork came
        self._pool.clear()


def _forget() -> None:
    for drawer in _live:
        drawer.forget()


os.register_at_fork(after_in_child=_forget)
