"""A network backend that ends at one absolute deadline and knows when the first application byte may have left."""

from __future__ import annotations

import contextlib
import math
import queue
import socket
import ssl
import struct
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import httpcore

from counterfoil.providers.deadline import Deadline
from counterfoil.providers.reply import Flight, Reason

ADDRESSES_MAX = 8
"""Addresses of one name that are tried, each with its share of the time, before connecting counts as failed."""
LOOKUPS_MAX = 32
"""Name look-ups that may hang at once in this process: a thread that waits for the resolver cannot be ended."""
LOOKUP_THREAD = "counterfoil-lookup"
CHUNK_BYTES = 64 * 1024
"""What is handed to the kernel at once: the deadline is checked again before each."""

Address = tuple[socket.AddressFamily, tuple[Any, ...]]
SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)  # as httpcore declares it


class Secured(ssl.SSLSocket):
    """A socket under TLS that is closed when its peer was gone before the handshake.

    The library's own is left open then (CPython's `SSLSocket._create`): wrapping has taken the descriptor from the
    plain socket, and fails before anybody holds what it was given to.
    """

    def getpeername(self) -> Any:
        """Answer who is at the other end, and close where there is nobody any more."""
        try:
            return super().getpeername()
        except OSError:
            self.close()
            raise ConnectionResetError from None  # not ENOTCONN, after which wrapping would go on


class Stream(httpcore.NetworkStream):
    """One socket, plain or under TLS, of which every operation ends by the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline, flight: Flight) -> None:
        self._sock = sock
        self._deadline = deadline
        self._flight = flight

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come, at most `max_bytes`; empty only after an orderly end by the peer."""
        if not self._arm(timeout):
            raise httpcore.ReadTimeout(Reason.READ_TIMEOUT)
        return self._receive(max_bytes)

    def has_unread(self) -> bool:
        """Something has come already that nobody read; nothing is waited for, and one byte of it is lost.

        Asking the socket instead would not do: under TLS what has come may be the protocol's own.

        Raises:
            httpcore.ReadError: the peer is gone.
        """
        self._sock.settimeout(0)
        try:
            octets = self._receive(1)
        except httpcore.ReadTimeout:
            return False
        if not octets:
            raise httpcore.ReadError(Reason.CLOSED)
        return True

    def _receive(self, max_bytes: int) -> bytes:
        try:
            return self._sock.recv(max_bytes)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):  # the last two where nothing is waited for
            raise httpcore.ReadTimeout(Reason.READ_TIMEOUT) from None
        except ssl.SSLEOFError:
            # An end without close_notify: RFC 9112 section 9.8 calls what it delimits incomplete.
            raise httpcore.ReadError(Reason.CLOSED) from None
        except OSError as error:
            raise httpcore.ReadError(_how(error)) from None

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Hand over what the effect may come of; before the first byte it is noted that it may have left."""
        if not self._arm(timeout):
            raise httpcore.WriteTimeout(Reason.WRITE_TIMEOUT if self._flight.may_have_left else Reason.DEADLINE)
        # Crash here, or an interrupt between these lines: nothing left, but nobody can prove it.
        self._flight.may_have_left = True
        self._push(buffer, timeout)

    def write_setup(self, buffer: bytes, timeout: float | None) -> None:
        """Hand over bytes of which no effect can come: a CONNECT, or all of a mail but its final dot."""
        self._push(buffer, timeout)

    def _push(self, buffer: bytes, timeout: float | None) -> None:
        rest = memoryview(buffer)
        while rest:
            if not self._arm(timeout):
                raise httpcore.WriteTimeout(Reason.WRITE_TIMEOUT)
            self._bound_kernel()
            try:
                rest = rest[self._sock.send(rest[:CHUNK_BYTES]) :]
            except TimeoutError:
                raise httpcore.WriteTimeout(Reason.WRITE_TIMEOUT) from None
            except OSError as error:
                raise httpcore.WriteError(_how(error)) from None

    def _arm(self, timeout: float | None) -> bool:
        """Give the next operation what remains of the time; False when nothing does."""
        left = self._deadline.sooner(timeout).left()
        if left > 0:
            self._sock.settimeout(left)
        return left > 0

    def _bound_kernel(self) -> None:
        """Let the kernel stop repeating unacknowledged bytes at the deadline, where it can (Linux, RFC 5482)."""
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            milliseconds = max(1, math.ceil(self._deadline.left() * 1000))  # zero would mean the kernel's default
            with contextlib.suppress(OSError):  # after a peer's reset, which the write itself will tell
                self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> Stream:
        """Shake hands within the time that is left and go on under TLS; no application byte leaves before that."""
        deadline = self._deadline.sooner(timeout)
        try:
            self._sock = ssl_context.wrap_socket(
                self._sock,
                server_hostname=server_hostname,
                do_handshake_on_connect=False,
                suppress_ragged_eofs=False,
            )
            left = deadline.left()
            if left <= 0:
                raise TimeoutError
            self._sock.settimeout(left)
            self._sock.do_handshake()
        except TimeoutError:
            raise httpcore.ConnectTimeout(Reason.TLS_TIMEOUT) from None
        except (OSError, ValueError):
            raise httpcore.ConnectError(Reason.TLS_FAILED) from None
        return self

    def close(self) -> None:
        """Close in order: what was written may still be on its way."""
        self._sock.close()

    def abort(self) -> None:
        """Close so that nothing still buffered leaves afterwards; nothing happens to a stream already closed."""
        if self._sock.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        """Answer what httpcore asks its streams."""
        if info == "socket":
            return self._sock
        if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket):
            return self._sock
        return None


class Backend(httpcore.NetworkBackend):
    """Opens the one stream of one exchange, and leaves none open behind it."""

    def __init__(self, deadline: Deadline, flight: Flight) -> None:
        self._deadline = deadline
        self._flight = flight
        self._stream: Stream | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.abort()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> Stream:
        """Connect to the first address of the host that answers; an address is tried once."""
        deadline = self._deadline.sooner(timeout)
        if deadline.left() <= 0:
            raise httpcore.ConnectTimeout(Reason.DEADLINE)
        addresses = _lookup(host, port, deadline)
        fault: httpcore.ConnectError | httpcore.ConnectTimeout = httpcore.ConnectError(Reason.CONNECT_FAILED)
        for tried, address in enumerate(addresses):
            # A share each, so that a black hole among them leaves time for the others.
            sock = _dial(address, deadline.left() / (len(addresses) - tried), local_address)
            if isinstance(sock, socket.socket):
                self._stream = Stream(sock, self._deadline, self._flight)
                for option in socket_options or ():
                    sock.setsockopt(*option)
                return self._stream
            fault = sock
        raise fault


def _dial(
    address: Address, seconds: float, local_address: str | None
) -> socket.socket | httpcore.ConnectError | httpcore.ConnectTimeout:
    """Connect one new socket, or return why not."""
    family, place = address
    if seconds <= 0:
        return httpcore.ConnectTimeout(Reason.CONNECT_TIMEOUT)
    sock, connected = None, False
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        if local_address is not None:
            sock.bind((local_address, 0))
        sock.settimeout(seconds)
        sock.connect(place)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A port nobody listens on can be the very one the kernel lent us: then we would talk to ourselves.
        connected = sock.getsockname() != sock.getpeername()
    except TimeoutError:
        return httpcore.ConnectTimeout(Reason.CONNECT_TIMEOUT)
    except OSError:
        return httpcore.ConnectError(Reason.CONNECT_FAILED)
    finally:
        if sock is not None and not connected:
            sock.close()
    return sock if connected else httpcore.ConnectError(Reason.CONNECT_FAILED)


def _lookup(host: str, port: int, deadline: Deadline) -> list[Address]:
    """Resolve a name in a thread of its own, because the system's resolver takes no deadline."""
    with contextlib.suppress(socket.gaierror):  # an address needs no resolver, and no thread
        return _addresses(host, port, socket.AI_NUMERICHOST)
    answers: queue.SimpleQueue[list[Address]] = queue.SimpleQueue()

    def look() -> None:
        found: list[Address] = []
        with contextlib.suppress(OSError, UnicodeError):
            found = _addresses(host, port, 0)
        answers.put(found)

    if sum(thread.name == LOOKUP_THREAD for thread in threading.enumerate()) >= LOOKUPS_MAX:
        raise httpcore.ConnectError(Reason.DNS_FAILED)
    try:
        threading.Thread(target=look, name=LOOKUP_THREAD, daemon=True).start()
        addresses = answers.get(timeout=max(0.0, deadline.left()))
    except RuntimeError:  # no further thread can be started, at exit for one
        raise httpcore.ConnectError(Reason.DNS_FAILED) from None
    except queue.Empty:
        raise httpcore.ConnectTimeout(Reason.DNS_TIMEOUT) from None
    if not addresses:
        raise httpcore.ConnectError(Reason.DNS_FAILED)
    return addresses


def _addresses(host: str, port: int, flags: int) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, place) for family, _, _, _, place in found[:ADDRESSES_MAX]]


def _how(error: OSError) -> Reason:
    if isinstance(error, ssl.SSLError):
        return Reason.TLS_FAILED
    return Reason.RESET if isinstance(error, (ConnectionResetError, BrokenPipeError)) else Reason.BROKEN


def trusted(
    verify: bool | str,  # noqa: FBT001 - True is the word for the public authorities
    protocols: tuple[str, ...] = ("http/1.1",),
) -> ssl.SSLContext:
    """Make the context that verifies a server, reading no environment: no SSL_CERT_FILE, no SSLKEYLOGFILE.

    Args:
        verify: True for the public certificate authorities, or the path of a file or folder of trusted ones.
        protocols: what is spoken under TLS, by the names of RFC 7301; none is named where there are none.

    Raises:
        ValueError: the trusted certificates cannot be read.
    """
    import certifi

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies certificate and host name, unlike a bare context
    context.sslsocket_class = Secured
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if protocols:
        context.set_alpn_protocols(list(protocols))
    place = Path(certifi.where() if verify is True else str(verify))
    readable = False
    with contextlib.suppress(OSError):
        context.load_verify_locations(**{"capath" if place.is_dir() else "cafile": str(place)})
        readable = True
    if not readable:
        raise ValueError("verify: the trusted certificates cannot be read")
    return context
