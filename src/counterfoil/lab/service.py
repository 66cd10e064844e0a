"""What the laboratory's provider offers, without a wire: perform an effect, look for one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.lab.ground_truth import Effect, GroundTruth, Request, item
from counterfoil.lab.key_register import KeyRegister, Repeat
from counterfoil.lab.replies import Reply, as_json, error

KINDS = frozenset({"key", "lookup", "nothing"})
"""The three kinds of provider: one that knows keys, one that can be asked by client reference, one with neither."""

HEARD_MAX = 1000
"""Payloads kept for a look that claims to have found everything; older ones are forgotten."""

LATE_MAX = 1000
"""Effects that may be on their way at once; more would be a run out of hand."""

_LOOK_FIELDS: Mapping[str, str] = {"key": "key", "lookup": "reference"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One question about what stands: by names, by id, or the newest."""

    account: str
    kind: str
    """`key`, `lookup`, `id` or `list`."""
    names: Sequence[str] = ()
    limit: int = 0


class Service:
    """The provider's behaviour when nothing goes wrong; safe to use from any thread."""

    def __init__(self, truth: GroundTruth, *, key_retention: float | None = None) -> None:
        self._truth = truth
        self._keys = KeyRegister(truth.effects, retention=key_retention)
        self._heard: dict[str, Any] = {}
        self._late = 0
        self._lock = threading.Lock()

    @property
    def late(self) -> int:
        """How many effects are still on their way."""
        return self._late

    def heard(self, request: Request) -> None:
        """Remember what was asked for under which name, done or not: a lying look needs a plausible lie."""
        with self._lock:
            for name in (request.key, request.reference):
                if name is not None:
                    self._heard[name] = request.payload
            while len(self._heard) > HEARD_MAX:
                del self._heard[next(iter(self._heard))]

    def perform(self, request: Request, *, delay: float = 0.0, copies: int = 1) -> Reply:
        """Perform a request as its route promises and return the answer.

        Args:
            delay: seconds before the effect, with the key already taken.
            copies: how many effects this one request has; more than one is the provider's own fault.
        """
        begun = self._keys.begin(request) if request.kind == "key" else None
        if isinstance(begun, Repeat):
            return error(422 if begun is Repeat.REUSED else 409, begun)
        if begun is not None:
            return _done(begun)
        effect: Effect | None = None
        try:
            time.sleep(delay)
            if isinstance(request.payload, dict) and request.payload.get("reject") is True:
                return error(422, "refused")
            effect = self._truth.apply(request)
            for _ in range(copies - 1):
                self._truth.apply(request)
            return _done(effect)
        finally:
            if request.kind == "key":
                self._settle(request, effect)

    def perform_later(self, request: Request, delay: float) -> bool:
        """Perform a request after the answer is due, and say whether there was room for one more of these.

        The key, if any, is taken only then, as by a message that travels for so long. A late effect does not survive
        the process.
        """
        with self._lock:
            if self._late >= LATE_MAX:
                return False
            self._late += 1
        timer = threading.Timer(delay, self._arrive, [request])
        timer.daemon = True
        timer.start()
        return True

    def look(self, look: Look) -> Reply:
        """Answer a question truly."""
        if look.kind == "id":
            found = self._truth.by_id(look.names[0], look.account)
            return error(404, "not_found") if found is None else as_json(200, found)
        if look.kind == "list":
            items, complete = self._truth.newest(look.limit, look.account)
            return listing(look.account, items, complete=complete)
        return listing(look.account, self._truth.find(_LOOK_FIELDS[look.kind], look.names, look.account))

    def lie(self, look: Look) -> Reply:
        """Claim that everything asked for stands there, with the payload it was asked for with."""
        field = _LOOK_FIELDS.get(look.kind, "reference")
        return listing(
            look.account,
            [
                item(f"ef_claimed_{number}", look.account, payload=self._heard.get(name)) | {field: name}
                for number, name in enumerate(look.names)
            ],
        )

    def _arrive(self, request: Request) -> None:
        try:
            self.perform(request)
        finally:
            with self._lock:
                self._late -= 1

    def _settle(self, request: Request, effect: Effect | None) -> None:
        if effect is None:
            self._keys.abandon(request)
        else:
            self._keys.finish(request, effect)


def listing(account: str, items: Iterable[dict[str, Any]], *, complete: bool = True) -> Reply:
    """Answer a look with what was found and whether that is all of it."""
    return as_json(200, {"account": account, "complete": complete, "items": list(items)})


def _done(effect: Effect) -> Reply:
    shown = {"id": effect.id, "state": "done", "account": effect.account}
    return as_json(201, {**shown, "reference": effect.reference, "key": effect.key})
