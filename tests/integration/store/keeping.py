"""A policy that says how long receipts are kept, and a clock that runs ahead of it."""

from __future__ import annotations

import time

from counterfoil.domain.command import Adopt, Adopted
from counterfoil.domain.event import Decided
from counterfoil.domain.event import encode as encode_record
from counterfoil.domain.policy import Otherwise, Policy, Retention, digest, digest_of, encode

BODIES, RECEIPTS = 100.0, 1_000.0


def policy(*retention: Retention) -> Policy:
    """A policy that allows everything and keeps each class so long."""
    kept = retention or (Retention(sensitivity="ordinary", bodies_seconds=BODIES, receipts_seconds=RECEIPTS),)
    return Policy(name="kept", rules=(), otherwise=Otherwise.ALLOW, retention=kept)


def adopt(store, *retention: Retention) -> str:
    """Put it in force and return its digest."""
    made, seen = policy(*retention), store.policy()
    before = digest_of(seen[1]) if seen else ""
    facts = {"digest": digest(made), "from": before}
    said = Decided(decision="change_policy", by="user:mara", reason="test", facts=facts)
    command = Adopt(
        seen=seen[0] if seen else 0, digest=digest(made), policy=encode(made), record=encode_record(said)
    )  # fmt: skip
    assert isinstance(store.write(command), Adopted)
    return digest(made)


def ahead(store, seconds: float) -> None:
    """Let the store's clock run ahead."""
    clock = store._time if hasattr(store, "_time") else store
    setattr(clock, "clock" if clock is not store else "_clock", lambda: time.time() + seconds)
