"""What the workers of a laboratory run are given: contracts, actions under them, and lines of intents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from counterfoil.domain.canonical import canonical
from counterfoil.lab.credential import SECRETS
from counterfoil.lab.provider import ACCOUNT

ACTOR = "agent:support"
OWNER, AUTHORISER = "payments", "payments-lead"


def action(contract: str, port: int, **more: Any) -> dict[str, Any]:
    """The entry of one action in an actions file.

    Args:
        contract: whose copy stands beside the actions file.
        port: where the provider, or what stands before it, listens.
        more: further keys of the entry.
    """
    return {
        "contract": f"{contract}.yaml",
        "base_url": f"http://127.0.0.1:{port}",
        "account": ACCOUNT,
        "secrets": dict(SECRETS),
        "owner": OWNER,
        "authoriser": AUTHORISER,
        **more,
    }


def write_actions(path: Path, actions: Mapping[str, Mapping[str, Any]], *, store: str) -> None:
    """Write an actions file; the store's name is beside it."""
    content = {"store": store, "actor": ACTOR, "actions": actions}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")  # JSON is YAML


def write_intents(path: Path, intents: Iterable[tuple[str, str]]) -> None:
    """Write a file of intents, each an action and the order it is for."""
    lines = ({"action": name, "key": order, "payload": _payload(order)} for name, order in intents)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def digest_of(order: str) -> str:
    """The digest of the bytes by which an order goes over the wire."""
    return hashlib.sha256(canonical(_payload(order))).hexdigest()


def _payload(order: str) -> dict[str, Any]:
    return {"order": order, "amount": 1500}
