"""What the laboratory's provider says, and the many ways in which a connection can fail to carry it."""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus

JSON = "application/json"
HTML = "text/html; charset=utf-8"

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER on, zero seconds: closing sends RST and drops what is unsent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One whole answer before it meets the connection."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> tuple[bytes, bytes]:
        """Return head and body as they go on the wire."""
        named = {
            "Date": formatdate(usegmt=True),
            "Content-Type": self.content_type,
            "Content-Length": str(len(self.body)),
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", *(f"{k}: {v}" for k, v in named.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1"), self.body


def as_json(status: int, content: object, headers: Mapping[str, str] | None = None) -> Reply:
    """Answer with a JSON document."""
    return Reply(status=status, body=json.dumps(content).encode(), headers=headers or {})


def error(status: int, word: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Answer with one word of complaint."""
    return as_json(status, {"error": word}, headers)


def page(status: int) -> Reply:
    """Answer as a proxy in between would: a page for a person, with a status nobody here meant."""
    return Reply(status=status, body=b"<!doctype html><title>One moment</title><p>Please wait.", content_type=HTML)


class Line:
    """The connection one request came over, and everything that can be done to it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.open = True
        """Whether another request may follow."""

    def send(self, reply: Reply) -> None:
        """Send a whole answer in one piece."""
        head, body = reply.encode()
        self._connection.sendall(head + body)

    def send_part(self, reply: Reply, sent: int | None) -> None:
        """Send the head, which promises the whole body, then some of the body, and close.

        Args:
            sent: bytes of the body that still go out; None means half of it.
        """
        head, body = reply.encode()
        self._connection.sendall(head + body[: len(body) // 2 if sent is None else sent])
        self.close()

    def hold(self, seconds: float | None) -> None:
        """Say nothing until the other side leaves or the time is over (None: until the process ends), then close."""
        select.select([self._connection], [], [], seconds)
        self.close()

    def close(self) -> None:
        """End the connection in the ordinary way, with nothing more said."""
        self.open = False

    def reset(self) -> None:
        """Break the connection: the other side sees a reset, not an end."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        # The server would shut the connection down in order before it closes it; a reset must come first.
        self._connection.close()
        self.open = False
