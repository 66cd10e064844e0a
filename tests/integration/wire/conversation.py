"""One exchange with one scripted server, and what both sides saw of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.integration.wire.servers import CERTIFICATE, Script, Server

from counterfoil.domain.answer import Replied, Silent
from counterfoil.providers.wire import Flight, WireRequest, exchange

PATIENT = 20.0
"""A deadline no healthy exchange on the loopback comes near."""
SHORT = 0.4
"""A deadline that is meant to pass."""
MUCH_LATER = 10.0
"""Whatever ends at SHORT ends long before this, on the slowest machine."""
BODY = b'{"amount": 10}'


class Conversation(NamedTuple):
    """The answer, the flight record, and the server with its counts."""

    answer: Replied | Silent
    flight: Flight
    server: Server


def request_to(url: str, /, **fields: Any) -> WireRequest:
    """A POST of a small body, unless a field says otherwise."""
    verify = str(CERTIFICATE) if url.startswith("https") else True
    return WireRequest(**{"method": "POST", "url": url, "body": BODY, "verify": verify, **fields})


def converse(script: Script, *, deadline: float = PATIENT, scheme: str = "http", **fields: Any) -> Conversation:
    """Run one exchange against a server of its own; when it returns, the server has stopped and counted."""
    limits = {"limits": fields.pop("limits")} if "limits" in fields else {}
    flight = Flight()
    with Server(script, scheme=scheme) as server:
        request = request_to(server.url(), **fields)
        answer = exchange(request, deadline_seconds=deadline, flight=flight, **limits)
    return Conversation(answer, flight, server)
