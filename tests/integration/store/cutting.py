"""A wire from a store to its database that is cut at one statement: before the server has it, or after it answered."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import quote

CHUNK = 1 << 16
READY = b"Z\x00\x00\x00\x05"
"""PostgreSQL's ReadyForQuery: whatever was asked before it is decided."""


class Cut(NamedTuple):
    """At which bytes of the client's the wire is cut, and whether the server still gets them."""

    at: bytes
    delivered: bool


class Wire:
    """Forwards every connection; `cut` is set for the next statement it is to happen at, and is None once it has."""

    def __init__(self, server: Path, port: int = 0) -> None:
        self._folder = server
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = self._listening.getsockname()[1]
        self.cut: Cut | None = None
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._threads[0].join()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()

    def through(self, book: str) -> str:
        """The URL of a book of the server's, by way of this wire."""
        by_socket = f"host={quote(str(self._folder), safe='')}"
        assert by_socket in book
        return book.replace(by_socket, f"host=127.0.0.1&port={self.port}")

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._folder / ".s.PGSQL.5432"))
                self._open += [client, server]
                thread = threading.Thread(target=self._forward, args=(client, server))
                self._threads.append(thread)
                thread.start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, contextlib.suppress(OSError):
            for source, said in self._heard(client, server):
                if source is server:
                    client.sendall(said)
                    continue
                cut = self.cut
                if cut is not None and cut.at in said:
                    self.cut = None
                    if cut.delivered:
                        server.sendall(said)
                        self._answered(client, server)
                    return
                server.sendall(said)

    @staticmethod
    def _heard(client: socket.socket, server: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
        while True:
            for source in select.select([client, server], [], [])[0]:
                said = source.recv(CHUNK)
                if not said:
                    return
                yield source, said

    def _answered(self, client: socket.socket, server: socket.socket) -> None:
        """Let the rest of the question through, and none of the answer."""
        heard = b""
        for source, said in self._heard(client, server):
            if source is client:
                server.sendall(said)
            else:
                heard += said
            if READY in heard:
                return
