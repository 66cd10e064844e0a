"""The providers of a world: what each kind promises, and every way in which it and the wire can fail.

Written from the laboratory's own promises and never read from the contracts that it is judged by.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterfoil.domain.answer import Answer, Replied, Silent
from counterfoil.lab.world.truth import Effect, Wire, sha256

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World
    from counterfoil.ports.provider import Flight, LookOrder, SendOrder

KINDS = ("key", "natural", "lookup", "eventual", "nothing", "one_shot")
"""K, N, LS, LE, 0 and B of the fault matrix."""
ACCOUNT, OTHER_ACCOUNT, CONTROL = "acct_world", "acct_other", "control"
DELIVERY_SECONDS = 60.0
"""What the deployment assumes: a request is applied or dropped within it of its last byte (assumption A3)."""
KEY_SECONDS = 86_400.0
"""How long a key is remembered."""
LAG_SECONDS = 40.0
"""How long the eventual index may lag; no contract says so."""
HTML = b"<!doctype html><title>One moment</title>"

SENDS = (
    "answered", "connect_refused", "tls_failed", "cut_lost", "cut_applied", "request_lost", "reply_lost", "reply_late",
    "applied_late", "truncated", "html", "not_json", "error_after", "error_before", "unavailable_after", "throttled",
    "busy", "refused", "accepted_applied", "accepted_dropped", "error_replayed", "doubled_inside", "doubled_on_wire",
    "doubled_lost", "foreign", "reset_late", "applied_beyond",
)  # fmt: skip
"""Every fate of a write; the first is the one where nothing goes wrong."""
BEYOND = frozenset({"applied_beyond", "behind"})
"""Fates that break what the deployment assumes: only worlds that say so have them."""
_LATER = frozenset({"applied_late", "applied_beyond", "reset_late", "doubled_on_wire", "accepted_applied"})
"""Fates in which something of it is still on its way when an answer comes, or none does."""
_ARRIVES = frozenset({"cut_applied", "reply_lost", "reply_late", "doubled_lost"})
"""Fates in which it is done and not answered."""
_PERHAPS = frozenset({"truncated", "html", "not_json"})
"""Answers of something in between, which says nothing of whether the request was applied."""
LOOKS = (
    "shown", "error", "unauthorized", "html", "empty", "cut", "lost", "partial", "everything", "wrong_account", "hangs",
    "not_found", "behind",
)  # fmt: skip
"""Every fate of a look."""


@dataclass(slots=True)
class _Key:
    """A name that the provider knows: since when, bound to what, and what it answers."""

    at: float
    sha: str
    answer: Answer | None


class Provider:
    """One kind of provider in one world.

    Args:
        world: its clock, its chance and its truth.
        kind: what it promises.
    """

    def __init__(self, world: World, kind: str) -> None:
        self._world, self.kind = world, kind
        self._key_seconds = world.options.key_seconds
        self._keys: dict[str, _Key] = {}
        self._items: list[tuple[float, dict[str, Any]]] = []

    # -- the adapter's part ------------------------------------------------------------------------------------------

    def check(self, order: SendOrder) -> None:
        """Anything can be sent."""

    def form(self, order: SendOrder) -> bytes:
        """What would be written."""
        return order.payload

    def send(self, order: SendOrder, flight: Flight) -> Answer:
        """Write once, and hear what this send's fate lets through."""
        world = self._world
        fate = world.fate("send", self.kind, SENDS)
        started = world.stage.now
        world.pause("connect", 0.001, 0.05 if not world.strikes("slow") else order.deadline_seconds * 1.2)
        if fate in ("connect_refused", "tls_failed"):
            return Silent(may_have_left=False, reason="connect_failed" if fate == "connect_refused" else fate)
        if world.stage.now - started > order.deadline_seconds:  # as the adapters do before the first byte
            return Silent(may_have_left=False, reason="deadline")
        flight.may_have_left = True
        wire = world.wrote(self.kind, order)
        world.point("mid_socket")
        answer = self._travel(fate, wire)
        if answer is None:  # nothing comes: the sender waits for as long as it may
            world.pause("deadline", order.deadline_seconds - (world.stage.now - started))
            return Silent(may_have_left=True, reason="read_timeout")
        world.pause("reply", 0.001, 0.5)
        if world.stage.now - started > order.deadline_seconds:
            return Silent(may_have_left=True, reason="deadline")
        return answer

    def _travel(self, fate: str, wire: Wire) -> Answer | None:
        """What comes back of a request; None where nothing does in time."""
        if fate in _LATER:
            self._later(fate, wire)
        elif fate in _ARRIVES:
            answer = self._doubled(wire) if fate == "doubled_lost" else self._arrive(wire)
            if fate == "reply_late":
                self._world.answered_late(wire, answer)
        match fate:
            case "answered" | "foreign" | "doubled_on_wire":
                if fate == "foreign":
                    self._foreign(wire)
                return self._arrive(wire)
            case "cut_lost" | "cut_applied" | "reset_late":
                return Silent(may_have_left=True, reason="reset")
            case "request_lost" | "reply_lost" | "reply_late" | "doubled_lost" | "applied_late" | "applied_beyond":
                return None
            case _:
                return self._answered(fate, wire)

    def _later(self, fate: str, wire: Wire) -> None:
        """It arrives when its sender may have ceased to wait, or a copy of it does."""
        world = self._world
        least, most = {"applied_beyond": (2.0, 20.0), "doubled_on_wire": (0.0, 1.0)}.get(fate, (1 / 60, 1.0))
        seconds = world.chance.between("delivery", least * DELIVERY_SECONDS, most * DELIVERY_SECONDS)
        world.later(wire, seconds, lambda: self._arrive(wire))

    def _answered(self, fate: str, wire: Wire) -> Answer:
        """Fates that answer something else than the truth, or that decide what happens."""
        if fate in _REFUSALS:
            status, body, wait = _REFUSALS[fate]
            return _told(status, body, wait=wait)
        if fate == "accepted_applied":
            return _told(202, {"state": "queued"})
        if fate == "doubled_inside":
            return self._doubled(wire)
        unseen = fate in _PERHAPS and not self._world.chance.among("applied", (True, False))
        answer = None if unseen else self._arrive(wire)
        if fate == "error_replayed" and wire.name in self._keys:
            self._keys[wire.name].answer = _BROKEN
        return _GARBLED.get(fate) or answer or _BROKEN

    # -- the service's part ------------------------------------------------------------------------------------------

    def _arrive(self, wire: Wire) -> Answer:
        """One request reaches the service."""
        if self.kind not in ("key", "natural"):
            return _done(self._apply(wire))
        now, sha = self._world.stage.now, sha256(wire.payload)
        known = self._keys.get(wire.name)
        if known is not None and self.kind == "key" and now - known.at >= self._key_seconds:
            known = None
            self._world.seen("a key was forgotten")
        if known is None:
            answer = _done(self._apply(wire))
            self._keys[wire.name] = _Key(now, sha, answer)
            return answer
        if self.kind == "natural":
            return _told(412, {"error": "exists"})
        if known.sha != sha:
            return _told(422, {"error": "key_reused"})
        self._world.seen("a repeat was answered from the key")
        return known.answer or _told(409, {"error": "key_in_use"})

    def _doubled(self, wire: Wire) -> Answer:
        """Do it twice of its own accord; a repeat that it knows is none of its faults."""
        happened = len(self._world.truth.effects)
        answer = self._arrive(wire)
        if len(self._world.truth.effects) > happened:
            self._apply(wire)
        return answer

    def _apply(self, wire: Wire) -> Effect:
        world = self._world
        effect = world.happened(wire)
        item = _item(effect.id, wire.account, json.loads(wire.payload), wire.name)
        lag = world.chance.between("index", 0.0, LAG_SECONDS) if self.kind == "eventual" else 0.0
        self._items.append((world.stage.now + lag, item))
        return effect

    def _foreign(self, wire: Wire) -> None:
        """Somebody else made something under this very name, before us."""
        item = _item("ef_foreign", wire.account, {"amount": -1}, wire.name)
        self._items.append((0.0, item))
        if self.kind in ("key", "natural"):
            self._keys[wire.name] = _Key(self._world.stage.now, "foreign", _told(201, item))

    # -- looking -----------------------------------------------------------------------------------------------------

    def look(self, order: LookOrder) -> tuple[Answer, ...]:
        """Read once, and see what this look's fate lets through."""
        world, name = self._world, order.names.provider_key
        world.looked(name)
        fate = world.fate("look", self.kind, LOOKS)
        world.pause("look", 0.001, 0.2)
        if fate in ("lost", "hangs"):
            world.pause("look lost", order.deadline_seconds if fate == "hangs" else 0.01)
            return (Silent(may_have_left=True, reason="read_timeout"),)
        return (_UNHEALTHY.get(fate) or self._list(fate, order),)

    def _list(self, fate: str, order: LookOrder) -> Answer:
        """What a look shows that is answered by a list."""
        name = order.names.provider_key
        shown = [item for at, item in self._items if at <= self._world.stage.now and item["key"] == name]
        known = _item("ef_control", order.account, {}, CONTROL)
        match fate:
            case "empty":
                return _listed([])
            case "partial":
                return _listed([known], complete=False)
            case "behind":  # a replica that has seen nothing of ours yet
                return _listed([known])
            case "everything":
                payload, names = json.loads(order.payload), (name, CONTROL, order.names.negative)
                return _listed([_item(f"ef_lie_{n}", order.account, payload, one) for n, one in enumerate(names)])
            case "wrong_account":
                return _listed([known | {"account": OTHER_ACCOUNT}], account=OTHER_ACCOUNT)
            case _:
                return _listed([*shown, known])


def _item(name: str, account: str, payload: Any, key: str) -> dict[str, Any]:
    return {"id": name, "account": account, "state": "done", "payload": payload, **_names(key)}


def _names(name: str) -> dict[str, str]:
    return {"key": name, "reference": name}


def _told(status: int, body: dict[str, Any], *, wait: int | None = None) -> Replied:
    headers = (("content-type", "application/json"), *((("retry-after", str(wait)),) if wait is not None else ()))
    return Replied(status=status, headers=headers, body=json.dumps(body).encode())


def _done(effect: Effect) -> Replied:
    return _told(201, {"id": effect.id, "state": "done", "account": effect.account})


def _listed(items: list[dict[str, Any]], *, complete: bool = True, account: str = ACCOUNT) -> Replied:
    return _told(200, {"account": account, "complete": complete, "items": items})


_BROKEN = _told(500, {"error": "internal"})
_REFUSALS: Mapping[str, tuple[int, dict[str, Any], int | None]] = {
    "refused": (422, {"error": "refused"}, None),
    "throttled": (429, {"error": "slow_down"}, 30),
    "busy": (409, {"error": "key_in_use"}, 2),
    "error_before": (500, {"error": "internal"}, None),
    "accepted_dropped": (202, {"state": "queued"}, None),
}
"""Fates in which nothing happens, by what is answered."""
_GARBLED: Mapping[str, Answer] = {
    "truncated": Replied(status=201, body=b'{"id":', complete=False, reason="cut"),
    "html": Replied(status=200, body=HTML),
    "not_json": Replied(status=201, body=b'{"id": "ef'),
    "error_after": _BROKEN,
    "error_replayed": _BROKEN,
    "unavailable_after": _told(503, {"error": "unavailable"}, wait=5),
}
"""Fates in which it may have happened, and the answer does not say so."""
_UNHEALTHY: Mapping[str, Answer] = {
    "error": _BROKEN,
    "unauthorized": _told(401, {"error": "unauthorized"}),
    "not_found": _told(404, {"error": "not_found"}),
    "html": Replied(status=200, body=HTML),
    "cut": Replied(status=200, body=b'{"complete": true, "it', complete=False, reason="cut"),
}
"""Looks that show nothing."""
