"""Real receipts files to read: every outcome once, made by the library in this process and closed again."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import msgspec

import counterfoil
from counterfoil.plans.finding import find
from counterfoil.runtime.resolving import finding_of

SECRET = "card 4242 4242 4242 4242"
"""Stands in every payload: whatever is shown without `--payload` must not hold it."""


class Book:
    """A closed receipts file and the ids of what stands in it, by key.

    Args:
        folder: where `receipts.db` is made.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "receipts.db"
        self.ids: dict[str, str] = {}
        self._happens: Exception | None = None

    def write(self, *cases: str, value: float = 100.0) -> Book:
        """Record one operation per case; its key is the case's name."""
        with counterfoil.open(self.path, actor="agent:test", tenant="shop") as ledger:
            refund = ledger.action(
                self._refund, name="refund", effect="refund", account="acct", owner="payments", authoriser="lead",
                key=lambda order, card: order, value=lambda order, card: value, effect_by=("/order",),
            )  # fmt: skip
            for case in cases:
                getattr(self, f"_{case}")(ledger, refund)
        return self

    def sqlite(self, *statements: str | tuple[str, tuple[object, ...]], guarded: bool = False) -> None:
        """Write to the closed file as whoever owns the disk would: the triggers go first."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            if not guarded:
                db.execute("DROP TRIGGER event_is_final")
                db.execute("DROP TRIGGER event_is_kept")
            for statement in statements:
                db.execute(*((statement,) if isinstance(statement, str) else statement))
            db.commit()

    def _refund(self, order: str, card: str) -> dict[str, str]:
        if self._happens is not None:
            raise self._happens
        return {"id": f"re_{order}", "card": card}

    def _call(self, refund, key, happens=None):
        self._happens = happens
        receipt = refund(key, SECRET)
        self.ids[key] = receipt.id
        return receipt

    def _succeeded(self, _ledger, refund):
        self._call(refund, "succeeded")

    def _large(self, _ledger, refund):
        self._happens = None
        self.ids["large"] = refund("large", "x" * 200_000).id

    def _rejected(self, _ledger, refund):
        self._call(refund, "rejected", counterfoil.Rejected("the card is closed"))

    def _unknown(self, _ledger, refund):
        self._call(refund, "unknown", TimeoutError(SECRET))

    def _not_sent(self, _ledger, refund):
        self._call(refund, "not_sent", counterfoil.NotSent("refused"))

    def _sent_later(self, _ledger, refund):
        self._call(refund, "sent_later", counterfoil.NotSent("refused"))
        self._call(refund, "sent_later")

    def _resolved(self, ledger, refund):
        receipt = self._call(refund, "resolved", TimeoutError())
        # As another version may have taken it: at the door such a text is refused.
        seen = {"refund_id": "re_7", "note": "seen \x1b[31mred\u202e"}
        history = ledger.history(receipt.id)
        found = finding_of(
            history, "succeeded", evidence={"refund_id": "re_7"}, by="user:mara", reason="in the dashboard",
            how="test", attempt=None, contract=refund.action.contract,
        )  # fmt: skip
        found = msgspec.structs.replace(found, result=seen, facts={**found.facts, "evidence": seen})
        contract, seq = refund.action.contract, history.operation.seq
        ledger._carry(lambda draw: find(receipt.id, found, contract, seen=seq, draw=draw))

    def _contradicted(self, ledger, refund):
        receipt = self._call(refund, "contradicted", TimeoutError())
        for outcome in ("rejected", "succeeded"):
            ledger.resolve(receipt.id, outcome, evidence={"ticket": outcome}, by="user:mara", reason="r", how="test")

    def _held(self, ledger, refund):
        self._happens = TimeoutError()
        first = refund("holder", SECRET)
        self.ids["holder"] = first.id
        other = ledger.action(
            self._refund, name="refund_api", effect="refund", account="acct", owner="desk", authoriser="lead",
            key=lambda order, card: f"api-{order}", effect_by=("/order",),
        )  # fmt: skip
        self.ids["held"] = other("holder", SECRET).id
