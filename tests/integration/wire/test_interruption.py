"""Whoever interrupts an exchange gets his exception, and the flight says what was known at that moment."""

from __future__ import annotations

import signal
import socket
import threading

import pytest
from tests.integration.wire.conversation import PATIENT, request_to
from tests.integration.wire.servers import Peer, Script, Server

from counterfoil.domain.answer import Replied, Silent
from counterfoil.providers.wire import Flight, exchange

STATUS = b"HTTP/1.1 201 Created\r\nx-id: ev_1\r\n"


class Shutdown(Exception):
    """What some worker's signal handler raises: an ordinary exception that is not ours."""


def interrupting(flight: Flight, say: bytes, gone: list[bool]) -> Script:
    """A script that reads the request, says something, and once it was heard interrupts the main thread."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(say)
        while say and not heard(flight, say):
            if peer.server.stopping.wait(0.01):
                return  # the exchange ended without hearing it: there is nothing left to interrupt
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        try:
            gone.append(peer.sock.recv(1) == b"")
        except ConnectionResetError:
            gone.append(True)

    return script


def heard(flight: Flight, say: bytes) -> bool:
    """The other side has noted what was said: the status, and the end of the body where there is one."""
    return flight.status is not None and (b"\r\n\r\n" not in say or say.endswith(bytes(flight.body or b"?")))


@pytest.fixture(params=[KeyboardInterrupt, SystemExit, Shutdown])
def kind(request):
    """A signal handler that raises this in the main thread, as Ctrl+C does."""

    def handler(number, frame):
        raise request.param

    before = signal.signal(signal.SIGUSR1, handler)
    yield request.param
    signal.signal(signal.SIGUSR1, before)


def interrupted(kind: type[BaseException], say: bytes = b"") -> Flight:
    """Run one exchange that is interrupted, and see that the connection was cut by it."""
    flight, gone = Flight(), []
    with Server(interrupting(flight, say, gone)) as server:
        with pytest.raises(kind) as caught:
            exchange(request_to(server.url()), deadline_seconds=PATIENT, flight=flight)
        for thread in list(server._threads[1:]):
            thread.join(PATIENT)
        assert gone == [True]  # before the server is stopped: it was our side that closed
    assert caught.type is kind
    assert caught.value.__cause__ is None
    assert server.connections == 1
    return flight


def test_an_interruption_after_the_request_passes_unchanged(kind):
    """The exception goes on as it is, the socket is closed, and the flight says that the request may have left."""
    flight = interrupted(kind)
    assert flight.may_have_left is True
    assert flight.answer() == Silent(may_have_left=True, reason="interrupted")


@pytest.mark.parametrize(
    ("say", "headers", "body"),
    [
        (STATUS, (), b""),
        (STATUS + b"content-length: 9\r\n\r\nabc", (("x-id", "ev_1"), ("content-length", "9")), b"abc"),
    ],
    ids=["head", "body"],
)
def test_an_interruption_keeps_what_was_read(kind, say, headers, body):
    """A status that was seen before the interruption is not lost with it."""
    flight = interrupted(kind, say)
    assert flight.answer() == Replied(status=201, headers=headers, body=body, complete=False, reason="interrupted")


def test_an_interruption_before_the_first_byte_proves_that_nothing_left(monkeypatch):
    """Interrupted while the connection is made: the flight still says that nothing left."""

    def connect(sock, address):
        raise KeyboardInterrupt

    monkeypatch.setattr(socket.socket, "connect", connect)
    flight = Flight()
    with pytest.raises(KeyboardInterrupt):
        exchange(request_to("http://127.0.0.1:9/"), deadline_seconds=PATIENT, flight=flight)
    assert flight.answer() == Silent(may_have_left=False, reason="interrupted")


def test_an_interruption_at_the_first_write_may_have_left(monkeypatch):
    """The mark is set before the first byte is handed over, so no interruption can fall between the two."""

    def send(sock, octets):
        raise KeyboardInterrupt

    flight = Flight()
    with Server(Peer.hang) as server:
        monkeypatch.setattr(socket.socket, "send", send)
        with pytest.raises(KeyboardInterrupt):
            exchange(request_to(server.url()), deadline_seconds=PATIENT, flight=flight)
    assert flight.answer() == Silent(may_have_left=True, reason="interrupted")
