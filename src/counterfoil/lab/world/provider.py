"""The providers of a world: what each kind promises, and every way in which it and the wire can fail.

Written from the laboratory's own promises and never read from the contracts that it is judged by.
"""

from __future__ import annotations

import json
from collections.abc import Callable
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
    "foreign", "reset_late", "applied_beyond",
)  # fmt: skip
"""Every fate of a write; the first is the one where nothing goes wrong."""
BEYOND = frozenset({"applied_beyond", "behind"})
"""Fates that break what the deployment assumes: only worlds that say so have them."""
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
        world = self._world
        arrives: Callable[[], Answer] = lambda: self._arrive(wire)  # noqa: E731 - it is handed on
        match fate:
            case "answered" | "foreign":
                if fate == "foreign":
                    self._foreign(wire)
                return arrives()
            case "cut_lost" | "request_lost":
                return Silent(may_have_left=True, reason="reset") if fate == "cut_lost" else None
            case "cut_applied":
                arrives()
                return Silent(may_have_left=True, reason="reset")
            case "reply_lost":
                arrives()
                return None
            case "reply_late":
                world.answered_late(wire, arrives())
                return None
            case "applied_late" | "applied_beyond":
                least, most = (1.0, DELIVERY_SECONDS) if fate == "applied_late" else (2.0, 20.0)
                scale = 1.0 if fate == "applied_late" else DELIVERY_SECONDS
                world.later(wire, world.chance.between("delivery", least, most) * scale, arrives)
                return None
            case "reset_late":  # something on the way gives up waiting, and what it has passed on goes its way
                world.later(wire, world.chance.between("delivery", 1.0, DELIVERY_SECONDS), arrives)
                return Silent(may_have_left=True, reason="reset")
            case "doubled_on_wire":
                world.later(wire, world.chance.between("second copy", 0.0, DELIVERY_SECONDS), arrives)
                return arrives()
            case _:
                return self._answered(fate, wire)

    def _answered(self, fate: str, wire: Wire) -> Answer:
        """Fates that answer something else than the truth, or that decide what happens."""
        world = self._world
        match fate:
            case "refused":
                return _told(422, {"error": "refused"})
            case "throttled":
                return _told(429, {"error": "slow_down"}, wait=30)
            case "busy":
                return _told(409, {"error": "key_in_use"}, wait=2)
            case "error_before":
                return _told(500, {"error": "internal"})
            case "accepted_dropped":
                return _told(202, {"state": "queued"})
            case "accepted_applied":
                world.later(wire, world.chance.between("delivery", 1.0, DELIVERY_SECONDS), lambda: self._arrive(wire))
                return _told(202, {"state": "queued"})
            case "doubled_inside":
                happened = len(world.truth.effects)
                answer = self._arrive(wire)
                if len(world.truth.effects) > happened:  # a repeat that it knows is none of its faults
                    self._apply(wire)
                return answer
        if fate in _PERHAPS and not world.chance.among("applied", (True, False)):
            answer: Answer = _told(500, {"error": "internal"})  # never seen: what is seen says nothing either way
        else:
            answer = self._arrive(wire)
        if fate == "error_replayed" and wire.name in self._keys:
            self._keys[wire.name].answer = _told(500, {"error": "internal"})
        return {
            "truncated": lambda: Replied(status=201, body=b'{"id":', complete=False, reason="cut"),
            "html": lambda: Replied(status=200, body=HTML),
            "not_json": lambda: Replied(status=201, body=b'{"id": "ef'),
            "error_after": lambda: _told(500, {"error": "internal"}),
            "error_replayed": lambda: _told(500, {"error": "internal"}),
            "unavailable_after": lambda: _told(503, {"error": "unavailable"}, wait=5),
        }.get(fate, lambda: answer)()

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

    def _apply(self, wire: Wire) -> Effect:
        world = self._world
        effect = world.happened(wire)
        item = {
            "id": effect.id, "key": wire.name, "reference": wire.name, "account": wire.account, "state": "done",
            "payload": json.loads(wire.payload),
        }  # fmt: skip
        lag = world.chance.between("index", 0.0, LAG_SECONDS) if self.kind == "eventual" else 0.0
        self._items.append((world.stage.now + lag, item))
        return effect

    def _foreign(self, wire: Wire) -> None:
        """Somebody else made something under this very name, before us."""
        item = {"id": "ef_foreign", "account": wire.account, "state": "done", "payload": {"amount": -1}}
        self._items.append((0.0, item | {"key": wire.name, "reference": wire.name}))
        if self.kind in ("key", "natural"):
            self._keys[wire.name] = _Key(self._world.stage.now, "foreign", _told(201, item))

    # -- looking -----------------------------------------------------------------------------------------------------

    def look(self, order: LookOrder) -> tuple[Answer, ...]:
        """Read once, and see what this look's fate lets through."""
        world = self._world
        name = order.names.provider_key
        world.looked(name)
        fate = world.fate("look", self.kind, LOOKS)
        world.pause("look", 0.001, 0.2)
        shown = [item for at, item in self._items if at <= world.stage.now and item["key"] == name]
        known = {"id": "ef_control", "account": order.account, "state": "done", "payload": {}, **_names(CONTROL)}
        match fate:
            case "error":
                return (_told(500, {"error": "internal"}),)
            case "unauthorized":
                return (_told(401, {"error": "unauthorized"}),)
            case "not_found":
                return (_told(404, {"error": "not_found"}),)
            case "html":
                return (Replied(status=200, body=HTML),)
            case "empty":
                return (_listed([]),)
            case "cut":
                return (Replied(status=200, body=b'{"complete": true, "it', complete=False, reason="cut"),)
            case "lost" | "hangs":
                world.pause("look lost", order.deadline_seconds if fate == "hangs" else 0.01)
                return (Silent(may_have_left=True, reason="read_timeout"),)
            case "partial":
                return (_listed([known], complete=False),)
            case "everything":
                names = (name, CONTROL, order.names.negative)
                mine = {"account": order.account, "state": "done", "payload": json.loads(order.payload)}
                return (_listed([{"id": f"ef_lie_{n}", **mine, **_names(one)} for n, one in enumerate(names)]),)
            case "wrong_account":
                return (_told(200, {"account": OTHER_ACCOUNT, "complete": True, "items": [
                    {**known, "account": OTHER_ACCOUNT}
                ]}),)  # fmt: skip
            case "behind":  # a replica that has seen nothing of ours yet
                return (_listed([known]),)
        return (_listed([*shown, known]),)


def _names(name: str) -> dict[str, str]:
    return {"key": name, "reference": name}


def _told(status: int, body: dict[str, Any], *, wait: int | None = None) -> Replied:
    headers = (("content-type", "application/json"), *((("retry-after", str(wait)),) if wait is not None else ()))
    return Replied(status=status, headers=headers, body=json.dumps(body).encode())


def _done(effect: Effect) -> Replied:
    return _told(201, {"id": effect.id, "state": "done", "account": effect.account})


def _listed(items: list[dict[str, Any]], *, complete: bool = True) -> Replied:
    return _told(200, {"account": ACCOUNT, "complete": complete, "items": items})
