"""What the laboratory's provider really did, kept outside the system under test.

`effects.jsonl` has one line per applied effect and `wire.jsonl` one per request received. Both are on disk before the
answer is, and a provider that is started again in the same folder knows all of it.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from counterfoil.lab.journal import Journal

EFFECTS = "effects.jsonl"
WIRE = "wire.jsonl"

CONTROL = "control"
"""The reference and key of the one item every account has from the beginning: a look's positive control."""

CONTROL_ID = "ef_control"

_ID_BYTES = 8  # 64 random bits: no two effects of a laboratory share a name


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One write as it arrived: what was asked, by whom, in which exact bytes."""

    kind: str
    """The route: key, lookup or nothing."""
    key: str | None
    reference: str | None
    account: str
    body: bytes
    payload: Any

    @property
    def sha256(self) -> str:
        """The digest of the exact body bytes."""
        return hashlib.sha256(self.body).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One thing that really happened, once."""

    at: float
    """Seconds since the epoch, this host's wall clock."""
    seq: int
    kind: str
    id: str
    key: str | None
    reference: str | None
    account: str
    payload_sha256: str
    payload: Any

    def item(self) -> dict[str, Any]:
        """Describe the effect as a look returns it."""
        return item(self.id, self.account, key=self.key, reference=self.reference, payload=self.payload)


def item(
    name: str, account: str, *, key: str | None = None, reference: str | None = None, payload: object = None
) -> dict[str, Any]:
    """Describe one stored thing as every look returns it."""
    return {
        "id": name,
        "key": key,
        "reference": reference,
        "account": account,
        "state": "done",
        "payload": {} if payload is None else payload,
    }


def control(account: str) -> dict[str, Any]:
    """Describe the permanent known item of an account."""
    return item(CONTROL_ID, account, key=CONTROL, reference=CONTROL)


class GroundTruth:
    """Every effect and every request, durable before anybody is told; safe to use from any thread.

    Args:
        folder: where the two journals stand; made when missing.
        index_lag: seconds for which a new effect cannot be found by key, by reference or in a list.
    """

    def __init__(self, folder: Path, *, index_lag: float = 0.0) -> None:
        self._index_lag = index_lag
        self._lock = threading.Lock()
        self._journal = Journal(folder / EFFECTS)
        self._wire = Journal(folder / WIRE)
        self._effects: list[Effect] = [Effect(**entry) for entry in self._journal.entries()]
        self._by_id = {effect.id: effect for effect in self._effects}
        self._acts = {"send": 0, "look": 0}
        for entry in self._wire.entries():
            self._acts[entry["act"]] += 1

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Everything that happened, oldest first."""
        return tuple(self._effects)

    def received(self, act: str, entry: Mapping[str, Any]) -> None:
        """Write down that a request arrived, whatever becomes of it.

        Args:
            act: `send` or `look`.
            entry: method, path, key, reference, payload_sha256, bytes of the body and whether the request was whole.
        """
        self._wire.append({"at": time.time(), "act": act, **entry})
        with self._lock:
            self._acts[act] += 1

    def apply(self, request: Request) -> Effect:
        """Make one effect happen: it is on disk when this returns, and did not happen when this raises."""
        with self._lock:
            effect = Effect(
                at=time.time(),
                seq=len(self._effects) + 1,
                kind=request.kind,
                id=f"ef_{secrets.token_hex(_ID_BYTES)}",
                key=request.key,
                reference=request.reference,
                account=request.account,
                payload_sha256=request.sha256,
                payload=request.payload,
            )
            self._journal.append(asdict(effect))
            self._effects.append(effect)
            self._by_id[effect.id] = effect
        return effect

    def find(self, field: str, names: Iterable[str], account: str) -> list[dict[str, Any]]:
        """Return what stands under these keys or references, old enough to be indexed.

        Args:
            field: `key` or `reference`.
            names: what to look for.
            account: whose things are visible.
        """
        wanted = frozenset(names)
        known = [control(account)] if CONTROL in wanted else []
        return known + [
            effect.item() for effect in self._indexed(account) if getattr(effect, field) in wanted - {CONTROL}
        ]

    def by_id(self, name: str, account: str) -> dict[str, Any] | None:
        """Return one thing by its own id: a strong read, never late."""
        if name == CONTROL_ID:
            return control(account)
        effect = self._by_id.get(name)
        return effect.item() if effect is not None and effect.account == account else None

    def newest(self, limit: int, account: str) -> tuple[list[dict[str, Any]], bool]:
        """Return the newest things first, and whether that was all there is."""
        listed = [effect.item() for effect in reversed(self._indexed(account))] + [control(account)]
        return listed[:limit], len(listed) <= limit

    def counts(self) -> dict[str, Any]:
        """Count what happened and what arrived."""
        by_kind: dict[str, int] = {}
        for effect in self.effects:
            by_kind[effect.kind] = by_kind.get(effect.kind, 0) + 1
        return {
            "effects": len(self._effects),
            "by_kind": by_kind,
            "sends": self._acts["send"],
            "looks": self._acts["look"],
        }

    def close(self) -> None:
        """Let another process keep the truth of this folder."""
        self._journal.close()
        self._wire.close()

    def _indexed(self, account: str) -> list[Effect]:
        horizon = time.time() - self._index_lag
        mine = [effect for effect in self.effects if effect.account == account]
        return [effect for effect in mine if effect.at <= horizon] if self._index_lag else mine
