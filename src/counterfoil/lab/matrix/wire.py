"""Row 43, for real: the HTTP adapter before a server on loopback that breaks off, and what it wrote."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from counterfoil import contracts
from counterfoil.lab.replies import RESET_ON_CLOSE
from counterfoil.lab.world.provider import ACCOUNT
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.ledger import Ledger
from counterfoil.store.sqlite import SqliteStore

_POLL_SECONDS = 0.01


class Door(BaseHTTPRequestHandler):
    """Answers one write in the way that is asked for, and counts every one that arrives."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        """Take a write."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.written[self.path] += 1
        _WAYS[self.server.way](self)

    do_PUT = do_POST  # noqa: N815 - the name that the library looks for

    def say(self, status: int, body: bytes, length: int | None = None, **headers: str) -> None:
        """Answer."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def end(self, *, reset: bool = False) -> None:
        """Break off."""
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.connection.close()

    def log_message(self, *_: Any) -> None:
        """Nothing is written to a terminal."""


class Server(ThreadingHTTPServer):
    """Serves each connection in a thread, and breaks off in one way."""

    daemon_threads = True

    def __init__(self) -> None:
        self.written: Counter[str] = Counter()
        self.way = ""
        self.arrived, self.released = threading.Event(), threading.Event()
        super().__init__(("127.0.0.1", 0), Door)

    def handle_error(self, *_: Any) -> None:
        """A connection that was broken off on purpose is no error."""


def _done(door: Door) -> None:
    door.say(201, json.dumps({"id": "ef_1", "state": "done", "account": ACCOUNT}).encode())


def _cut(door: Door) -> None:
    """Promise more than comes."""
    door.say(201, b'{"id":', length=100)
    door.end()


def _kept_alive(door: Door) -> None:
    """Answer the first over a connection that stays open, and drop the second as it arrives."""
    _done(door) if sum(door.server.written.values()) == 1 else door.end()


def _held_back(door: Door) -> None:
    """Answer when somebody says so."""
    door.server.arrived.set()
    door.server.released.wait()
    _done(door)


HELD_BACK = "held back"
_WAYS: Mapping[str, Callable[[Door], None]] = {
    "closed": Door.end,
    "reset": lambda door: door.end(reset=True),
    "cut": _cut,
    "307": lambda door: door.say(307, b"{}", Location="/elsewhere"),
    "308": lambda door: door.say(308, b"{}", Location="/elsewhere"),
    "503": lambda door: door.say(503, b"{}", Retry_After="0"),
    "408": lambda door: door.say(408, b"{}", Connection="close"),
    "kept alive": _kept_alive,
    HELD_BACK: _held_back,
}
"""What makes clients send once more by themselves."""


@contextlib.contextmanager
def served() -> Iterator[Server]:
    """A server that runs while it is needed."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=[_POLL_SECONDS], daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def once_on_the_wire(kind: str, folder: Path) -> list[str]:
    """Call once for each way of breaking off, and say where more or less than one request was written for it.

    Args:
        kind: of provider: its contract.
        folder: gets the receipts files.
    """
    said = []
    with served() as server:
        for way in _WAYS.keys() - {HELD_BACK}:
            server.way, server.written = way, Counter()
            ledger = Ledger(SqliteStore(folder / f"{way}.db".replace(" ", "-")), actor="agent:world")
            with ledger:
                calls, api = 2 if way == "kept alive" else 1, api_of(ledger, kind, server)
                receipts = [api({"amount": n}, key=f"order-{n}") for n in range(calls)]
            written = sum(server.written.values())
            if written != calls or "/elsewhere" in server.written:
                said.append(f"stands: {way}: {written} requests written for {calls} operations")
            if receipts[-1].outcome != "unknown":
                said.append(f"stands: {way}: the outcome is {receipts[-1].outcome}, not unknown")
    return said


def api_of(ledger: Ledger, kind: str, server: Server) -> GuardedHttp:
    """The guarded API of one kind at this server."""
    return ledger.http(
        f"matrix-{kind}", contract=contracts.load(f"lab.{kind}"), base_url=f"http://127.0.0.1:{server.server_port}",
        account=ACCOUNT, owner="payments", authoriser="lea",
        secrets={"/headers/authorization": lambda: "Bearer lab"},
    )  # fmt: skip
