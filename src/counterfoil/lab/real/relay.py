"""A TCP relay before any server: it sees a client finish its write, and the answer to that meets its fate."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, Self

from counterfoil.lab.journal import Journal

CHUNK = 64 * 1024
TICK_SECONDS = 0.02
"""How soon the relay notices that it is over, and asks again whether the server has committed."""
COMMIT_SECONDS = 15.0
"""How long a server may take to do what it was asked; hundreds of times what any of them needs."""
JOIN_SECONDS = 5.0


class Fate(StrEnum):
    """What becomes of the answer to the first write."""

    LOST = "lost"
    """The server has committed; its answer is dropped and the connection reset."""
    LATE = "late"
    """It is held back until its client has given up, and then passed on."""
    KILLED = "killed"
    """It is held back for ever: the client is killed meanwhile."""


class Place(NamedTuple):
    """Where a server listens: a host and a port, or a socket's path."""

    host: str
    port: int = 0

    def dial(self) -> socket.socket:
        """Connect to it."""
        if self.port:
            return socket.create_connection((self.host, self.port))
        made = socket.socket(socket.AF_UNIX)
        made.connect(self.host)
        return made


class Relay:
    """Carries bytes both ways, each connection in a thread of its own.

    Args:
        place: the real server.
        finishing: the bytes by which a client finishes a write: each time they pass is one send.
        fate: of the first of them.
        committed: asks the server itself whether it has done what it was asked.
        hold_seconds: how long a late answer is late.
        wire: where each send is written before it is passed on.
    """

    def __init__(
        self,
        place: Place,
        *,
        finishing: bytes,
        fate: Fate,
        committed: Callable[[], bool],
        hold_seconds: float,
        wire: Journal,
    ) -> None:
        self._place, self._finishing, self._fate = place, finishing, fate
        self._committed, self._hold_seconds, self._wire = committed, hold_seconds, wire
        self._over, self._guard = threading.Event(), threading.Lock()
        self.sent = 0
        """How many writes were finished."""
        self.answered = threading.Event()
        """The server has done what the first asked for, and answered."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), self._place.dial() as server:
            self._carry(client, server)

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        tail, doomed = b"", False
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ)
            selector.register(server, selectors.EVENT_READ)
            while not self._over.is_set():
                for key, _ in selector.select(TICK_SECONDS):
                    octets = key.fileobj.recv(CHUNK)  # type: ignore[union-attr]
                    if key.fileobj is client:
                        seen = tail + octets
                        if self._finishing in seen and octets:
                            doomed, seen = self._send() or doomed, b""
                        tail = seen[-len(self._finishing) :]
                    elif doomed and octets:
                        self._befall(client, octets)
                        return
                    if not octets:
                        return
                    (server if key.fileobj is client else client).sendall(octets)

    def _send(self) -> bool:
        """Count one send, durably, before it is passed on; True for the first."""
        with self._guard:
            self.sent += 1
            # What passes has no name that every protocol would show: it is counted, and joined to no receipt.
            self._wire.append({"act": "send", "number": self.sent, "at": time.time(), "whole": False})
            return self.sent == 1

    def _befall(self, client: socket.socket, octets: bytes) -> None:
        """Wait until the server has committed, then let its answer meet its fate."""
        until = time.monotonic() + COMMIT_SECONDS
        while not self._committed() and time.monotonic() < until:
            self._over.wait(TICK_SECONDS)
        self.answered.set()
        if self._fate is Fate.LOST:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        self._over.wait(self._hold_seconds if self._fate is Fate.LATE else None)
        if self._fate is Fate.LATE:
            client.sendall(octets)
