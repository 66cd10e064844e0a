"""Row 40, for real: an asyncio task is cancelled while its request is on the wire."""

from __future__ import annotations

import asyncio
from pathlib import Path

from counterfoil.lab.matrix.wire import HELD_BACK, api_of, served
from counterfoil.lab.watch import reached
from counterfoil.runtime.ledger import Ledger
from counterfoil.store.sqlite import SqliteStore

SECONDS_MAX = 20.0
"""How long a request or a record may take to come; each takes milliseconds."""


def cancelled_in_flight(kind: str, folder: Path) -> list[str]:
    """Cancel a call once its request has arrived, let the answer come after it, and say what is not as it must be.

    Args:
        kind: of provider: its contract.
        folder: gets the receipts file.
    """
    with served() as server, Ledger(SqliteStore(folder / "cancelled.db"), actor="agent:world") as ledger:
        server.way = HELD_BACK
        order = api_of(ledger, kind, server).order({"amount": 1}, key="order-1")

        async def cancelled() -> str:
            call = asyncio.ensure_future(ledger.acall(order))
            await asyncio.to_thread(server.arrived.wait, SECONDS_MAX)
            call.cancel()
            try:
                await call
            except asyncio.CancelledError:
                then = _outcome(ledger)
                server.released.set()
                await asyncio.to_thread(reached, lambda: _outcome(ledger) != "unknown", SECONDS_MAX)
                return then
            return "swallowed"

        then = asyncio.run(cancelled())
        found = {"after the cancellation": (then, "unknown"), "in the end": (_outcome(ledger), "succeeded")}
        found["on the wire"] = (str(sum(server.written.values())), "1")
    return [f"stands: {when}: {it}, not {must}" for when, (it, must) in found.items() if it != must]


def _outcome(ledger: Ledger) -> str:
    (history,) = ledger.store.histories()
    return history.operation.outcome.value
