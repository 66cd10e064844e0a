"""What proves that not one application byte left: every failure on the way to the server."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from tests.integration.wire.conversation import MUCH_LATER, PATIENT, SHORT, converse, request_to
from tests.integration.wire.servers import (
    CERTIFICATE,
    Peer,
    Server,
    answering,
    dead_port,
    full_backlog,
    proxying,
)

from counterfoil.domain.answer import Replied, Silent
from counterfoil.providers.backend import LOOKUP_THREAD, LOOKUPS_MAX, Backend, Deadline
from counterfoil.providers.wire import Flight, Limits, exchange, trusted

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


def not_sent(reason: str) -> Silent:
    """Silence with the proof that nothing left."""
    return Silent(may_have_left=False, reason=reason)


def test_r65_a_refused_connection_is_not_sent():
    """Nobody listens, so nothing was written."""
    flight = Flight()
    with dead_port() as port:
        answer = exchange(request_to(f"http://127.0.0.1:{port}/"), deadline_seconds=PATIENT, flight=flight)
    assert answer == not_sent("connect_failed")
    assert flight.may_have_left is False


@pytest.mark.slow
def test_r65_a_connection_that_never_stands_is_not_sent():
    """A full backlog neither accepts nor refuses; the deadline ends it with nothing written."""
    begun = time.monotonic()
    with full_backlog() as port:
        answer = exchange(request_to(f"http://127.0.0.1:{port}/"), deadline_seconds=SHORT)
    assert answer == not_sent("connect_timeout")
    assert time.monotonic() - begun < MUCH_LATER


@pytest.mark.slow
def test_the_way_there_has_its_own_limit():
    """A black hole is given up after the set-up limit, however long the reply might have been waited for."""
    begun = time.monotonic()
    with full_backlog() as port:
        request = request_to(f"http://127.0.0.1:{port}/")
        answer = exchange(request, deadline_seconds=3600, limits=Limits(setup_seconds_max=SHORT))
    assert answer == not_sent("connect_timeout")
    assert time.monotonic() - begun < MUCH_LATER


@pytest.mark.parametrize("fault", [socket.gaierror(-2, "unknown"), UnicodeError("label too long")])
def test_a_name_nobody_knows_is_not_sent(monkeypatch, fault):
    """The resolver says no, so there was nobody to write to."""
    real = socket.getaddrinfo

    def resolver(host, *rest, flags=0, **named):
        if flags & socket.AI_NUMERICHOST:
            return real(host, *rest, flags=flags, **named)
        raise fault

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    assert exchange(request_to("http://nowhere.invalid/"), deadline_seconds=PATIENT) == not_sent("dns_failed")


@pytest.mark.slow
def test_a_resolver_that_hangs_is_bounded_by_the_deadline(monkeypatch):
    """The system's resolver takes no deadline, so the wait for it does; the threads it holds up are counted."""
    release, real = threading.Event(), socket.getaddrinfo

    def resolver(host, *rest, flags=0, **named):
        if flags & socket.AI_NUMERICHOST:
            return real(host, *rest, flags=flags, **named)
        release.wait(MUCH_LATER)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    request = request_to("http://slow.invalid/")
    try:
        assert exchange(request, deadline_seconds=SHORT) == not_sent("dns_timeout")
        # Some may be over before they have begun to look: those hold no thread up.
        answers = (exchange(request, deadline_seconds=0.001) for _ in range(8 * LOOKUPS_MAX))
        assert not_sent("dns_failed") in answers
        assert sum(thread.name == LOOKUP_THREAD for thread in threading.enumerate()) == LOOKUPS_MAX
    finally:
        release.set()
        for thread in threading.enumerate():
            if thread.name == LOOKUP_THREAD:
                thread.join(MUCH_LATER)


@pytest.mark.slow
def test_a_black_hole_leaves_time_for_the_next_address(monkeypatch):
    """Each address of a name gets its share of the time, so that the second is reached."""
    with full_backlog() as hole, Server(answering(OK)) as server:
        places = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for port in (hole, server.port)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
        answer = exchange(request_to("http://localhost/"), deadline_seconds=2.0)
    assert isinstance(answer, Replied)
    assert len(server.requests) == 1


def test_a_connection_to_ourselves_is_none(monkeypatch):
    """The kernel may lend us the very port we try to reach, and TCP then connects the socket to itself."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        place = holder.getsockname()
    real = socket.socket.connect

    def connect(sock, address):
        sock.bind(address)
        return real(sock, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    answer = exchange(request_to(f"http://127.0.0.1:{place[1]}/"), deadline_seconds=PATIENT)
    assert answer == not_sent("connect_failed")


def test_r65_tls_against_a_plain_server_is_not_sent():
    """The handshake fails before there is a channel for application bytes."""
    with Server(lambda peer: peer.say(b"220 mail ready\r\n" * 100)) as server:
        request = request_to(f"https://127.0.0.1:{server.port}/")
        answer = exchange(request, deadline_seconds=PATIENT)
    assert answer == not_sent("tls_failed")
    assert server.requests == []


def test_r65_a_certificate_nobody_trusts_is_not_sent():
    """A certificate signed by itself fails under the public authorities, and there is no way to wave it through."""
    conversation = converse(Peer.take, scheme="https", verify=True)
    assert conversation.answer == not_sent("tls_failed")
    assert conversation.server.requests == []


def test_r65_a_certificate_for_another_name_is_not_sent():
    """The name in the URL is the name that must stand in the certificate."""
    with Server(Peer.take, scheme="https") as server:
        request = request_to(f"https://127.0.0.2:{server.port}/", proxy=None)
        with Backend(Deadline(PATIENT), flight := Flight()) as backend:
            stream = backend.connect_tcp("127.0.0.1", server.port)
            with pytest.raises(Exception, match="tls_failed"):
                stream.start_tls(trusted(str(CERTIFICATE)), server_hostname="other.localhost")
    assert flight.may_have_left is False
    assert request.verify == str(CERTIFICATE)


@pytest.mark.slow
def test_r65_a_handshake_that_stalls_is_not_sent():
    """A server that accepts and then says nothing is left at the deadline."""
    with Server(Peer.hang) as server:
        begun = time.monotonic()
        answer = exchange(request_to(f"https://127.0.0.1:{server.port}/"), deadline_seconds=SHORT)
        assert time.monotonic() - begun < MUCH_LATER
    assert answer == not_sent("tls_timeout")


@pytest.mark.slow
def test_a_handshake_that_trickles_is_bounded_by_the_deadline():
    """A record announced at full length and sent byte by byte ends at the deadline, not at a pause between bytes."""
    with Server(lambda peer: peer.drip(b"\x16\x03\x03\x40\x00" + bytes(10_000))) as server:
        begun = time.monotonic()
        answer = exchange(request_to(f"https://127.0.0.1:{server.port}/"), deadline_seconds=SHORT)
        assert time.monotonic() - begun < MUCH_LATER
    assert answer in {not_sent("tls_timeout"), not_sent("tls_failed")}


@pytest.mark.parametrize("seconds", [0, 0.0, -1, float("-inf")])
def test_r19_a_deadline_that_has_passed_sends_nothing(seconds):
    """Zero is a number of seconds, not the absence of a deadline; nothing is even connected."""
    conversation = converse(answering(OK), deadline=seconds)
    assert conversation.answer == not_sent("deadline")
    assert conversation.server.connections == 0


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 10**400, "5", None])
def test_a_deadline_that_is_no_number_sends_nothing(seconds):
    """What bounds nothing is refused before anything is connected."""
    conversation = converse(answering(OK), deadline=seconds)
    assert conversation.answer == not_sent("bad_request")
    assert conversation.server.connections == 0


def test_the_deadline_is_looked_at_once_more_before_the_first_byte():
    """A deadline that passed while the way was opened lets no application byte out, and says so."""
    with Server(Peer.hang) as server, Backend(Deadline(PATIENT), flight := Flight()) as backend:
        stream = backend.connect_tcp("127.0.0.1", server.port)
        with pytest.raises(Exception, match="deadline"):
            stream.write(b"POST", timeout=0)
    assert flight.may_have_left is False


UNSENDABLE = {
    "scheme": {"url": "ftp://127.0.0.1/"},
    "method": {"method": "post"},
    "line break in a header": {"headers": (("a", "b\r\nc: d"),)},
    "no header value": {"headers": (("a", None),)},
    "body of text": {"body": "text"},
    "verification switched off": {"verify": False},
    "no such certificates": {"verify": "/nowhere/at/all.pem"},
    "a file without certificates": {"verify": __file__},
    "credentials in the proxy address": {"proxy": "http://user:pw@127.0.0.1:1"},
    "a secret that is no text": {"secrets": ("\ud800",)},
}


@pytest.mark.parametrize("fields", UNSENDABLE.values(), ids=UNSENDABLE)
def test_a_request_that_cannot_be_sent_as_written_is_not_sent(fields):
    """A malformed request is refused before anything is connected, as a value and not as an exception."""
    conversation = converse(answering(OK), **{"scheme": "https", **fields})
    assert conversation.answer == not_sent("bad_request")
    assert conversation.server.connections == 0


REFUSALS = {
    "forbidden": (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "proxy_refused"),
    "bad gateway": (b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", "proxy_refused"),
    "asks for credentials": (b"HTTP/1.1 407 Who\r\nproxy-authenticate: Basic\r\n\r\n", "proxy_refused"),
    "redirects": (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\n\r\n", "proxy_refused"),
    "speaks no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", "proxy_failed"),
    "closes": (b"", "proxy_failed"),
    "closes in its head": (b"HTTP/1.1 200 Connection est", "proxy_failed"),
    "goes on speaking": (b"HTTP/1.1 200 OK\r\n\r\nand now a word from our sponsor", "proxy_failed"),
}


@pytest.mark.parametrize(("octets", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_r65_a_proxy_that_gives_no_tunnel_means_not_sent(octets, reason):
    """Whatever a proxy says to a CONNECT, the server behind it got nothing."""
    with Server(proxying(octets, tunnel=False)) as proxy, Server(Peer.take, scheme="https") as server:
        flight = Flight()
        request = request_to(server.url(), proxy=proxy.url(""))
        answer = exchange(request, deadline_seconds=PATIENT, flight=flight)
    assert answer == not_sent(reason)
    assert flight.may_have_left is False
    assert [seen.method for seen in proxy.requests] == ["CONNECT"]
    assert server.connections == 0


@pytest.mark.slow
def test_r65_a_proxy_that_stalls_means_not_sent():
    """A proxy that takes the CONNECT and says nothing is left at the set-up limit."""
    with Server(Peer.hang) as proxy, Server(Peer.take, scheme="https") as server:
        request = request_to(server.url(), proxy=proxy.url(""))
        answer = exchange(request, deadline_seconds=PATIENT, limits=Limits(setup_seconds_max=SHORT))
    assert answer == not_sent("proxy_timeout")


def test_r65_a_proxy_that_is_down_means_not_sent():
    """The proxy refuses the connection, so even the CONNECT was not written."""
    with dead_port() as port:
        request = request_to("https://127.0.0.1/", proxy=f"http://127.0.0.1:{port}")
        answer = exchange(request, deadline_seconds=PATIENT)
    assert answer == not_sent("connect_failed")


def test_r65_tls_that_fails_inside_a_tunnel_means_not_sent():
    """The tunnel stands and the certificate behind it is not trusted: only the handshake went through."""
    with Server(proxying()) as proxy, Server(Peer.take, scheme="https") as server:
        request = request_to(server.url(), proxy=proxy.url(""), verify=True)
        answer = exchange(request, deadline_seconds=PATIENT)
    assert answer == not_sent("tls_failed")
    assert server.requests == []
