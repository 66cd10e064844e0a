"""What an idempotency key means at the laboratory's provider: first request wins, its reply is repeated."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from counterfoil.lab.ground_truth import Effect, Request


class Repeat(StrEnum):
    """Why a request with a known key performs nothing."""

    REUSED = "key_reused"
    IN_USE = "key_in_use"


@dataclass(slots=True)
class _Entry:
    """One key: the body it is bound to, since when, and what came of it."""

    sha256: str
    at: float
    effect: Effect | None = None
    """None while the first request is in flight."""


class KeyRegister:
    """Which keys are bound to which body; safe to use from any thread.

    Args:
        effects: what happened before this process, so that a restart forgets no key.
        retention: seconds after which a key is forgotten and its next request is a new one; None keeps it for ever.
    """

    def __init__(self, effects: Iterable[Effect], *, retention: float | None = None) -> None:
        self._retention = retention
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], _Entry] = {}
        for effect in effects:
            if effect.kind == "key" and effect.key is not None:
                self._remember(effect)

    def begin(self, request: Request) -> Repeat | Effect | None:
        """Bind a key to a body, or say what it is bound to already.

        Returns:
            None when this request is the first and must `finish` or `abandon`; the first request's effect when the
            body is the same; otherwise why nothing may happen.
        """
        name = (request.account, request.key or "")
        with self._lock:
            entry = self._entries.get(name)
            if entry is None or self._forgotten(entry, time.time()):
                self._entries[name] = _Entry(request.sha256, time.time())
                return None
            if entry.sha256 != request.sha256:
                return Repeat.REUSED
            return entry.effect or Repeat.IN_USE

    def finish(self, request: Request, effect: Effect) -> None:
        """Save what the first request did; from now on the same request gets the same answer."""
        with self._lock:
            self._entries[request.account, request.key or ""].effect = effect

    def abandon(self, request: Request) -> None:
        """Free a key whose first request did nothing."""
        with self._lock:
            self._entries.pop((request.account, request.key or ""), None)

    def _remember(self, effect: Effect) -> None:
        name = (effect.account, effect.key or "")
        entry = self._entries.get(name)
        if entry is None or self._forgotten(entry, effect.at):
            self._entries[name] = _Entry(effect.payload_sha256, effect.at, effect)

    def _forgotten(self, entry: _Entry, now: float) -> bool:
        # A request still in flight holds its key however long it takes.
        in_flight = entry.effect is None
        return self._retention is not None and not in_flight and now - entry.at >= self._retention
