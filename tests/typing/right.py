"""What must pass `mypy --strict`: a guarded function keeps its arguments and comes to return a receipt."""

from __future__ import annotations

import counterfoil

ledger = counterfoil.open("receipts.db")


@ledger.action(owner="payments", authoriser="payments-lead", key=lambda order_id, amount: order_id)
def refund(order_id: str, amount: int) -> dict[str, str]:
    """Refund an order."""
    return {"id": f"{order_id}/{amount}"}


@ledger.action(owner="payments", authoriser="payments-lead", key=lambda order_id, amount: order_id)
async def refund_later(order_id: str, amount: int) -> dict[str, str]:
    """Refund an order, awaited."""
    return {"id": f"{order_id}/{amount}"}


def charge(order_id: str) -> str:
    """Charge an order."""
    return order_id


receipt: counterfoil.Receipt = refund("order-1042", 1500)
keyed: counterfoil.Receipt = refund.with_key("order-1042")("order-1042", 1500)
called: counterfoil.Receipt = ledger.action(charge, owner="payments", authoriser="payments-lead")("order-1042")


async def later() -> counterfoil.Receipt:
    """Await a receipt."""
    return await refund_later("order-1042", 1500)
