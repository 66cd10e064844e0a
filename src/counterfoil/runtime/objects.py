"""On which receipts a provider's object stands: one pass over what was observed.

No index holds the names of objects: every answered call would pay for it, and few are ever asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from counterfoil.domain.attempt import HAPPENED
from counterfoil.domain.errors import ReceiptBroken
from counterfoil.domain.event import SEQ_MAX, attempts_of
from counterfoil.domain.matching import place_of
from counterfoil.plans.effects import Others
from counterfoil.ports.store import Store

_WITH = f"""SELECT DISTINCT o.id FROM operation o
    JOIN event e ON e.id > o.n * {SEQ_MAX + 1} AND e.id < (o.n + 1) * {SEQ_MAX + 1}
    WHERE o.tenant = ? AND o.action = ? AND e.kind IN ('observed', 'removed') AND """  # noqa: S608 - a number
_NAMES_IT = {True: "instr(e.record, ?) > 0", False: "position(? IN e.record) > 0"}
"""On SQLite, and on PostgreSQL."""


def on_record(store: Store, tenant: str, action: str, external_id: str) -> Iterator[str]:
    """The operations of an action of whose record that name is part; what it is there for is for the caller to read."""
    said = b'"external_id":' + msgspec.json.encode(external_id)
    found = store.query(_WITH + _NAMES_IT[store.path is not None], (tenant, action, said))
    return (str(identifier) for (identifier,) in found)


def others(store: Store, asked: Others) -> tuple[str, ...]:
    """The other operations of the same action and account whose effect that very object is known to be."""
    operation, contract = asked.history.operation, asked.action.contract
    look = contract.looks[asked.look]
    here = place_of(asked.history, contract, look)
    found = []
    for identifier in on_record(store, operation.tenant, operation.action, asked.external_id):
        try:
            history = store.load(identifier)
        except ReceiptBroken:
            continue
        attempts, _ = attempts_of(history.events)
        theirs = any(a.external_id == asked.external_id and a.finding in HAPPENED for a in attempts)
        alike = history.operation.account == operation.account and place_of(history, contract, look) == here
        if identifier != operation.id and theirs and alike:
            found.append(identifier)
    return tuple(found)
