"""idemkit as its README has it for a function: `@idempotent` with the order as key, on PostgreSQL or Redis.

``python on_idemkit.py postgresql URL``, ``python on_idemkit.py redis SOCKET``.
"""

from __future__ import annotations

import asyncio
import sys

import driven
from idemkit import IdempotencyBackend, MethodConfig, PostgresBackend, RedisBackend, idempotent


def backend(store: str, address: str) -> IdempotencyBackend:
    """With its own defaults: a pool of up to twenty connections on PostgreSQL."""
    if store == "redis":
        return RedisBackend.from_url(f"unix://{address}")
    from idemkit.backends.postgres import init_pg

    asyncio.run(init_pg(address))
    return PostgresBackend.from_url(address)


def main() -> None:
    """Serve."""
    answers = driven.own_output()
    config = MethodConfig(key_fields=["order_id"], scope=lambda _: "tenant-1")

    @idempotent(backend=backend(*sys.argv[1:3]), config=config)
    async def refund(*, order_id: str, amount: int, currency: str, memo: str) -> dict[str, str]:  # noqa: ARG001
        return driven.RESULT

    driven.serve(
        "idemkit",
        answers,
        acall=lambda key: refund(order_id=key, amount=driven.AMOUNT, currency=driven.CURRENCY, memo=driven.MEMO),
    )


main()
