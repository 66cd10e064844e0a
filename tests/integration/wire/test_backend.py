"""The backend is httpcore's own interface: httpcore's own connection runs on it, inside our deadline."""

from __future__ import annotations

import select
import socket
import struct
import time

import httpcore
import pytest
from tests.integration.wire.conversation import MUCH_LATER, PATIENT, SHORT
from tests.integration.wire.servers import CERTIFICATE, Peer, Server, answering

from counterfoil.providers.backend import Backend, Deadline, trusted
from counterfoil.providers.wire import Flight


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_httpcores_connection_runs_on_the_backend(scheme):
    """An independent client reads the same reply through the same streams, and the first write is noted."""
    script, trust = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"), trusted(str(CERTIFICATE))
    with Server(script, scheme=scheme) as server, Backend(Deadline(PATIENT), flight := Flight()) as backend:
        origin = httpcore.URL(server.url()).origin
        with httpcore.HTTPConnection(origin, network_backend=backend, ssl_context=trust) as connection:
            assert connection.request("GET", server.url()).content == b"{}"
    assert flight.may_have_left is True


def test_a_peer_gone_before_the_handshake_leaves_no_socket_open():
    """Whoever reset the connection before it was wrapped: the library's own socket would stay open (a warning here)."""
    with socket.create_server(("127.0.0.1", 0)) as listener, Backend(Deadline(PATIENT), flight := Flight()) as backend:
        stream = backend.connect_tcp(*listener.getsockname())
        other, _ = listener.accept()
        other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        other.close()
        gone = select.poll()
        gone.register(stream.get_extra_info("socket"), select.POLLIN)
        assert gone.poll(PATIENT * 1000)
        with pytest.raises(httpcore.ConnectError, match="tls_failed"):
            stream.start_tls(trusted(str(CERTIFICATE)), server_hostname="localhost")
    assert flight.may_have_left is False


@pytest.mark.slow
def test_a_time_out_per_read_cannot_outlive_the_deadline():
    """However long a single operation may take, all of them together end at the deadline."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(b"HTTP/1.1 200 OK\r\n\r\n")
        peer.drip(b"x" * 100_000)

    begun = time.monotonic()
    with Server(script) as server, Backend(Deadline(SHORT), Flight()) as backend:
        origin = httpcore.URL(server.url()).origin
        with (
            httpcore.HTTPConnection(origin, network_backend=backend) as connection,
            pytest.raises(httpcore.ReadTimeout),
        ):
            connection.request("GET", server.url(), extensions={"timeout": {"read": 3600}})
    assert time.monotonic() - begun < MUCH_LATER


def test_a_deadline_never_moves_away():
    """A longer wish changes nothing, a shorter one counts, and zero has passed."""
    deadline = Deadline(10)
    assert deadline.sooner(None) is deadline
    assert deadline.sooner(3600) is deadline
    assert deadline.sooner(1).left() <= 1
    assert deadline.sooner(-1).left() < 0
    assert Deadline(0).left() <= 0


def test_a_backend_leaves_no_stream_open():
    """Whoever leaves the backend has closed its socket, in whatever way he left."""
    with Server(Peer.hang) as server:
        with Backend(Deadline(PATIENT), Flight()) as backend:
            sock = backend.connect_tcp("127.0.0.1", server.port, local_address="127.0.0.1").get_extra_info("socket")
            assert sock.fileno() >= 0
        assert sock.fileno() == -1
