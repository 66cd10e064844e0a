"""A worker that refunds one order behind a receipt: however often it is killed and started, it sends once.

    .venv/bin/counterfoil-lab certify -- .venv/bin/python examples/certify/guarded.py

Its last word is the outcome; it exits 0 where the refund took place, 1 where nobody knows yet.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import counterfoil

SETTLE_SECONDS = 20
"""How long it waits for an unknown outcome to be settled; a look is due within a second."""


def main() -> int:
    """Live once."""
    told = os.environ
    receipts = Path(told["COUNTERFOIL_LAB_STATE"]) / "receipts.db"
    with counterfoil.open(receipts, actor="worker:refunds", worker=True) as ledger:
        refund = ledger.http(
            "refund",
            contract=str(Path(__file__).with_name("effects.yaml")),
            base_url=told["COUNTERFOIL_LAB_URL"],
            account=told["COUNTERFOIL_LAB_ACCOUNT"],
            secrets={"/headers/authorization": "env:COUNTERFOIL_LAB_AUTHORIZATION"},
            owner="payments",
            authoriser="payments-lead",
            longest_delivery=0.5,
            longest_delivery_by="payments",
            longest_delivery_why="the laboratory's provider applies a request at once",
        )
        order = told["COUNTERFOIL_LAB_KEY"]
        receipt = refund({"order": order, "amount": 1500}, key=order).wait(SETTLE_SECONDS)
    print(receipt.outcome)
    return 0 if receipt.outcome == "succeeded" else 1


if __name__ == "__main__":
    sys.exit(main())
