"""Tiny servers that misbehave on the loopback: a script per connection, every wait bounded, all threads joined."""

from __future__ import annotations

import atexit
import contextlib
import selectors
import shutil
import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

import trustme

from counterfoil.providers.backend import Secured


def _certificate() -> Path:
    """Make key, certificate and authority of `localhost` and 127.0.0.1 for this run, in one file."""
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-tls-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    path = folder / "loopback.pem"
    parts = (made.private_key_pem, *made.cert_chain_pems, authority.cert_pem)
    path.write_bytes(b"".join(part.bytes() for part in parts))
    return path


CERTIFICATE = _certificate()
"""What the servers show and the tests trust; no key stands in the project."""
PATIENCE_SECONDS = 20.0
"""No socket of these servers waits longer, whatever happens to the test."""
DRIP_SECONDS = 0.05
CHUNK = 64 * 1024


class Seen(NamedTuple):
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """One accepted connection, with the verbs a script is written in."""

    def __init__(self, sock: socket.socket, server: Server) -> None:
        self.sock = sock
        self.server = server

    def head(self) -> Seen:
        """Read a request head byte by byte, so that nothing after it is taken."""
        octets = b""
        while not octets.endswith(b"\r\n\r\n"):
            octet = self.sock.recv(1)
            if not octet:
                raise ConnectionResetError
            octets += octet
        line, *fields = octets.decode("ascii").split("\r\n")
        method, target, _ = line.split(" ")
        pairs = (field.partition(": ") for field in fields if field)
        return Seen(method, target, {name.lower(): value for name, _, value in pairs}, b"")

    def take(self) -> Seen:
        """Read one whole request and count it."""
        seen = self.head()
        body = self.read(int(seen.headers.get("content-length", "0")))
        seen = seen._replace(body=body)
        self.server.requests.append(seen)
        return seen

    def read(self, length: int) -> bytes:
        """Read exactly so much, or fail."""
        octets = bytearray()
        while len(octets) < length:
            part = self.sock.recv(min(CHUNK, length - len(octets)))
            if not part:
                raise ConnectionResetError
            octets += part
        return bytes(octets)

    def say(self, octets: bytes) -> None:
        """Write it all."""
        self.sock.sendall(octets)

    def drip(self, octets: Iterable[int]) -> None:
        """Write one byte at a time with a pause after each, until the server stops or the client is gone."""
        for octet in octets:
            self.say(bytes([octet]))
            if self.server.stopping.wait(DRIP_SECONDS):
                return

    def hang(self) -> None:
        """Say nothing more and keep the connection open until the server stops."""
        self.server.stopping.wait(PATIENCE_SECONDS)

    def reset(self) -> None:
        """Close with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def secure(self) -> None:
        """Answer a TLS handshake."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sslsocket_class = Secured
        context.load_cert_chain(CERTIFICATE)
        self.sock = context.wrap_socket(self.sock, server_side=True, suppress_ragged_eofs=False)


Script = Callable[[Peer], None]


class Server:
    """A listener on the loopback that runs the script for every connection, each in a thread of its own."""

    def __init__(self, script: Script, *, scheme: str = "http", receive_buffer: int | None = None) -> None:
        self.script = script
        self.scheme = scheme
        self.requests: list[Seen] = []
        self.connections = 0
        self.faults: list[BaseException] = []
        self.stopping = threading.Event()
        self._listener = socket.socket()
        if receive_buffer is not None:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self._listener.settimeout(DRIP_SECONDS)
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]

    def url(self, path: str = "/effects", host: str = "127.0.0.1") -> str:
        """Where it listens."""
        return f"{self.scheme}://{host}:{self.port}{path}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert self.faults == [], "a script failed"

    def stop(self) -> None:
        """End every script and wait for it; a second call changes nothing."""
        self.stopping.set()
        with contextlib.suppress(OSError):  # wakes the accept where the system allows it; elsewhere its time-out does
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            with contextlib.suppress(OSError):
                sock, _ = self._listener.accept()
                self.connections += 1
                thread = threading.Thread(target=self._serve, args=(sock,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE_SECONDS)
        # What was said is on its way at once: a reset must not overtake it inside this very kernel.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(sock, self)
        try:
            if self.scheme == "https":
                peer.secure()
            self.script(peer)
        except OSError:
            pass  # the client went away, which is what many tests are about
        except BaseException as fault:  # noqa: BLE001 - raised again, as a failure, when the server is left
            self.faults.append(fault)
        finally:
            peer.sock.close()


def answering(octets: bytes) -> Script:
    """A script that reads a whole request, writes these bytes and closes in order."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(octets)

    return script


def proxying(answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n", *, tunnel: bool = True) -> Script:
    """A script that answers one CONNECT, and then carries bytes both ways if it is asked to."""

    def script(peer: Peer) -> None:
        seen = peer.head()
        peer.server.requests.append(seen)
        peer.say(answer)
        if tunnel:
            host, _, port = seen.target.rpartition(":")
            with socket.create_connection((host, int(port)), PATIENCE_SECONDS) as onward:
                _carry(peer.sock, onward, peer.server.stopping)

    return script


def _carry(left: socket.socket, right: socket.socket, stopping: threading.Event) -> None:
    other = {left: right, right: left}
    with selectors.DefaultSelector() as selector:
        for sock in other:
            selector.register(sock, selectors.EVENT_READ)
        while not stopping.is_set():
            for key, _ in selector.select(DRIP_SECONDS):
                octets = key.fileobj.recv(CHUNK)
                if not octets:
                    return
                other[key.fileobj].sendall(octets)


@contextlib.contextmanager
def full_backlog() -> Iterator[int]:
    """A port on which connecting neither succeeds nor fails: its queue is full and nobody accepts."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield listener.getsockname()[1]


@contextlib.contextmanager
def dead_port() -> Iterator[int]:
    """A port that refuses: bound, so that nobody else gets it, and never listening."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
