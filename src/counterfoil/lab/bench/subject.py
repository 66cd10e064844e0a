"""The subject of the benchmarks: a guarded function of the public API, with a provider that costs nothing."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import counterfoil
from counterfoil.lab.bench.floors import Sample, grow_wal

_MEMO = "m" * 185
_RESULT = {"id": "ch_123", "status": "ok", "echo": "e" * 100}


class Subject:
    """One ledger with one blocking and one async action; a call writes about what the thin floor writes.

    Args:
        store: its file, or the URL of its database.
    """

    def __init__(self, store: str | Path) -> None:
        self.store = store
        self.ledger = counterfoil.open(store, actor="agent:bench")
        declared = {"owner": "payments", "authoriser": "payments-lead", "account": "acct_shop"}

        def named(order_id: str, **_rest: object) -> str:
            return order_id

        @self.ledger.action(effect="refund", key=named, **declared)
        def refund(order_id: str, amount: int, currency: str, memo: str) -> dict[str, str]:  # noqa: ARG001
            return _RESULT

        @self.ledger.action(effect="post", key=named, **declared)
        async def post(order_id: str, amount: int, currency: str, memo: str) -> dict[str, str]:  # noqa: ARG001
            return _RESULT

        @self.ledger.action(effect="refund", name="refund_lost", key=named, **declared)
        def lost(order_id: str, amount: int, currency: str, memo: str) -> dict[str, str]:  # noqa: ARG001
            raise TimeoutError("the answer was lost")

        self._refund, self._post, self._lost = refund, post, lost
        self._numbers = itertools.count(1)

    def call(self) -> Any:
        """One guarded call with a key of its own."""
        return self._refund(self._key(), 1000, "usd", _MEMO)

    def lose(self) -> Any:
        """The same, and the answer is lost: nobody knows what came of it."""
        return self._lost(self._key(), 1000, "usd", _MEMO)

    async def acall(self) -> Any:
        """The same, awaited."""
        return await self._post(self._key(), 1000, "usd", _MEMO)

    def _key(self) -> str:
        return f"order-{next(self._numbers)}-{os.urandom(4).hex()}"

    def warm_up(self, calls: int) -> list[Sample]:
        """Make calls until the file is in its steady state; return what some of them wrote."""
        receipts = [self.call() for _ in range(calls)]
        with self.ledger.store.lead() as db:
            samples = [Sample(db, receipt.operation.n) for receipt in receipts[-64:]]
            grow_wal(db)
        return samples

    def block(self, n: int) -> list[float]:
        """Perform n calls one after another; return their durations in seconds."""
        return _timed(self.call, n)

    def ablock(self, n: int) -> list[float]:
        """The same on an event loop."""

        async def run() -> list[float]:
            durations = []
            for _ in range(n):
                start = time.perf_counter()
                await self.acall()
                durations.append(time.perf_counter() - start)
            return durations

        return asyncio.run(run())

    def tasks(self, callers: int, seconds: float) -> float:
        """Drive that many asyncio tasks flat out in one event loop; return calls per second."""
        return asyncio.run(self._tasks(callers, seconds))

    async def _tasks(self, callers: int, seconds: float) -> float:
        done = 0
        start = time.perf_counter()
        end = start + seconds

        async def caller() -> None:
            nonlocal done
            while time.perf_counter() < end:
                await self.acall()
                done += 1

        await asyncio.gather(*(caller() for _ in range(callers)))
        return done / (time.perf_counter() - start)

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()


def _timed(call: Callable[[], Any], n: int) -> list[float]:
    durations = []
    for _ in range(n):
        start = time.perf_counter()
        call()
        durations.append(time.perf_counter() - start)
    return durations
