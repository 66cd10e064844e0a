"""Where the field reports are played: a provider process whose truth is on disk, guarded calls, and what they said."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.client
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import counterfoil
from counterfoil.domain.canonical import canonical
from counterfoil.lab.ground_truth import EFFECTS, WIRE, control
from counterfoil.lab.journal import read
from counterfoil.lab.processes import Child
from counterfoil.lab.provider import ACCOUNT, TOKEN
from counterfoil.runtime.export import document as exported
from counterfoil.store.uptime import uptime

SECONDS = 20.0
"""How long a test waits for anything; whatever it waits for takes milliseconds."""
PAUSE_SECONDS = 0.01
"""Between two glances at a condition."""
SHORT = 0.5
"""A send deadline that is meant to pass."""
SECRET = f"Bearer {TOKEN}"
WHO = {"owner": "payments", "authoriser": "payments-lead"}
POINTER = "/headers/authorization"

BLOCKED = {
    "outcome": "unknown",
    "effect": "may have happened",
    "retry": "blocked",
    "recovery_action": "no_replay",
    "permitted": ["get_outcome", "wait", "ask_operator"],
}
"""What a model is told of an unknown outcome, whole, beside the operation's id."""


class Lab:
    """A real provider process: what it is to do wrong, and what really happened there, from its disk."""

    def __init__(self, child: Child, folder: Path) -> None:
        self.folder, self.port = folder, child.port
        self.url = f"http://127.0.0.1:{child.port}"

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        """One plain request over a connection of its own: a guarded function's, or a stranger's."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with contextlib.closing(connection):
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {"Authorization": SECRET, **headers})
            reply = connection.getresponse()
            return reply.status, reply.read()

    def charge(self, payload: object) -> dict[str, object]:
        """What a guarded function does here: one write that carries the operation's provider key."""
        named = {"X-Client-Reference": counterfoil.provider_key()}
        status, body = self.ask("POST", "/lookup/effects", payload, **named)
        assert status == 201, body
        return {"id": json.loads(body)["id"]}

    def fault(self, behaviour: str, **rule: object) -> None:
        """Put one rule in force, in place of all others."""
        self.faults({"behaviour": behaviour, **rule})

    def faults(self, *rules: dict[str, object]) -> None:
        """Put these rules in force, in place of all others."""
        assert self.ask("POST", "/_lab/faults", list(rules))[0] == 200

    def effects(self, name: object) -> list[dict[str, object]]:
        """What happened under a key or a reference, or with a payload, oldest first."""
        return [e for e in read(self.folder / EFFECTS) if name in (e["key"], e["reference"], e["payload"])]

    def sends(self, name: object) -> int:
        """How many writes arrived under a key or a reference, or with a payload."""
        digest = hashlib.sha256(canonical(name)).hexdigest()
        names = ((e["key"], e["reference"], e["payload_sha256"]) for e in self._wire("send"))
        return sum(name in known or digest in known for known in names)

    def looks(self, name: str) -> int:
        """How many reads asked for a name."""
        return sum(name in e["path"] for e in self._wire("look"))

    def _wire(self, act: str) -> list[dict[str, str]]:
        return [e for e in read(self.folder / WIRE) if e["act"] == act]


def until(true: Callable[[], object], what: str) -> None:
    """Wait for a condition; a test that waits in vain has failed."""
    deadline, pause = time.monotonic() + SECONDS, threading.Event()
    while not true():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {SECONDS:g} seconds for {what}")
        pause.wait(PAUSE_SECONDS)


async def auntil(true: Callable[[], object]) -> None:
    """The same on an event loop, which goes on meanwhile."""
    async with asyncio.timeout(SECONDS):
        while not true():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), PAUSE_SECONDS)


def later(ledger, seconds: float = 60.0) -> None:
    """Let so much time pass by both of the store's clocks: past every deadline of the contracts here."""
    ledger.store._clock = lambda: time.time() + seconds
    ledger.store.uptime = lambda: msgspec.structs.replace(uptime(), seconds=uptime().seconds + seconds)


def guard(ledger, url, contract="lab.key", *, name="pay", **declared):
    """Guard the API at that address; the business id is the payload's `order`."""
    given = {"account": ACCOUNT, "secrets": {POINTER: lambda: SECRET}, "key": _order, **WHO}
    return ledger.http(name, contract=contract, base_url=url, **(given | declared))


def _order(order, **_):
    return order


def document(receipt, *, payload=False) -> dict[str, object]:
    """What would be exported of a receipt."""
    history = receipt._ledger.history(receipt.id)
    return exported(history, outcome=receipt.outcome, payload=payload)


def evidence(receipt) -> list[dict[str, object]]:
    """Every observation on record of a receipt, oldest first."""
    return document(receipt)["evidence"]


def is_unknown(receipt) -> bool:
    """It reads as unknown in every face: the outcome, what a model is told, and to whoever wants the result."""
    assert receipt.outcome.value == "unknown", receipt
    assert receipt.operation.unresolved
    assert receipt.for_model() == {"operation": receipt.id, **BLOCKED}
    with pytest.raises(counterfoil.OutcomeUnknown, match="do not send it again"):
        receipt.expect()
    return True


def is_in_hand(receipt) -> bool:
    """It reads as under way: nothing is known yet, and nothing may be sent."""
    assert receipt.outcome.value == "unobserved", receipt
    told = BLOCKED | {"outcome": "unobserved", "effect": "in progress"}
    assert receipt.for_model() == {"operation": receipt.id, **told}
    return True


def reply(status: int, body: object = None, **headers: str) -> bytes:
    """One whole answer as it stands on the wire, in JSON unless it is bytes already."""
    octets = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"content-length": str(len(octets)), **{name.replace("_", "-"): text for name, text in headers.items()}}
    head = "".join(f"{name}: {text}\r\n" for name, text in lines.items())
    return f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + octets


def done(number: int = 1) -> dict[str, str]:
    """What a laboratory contract takes for success."""
    return {"id": f"ef_{number}", "state": "done"}


def listing(*items: dict[str, object]) -> dict[str, object]:
    """What a laboratory look shows: these items, whole, with the one that is always there."""
    return {"account": ACCOUNT, "complete": True, "items": [control(ACCOUNT), *items]}
