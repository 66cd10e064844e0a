"""What proves nothing: every silence after the first application byte is `may_have_left`."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from tests.integration.wire.conversation import MUCH_LATER, PATIENT, SHORT, converse, request_to
from tests.integration.wire.servers import Peer, Server, answering, dead_port, proxying

from counterfoil.domain.answer import Silent
from counterfoil.providers.wire import Flight, exchange

LARGE = b"x" * (5 * 1024 * 1024)
SCHEMES = pytest.mark.parametrize("scheme", ["http", "https"])


def perhaps(reason: str) -> Silent:
    """Silence, and the request may have left."""
    return Silent(may_have_left=True, reason=reason)


def take_and(then):
    """A script that reads the whole request, counts it, and goes on."""

    def script(peer: Peer) -> None:
        peer.take()
        then(peer)

    return script


@SCHEMES
@pytest.mark.slow
def test_r1_a_server_that_commits_and_hangs_is_asked_once(scheme):
    """The deadline ends the wait, the answer is unknown, and the server saw one POST."""
    begun = time.monotonic()
    conversation = converse(take_and(Peer.hang), deadline=1.5, scheme=scheme)
    assert time.monotonic() - begun < MUCH_LATER
    assert conversation.answer == perhaps("read_timeout")
    assert [seen.method for seen in conversation.server.requests] == ["POST"]
    assert conversation.server.connections == 1


@SCHEMES
def test_r63_a_close_after_the_whole_body_was_read_is_unknown(scheme):
    """The server read everything, committed and closed without a byte: one request, and nobody knows."""
    conversation = converse(Peer.take, scheme=scheme)
    assert conversation.answer == perhaps("closed")
    assert len(conversation.server.requests) == 1
    assert conversation.server.connections == 1


def test_r63_a_connection_kept_alive_is_not_used_again():
    """A server that offers keep-alive and would drop the second request on that connection gets a new one instead."""

    def script(peer: Peer) -> None:
        peer.take()
        if len(peer.server.requests) == 1:
            peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n")
            peer.take()  # would be the second request; reading it here and closing is the trap

    with Server(script) as server:
        first = exchange(request_to(server.url()), deadline_seconds=PATIENT)
        second = exchange(request_to(server.url()), deadline_seconds=PATIENT)
    assert first.status == 200
    assert second == perhaps("closed")
    assert len(server.requests) == 2
    assert server.connections == 2


def test_r64_a_reset_after_the_whole_body_was_read_is_unknown():
    """A reset does not mean unprocessed: the server had counted the request before it."""
    conversation = converse(take_and(Peer.reset))
    assert conversation.answer == perhaps("reset")
    assert len(conversation.server.requests) == 1
    assert conversation.server.connections == 1


def test_a_reset_in_the_middle_of_the_body_is_unknown():
    """Ten bytes read and then a reset, while megabytes are being written: a partial write is a write."""

    def script(peer: Peer) -> None:
        peer.read(10)
        peer.reset()

    conversation = converse(script, body=LARGE)
    assert conversation.answer == perhaps("reset")
    assert conversation.flight.may_have_left is True
    assert conversation.server.connections == 1


@pytest.mark.slow
def test_r65_a_write_that_stalls_is_unknown():
    """A server that stops reading blocks the body; the deadline ends the write, and its beginning has left."""
    with Server(Peer.hang, receive_buffer=4096) as server:
        begun = time.monotonic()
        answer = exchange(request_to(server.url(), body=LARGE), deadline_seconds=SHORT)
        assert time.monotonic() - begun < MUCH_LATER
    assert answer == perhaps("write_timeout")


GARBAGE = {
    "another protocol": (b"220 smtp.example ESMTP ready\r\n", "garbage"),
    "an HTML page without a head": (b"<html><body>502</body></html>\r\n\r\n", "garbage"),
    "HTTP/2 frames": (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", "garbage"),
    "a status of two digits": (b"HTTP/1.1 20 OK\r\n\r\n", "garbage"),
    "a status of four digits": (b"HTTP/1.1 2000 OK\r\n\r\n", "garbage"),
    "a status below 100": (b"HTTP/1.1 099 Low\r\n\r\n", "garbage"),
    "switching protocols": (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n", "garbage"),
    "blank lines": (b"\r\n\r\n\r\n", "garbage"),
    "a status line cut in its number": (b"HTTP/1.1 20", "head_cut"),
    "a status line cut in its reason": (b"HTTP/1.1 200 O", "head_cut"),
    "a status line cut in its line end": (b"HTTP/1.1 200 OK\r", "head_cut"),
    "only an informational": (b"HTTP/1.1 100 Continue\r\n\r\n", "closed"),
    "an informational and a cut": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 2", "head_cut"),
}


@pytest.mark.parametrize(("octets", "reason"), GARBAGE.values(), ids=GARBAGE)
def test_r65_without_a_whole_status_line_nothing_is_known(octets, reason):
    """Bytes that hold no final status line are silence, whatever else they are."""
    conversation = converse(answering(octets))
    assert conversation.answer == perhaps(reason)
    assert len(conversation.server.requests) == 1
    assert conversation.server.connections == 1


def test_a_reset_inside_the_status_line_is_a_cut():
    """Half a status line and a reset say as little as half a status line and a close."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(b"HTTP/1.1 20")
        peer.reset()

    assert converse(script).answer == perhaps("head_cut")


def test_informational_replies_are_bounded():
    """A server that announces for ever is left after a named number of announcements."""
    flood = b"HTTP/1.1 102 Processing\r\n\r\n" * 1000
    assert converse(answering(flood)).answer == perhaps("informational_flood")


@pytest.mark.slow
def test_a_status_line_that_trickles_for_ever_ends_at_the_deadline():
    """One byte at a time keeps every single read short; the deadline is absolute."""
    begun = time.monotonic()
    conversation = converse(take_and(lambda peer: peer.drip(b"H" * 100_000)), deadline=SHORT)
    assert time.monotonic() - begun < MUCH_LATER
    assert conversation.answer in {perhaps("read_timeout"), perhaps("garbage")}


@pytest.mark.slow
def test_an_informational_reply_that_trickles_ends_at_the_deadline():
    """Announcements that never end are silence at the deadline."""
    head = b"HTTP/1.1 103 Early Hints\r\nlink: " + b"x" * 100_000
    conversation = converse(take_and(lambda peer: peer.drip(head)), deadline=SHORT)
    assert conversation.answer == perhaps("read_timeout")


@SCHEMES
def test_r65_through_a_tunnel_every_silence_is_unknown(scheme):
    """Behind a proxy too: the request was read by the server, and the connection closed."""
    with Server(proxying() if scheme == "https" else Peer.take) as proxy, Server(Peer.take, scheme=scheme) as server:
        answer = exchange(request_to(server.url(), proxy=proxy.url("")), deadline_seconds=PATIENT)
    assert answer == perhaps("closed")
    assert len((server if scheme == "https" else proxy).requests) == 1


def test_to_a_forwarding_proxy_the_first_byte_counts():
    """A plain request goes to the proxy itself: once it was written, the proxy may have passed it on."""
    with dead_port() as port, Server(take_and(Peer.reset)) as proxy:
        flight = Flight()
        request = request_to(f"http://127.0.0.1:{port}/effects?a=1", proxy=proxy.url(""))
        answer = exchange(request, deadline_seconds=PATIENT, flight=flight)
    assert answer == perhaps("reset")
    assert flight.may_have_left is True
    assert proxy.requests[0].target == f"http://127.0.0.1:{port}/effects?a=1"
    assert proxy.requests[0].headers["host"] == f"127.0.0.1:{port}"


@pytest.mark.slow
def test_nothing_leaves_after_the_deadline():
    """What still lies in the kernel's buffer at the deadline is dropped: the late reader meets a reset."""
    ended: list[str] = []

    def script(peer: Peer) -> None:
        peer.read(10)
        peer.server.stopping.wait(MUCH_LATER)  # set once the exchange is over
        try:
            while peer.sock.recv(65536):
                pass
            ended.append("end of file")
        except ConnectionResetError:
            ended.append("reset")

    with Server(script, receive_buffer=4096) as server:
        answer = exchange(request_to(server.url(), body=LARGE), deadline_seconds=SHORT)
    assert answer == perhaps("write_timeout")
    assert ended == ["reset"]


def test_the_kernel_is_told_the_deadline(monkeypatch):
    """Unacknowledged bytes are not repeated beyond the deadline, and small writes are not held back."""
    told: list[tuple[int, int]] = []
    real, ours = socket.socket.setsockopt, threading.get_ident()

    def setsockopt(sock, level, option, value):
        if level == socket.IPPROTO_TCP and threading.get_ident() == ours:
            told.append((option, value))
        return real(sock, level, option, value)

    monkeypatch.setattr(socket.socket, "setsockopt", setsockopt)
    converse(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"))
    assert (socket.TCP_NODELAY, 1) in told
    milliseconds = [value for option, value in told if option == socket.TCP_USER_TIMEOUT]
    assert milliseconds
    assert all(0 < value <= PATIENT * 1000 for value in milliseconds)
