"""A wire from a store to its database that is cut at one message: before the server has it, or after it answered."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import quote

from counterfoil.lab.framing import Message, Talk, Write

CHUNK = 1 << 16
SOCKET = ".s.PGSQL.5432"


class Mode(StrEnum):
    """How the wire is cut."""

    UNDELIVERED = "undelivered"
    """The server never has the message."""
    UNANSWERED = "unanswered"
    """The server has answered, and the client never hears of it."""
    CLOSED = "closed"
    """The server has the message, and both sides are hung up on at once."""
    STILL = "still"
    """From then on nothing passes any more either way, over no connection, and nobody hangs up."""


class Cut(NamedTuple):
    """At which bytes of the client's the wire is cut, and how."""

    at: bytes
    mode: Mode


class Wire:
    """Forwards every connection; `cut` is set for the next message it is to happen at, and is None once it has.

    Args:
        server: the folder of its socket.
        port: where it listens; 0 takes any.
    """

    def __init__(self, server: Path, port: int = 0) -> None:
        self._folder = server
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = self._listening.getsockname()[1]
        self.cut: Cut | None = None
        self.still = False
        """Whether nothing passes, and nobody hangs up."""
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._threads[0].join()
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()

    def through(self, book: str) -> str:
        """The URL of a book of the server's, by way of this wire."""
        by_socket = f"host={quote(str(self._folder), safe='')}"
        assert by_socket in book  # noqa: S101 - another server's book would be reached beside the wire
        return book.replace(by_socket, f"host=127.0.0.1&port={self.port}")

    # -- what others do with it --------------------------------------------------------------------------------------

    def mode_at(self, talk: Talk, message: Message) -> Mode | None:
        """How the wire is cut at this message; None: it passes."""
        del talk
        cut = self.cut
        if cut is None or cut.at not in message.whole:
            return None
        self.cut = None
        return cut.mode

    def held(self, mode: Mode, backend: int, writes: Sequence[Write]) -> None:
        """The server's side is hung up on, and the client still waits for an answer that never comes.

        Args:
            mode: how it was cut.
            backend: the server's process, which may still be at it.
            writes: what the client had asked for.
        """

    def told(self, durable: list[bytes]) -> None:
        """An answer is about to pass that says that the events of these hashes are durable."""

    # -- forwarding ----------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.add(client)
                thread = threading.Thread(target=self._serve, args=(client,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
                if self.still:
                    _hold(client)
                    return
                server.connect(str(self._folder / SOCKET))
                self._forward(client, server)
        finally:
            self._open.discard(client)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        talk = Talk()
        for source, said in _heard(client, server):
            if self.still:
                _hold(client)
                return
            if source is server:
                durable = talk.answered(said)
                if durable:
                    self.told(durable)
                client.sendall(said)
                continue
            messages = talk.asked(said)
            for message in messages:
                mode = self.mode_at(talk, message)
                if mode is not None:
                    self._cut(mode, talk, itertools.chain([message], messages), client, server)
                    return
                server.sendall(message.whole)

    def _cut(
        self, mode: Mode, talk: Talk, messages: Iterator[Message], client: socket.socket, server: socket.socket
    ) -> None:
        if mode is Mode.STILL:
            self.still = True
            _hold(client)
            return
        writes = talk.writes
        # The server may be gone, as the client may; what is asked of it afterwards says what stands.
        with contextlib.suppress(OSError):
            if mode is not Mode.UNDELIVERED:
                server.sendall(b"".join(message.whole for message in messages))
            if mode is Mode.UNANSWERED:
                _answer(talk, client, server)
        server.close()
        self.held(mode, talk.backend, writes)


def _hold(client: socket.socket) -> None:
    """Until it hangs up."""
    while client.recv(CHUNK):
        pass


def _heard(client: socket.socket, server: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
    while True:
        for source in select.select([client, server], [], [])[0]:
            said = source.recv(CHUNK)
            if not said:
                return
            yield source, said


def _answer(talk: Talk, client: socket.socket, server: socket.socket) -> None:
    """Let the rest of the question through, and none of the answer."""
    heard = talk.readies
    for source, said in _heard(client, server):
        if source is client:
            server.sendall(b"".join(message.whole for message in talk.asked(said)))
        else:
            talk.answered(said)
        if talk.readies > heard:
            return
