"""A small booking service with a page of documentation, which loses the answer to every second booking it makes.

Nothing but the standard library. Start it, read what it says of itself, then follow docs/tutorial-contract.md::

    python examples/rooms_server.py
    curl http://127.0.0.1:5234/docs

It prints ``ready http://127.0.0.1:5234``, then a line for every booking, and runs until Ctrl+C. Every request but
the one for its documentation needs ``authorization: Bearer demo-token``.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PORT = 5234
DOCUMENTATION = Path(__file__).with_name("rooms_api.md")
TOKEN = "Bearer demo-token"  # noqa: S105 - of a demonstration on the loopback
ROOMS = frozenset({"blue", "green", "red"})
BODY_BYTES_MAX = 65_536

Answer = tuple[int, dict[str, Any]]


class Rooms:
    """Every booking there is, each made at most once for a key.

    Args:
        account: whose bookings these are.
    """

    def __init__(self, account: str = "acct_office") -> None:
        self.account = account
        self.lock = threading.Lock()
        self._bookings: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._bookings)

    def book(self, key: str, asked: dict[str, Any]) -> Answer:
        """Make a booking, or repeat the answer that its key stands for."""
        if not key or set(asked) != {"room", "day"} or asked["room"] not in ROOMS:
            return 400, {"error": "invalid"}
        for booking in self._bookings:
            same = all(booking[name] == value for name, value in asked.items())
            if booking["key"] == key:
                return (201, booking) if same else (422, {"error": "key_reused"})
            if same:
                return 409, {"error": "taken"}
        booking = {"id": f"bk_{len(self) + 1}", "account": self.account, "key": key, **asked, "status": "booked"}
        self._bookings.append(booking)
        return 201, booking

    def under(self, keys: Sequence[str]) -> Answer:
        """List the bookings of some keys, all in one answer."""
        return 200, {"data": [b for b in self._bookings if b["key"] in keys], "has_more": False}


class Handler(BaseHTTPRequestHandler):
    """One request: performed first, and then answered, unless its answer is one that gets lost."""

    server: Server

    def do_GET(self) -> None:
        """Show the documentation, or the bookings that are asked for."""
        url = urlsplit(self.path)
        if url.path == "/docs":
            self._say(200, DOCUMENTATION.read_bytes(), "text/markdown; charset=utf-8")
        elif self._allowed() and url.path == "/v1/bookings":
            with self.server.rooms.lock:
                self._answer(self.server.rooms.under(parse_qs(url.query).get("key", [])))

    def do_POST(self) -> None:
        """Make a booking; of every second one the caller never hears."""
        length = min(int(self.headers.get("content-length") or 0), BODY_BYTES_MAX)
        text = self.rfile.read(length)
        if not self._allowed():
            return
        rooms = self.server.rooms
        with rooms.lock:
            before = len(rooms)
            status, said = rooms.book(self.headers.get("idempotency-key", ""), json.loads(text))
            made = len(rooms)
        lost = made > before and made % 2 == 0
        print(f"{status} {said.get('id', said.get('error'))}{', and its answer is lost' if lost else ''}", flush=True)
        if lost:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self._answer((status, said))

    def _allowed(self) -> bool:
        if self.headers.get("authorization") == TOKEN:
            return True
        self._answer((401, {"error": "unauthorized"}))
        return False

    def _answer(self, answer: Answer) -> None:
        self._say(answer[0], json.dumps(answer[1]).encode(), "application/json")

    def _say(self, status: int, body: bytes, content: str) -> None:
        self.send_response(status)
        self.send_header("content-type", content)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing of requests: standard output is for bookings."""


class Server(ThreadingHTTPServer):
    """The service on one port of the loopback."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.rooms = Rooms()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(prog="rooms_server.py", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT, help=f"where to listen (default {PORT}, 0 picks a free one)")
    with Server(parser.parse_args(arguments).port) as server:
        print(f"ready http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
