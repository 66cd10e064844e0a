"""The fault proxy before a real server: what passes unspoilt, what each rule spoils, and the record of both."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import signal
import socket
import threading
from collections.abc import Iterator

import pytest

from counterfoil.lab.passage import CONNECTIONS, LOSING, REQUESTS
from counterfoil.lab.processes import NotReady, free_port, start_proxy

LOST = http.client.RemoteDisconnected
CUT = http.client.IncompleteRead
SECONDS = 10

SPOILT = {
    "lose_reply": (LOST, 1),
    "lose_request": (LOST, 0),
    "reset": (ConnectionResetError, 1),
    "hang": (LOST, 1),
    "cut_request": (LOST, 0),
    "cut_reply": (CUT, 1),
    "delay": (201, 1),
    "delay_reply": (201, 1),
    "stall_reply": (201, 1),
    "unavailable": (503, 0),
}
"""What the caller sees, by its status or as its error, and how many effects there are in the end."""


class Upstream:
    """A server that answers every connection's first request with given bytes, and keeps what it was sent."""

    def __init__(self, answer: bytes) -> None:
        self.answer, self.received = answer, []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._listening.accept()
                with line:
                    line.settimeout(SECONDS)
                    self.received.append(line.recv(65536))
                    line.sendall(self.answer)

    def close(self) -> None:
        """Stop listening and wait for the thread."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()


@pytest.fixture
def before() -> Iterator:
    """Put a proxy before a server that answers with the given bytes."""
    with contextlib.ExitStack() as house:

        def start(answer, *rules):
            upstream = Upstream(answer)
            house.callback(upstream.close)
            return upstream, house.enter_context(start_proxy(upstream.port, rules=rules)).port

        yield start


def read_all(line):
    """Everything until the other side ends the connection."""
    received = b""
    while piece := line.recv(65536):
        received += piece
    return received


def test_every_behaviour_has_its_law():
    """No behaviour of the proxy is without a test in this module."""
    assert REQUESTS.keys() == SPOILT.keys()
    assert CONNECTIONS.keys() == {"refuse", "half_open"}


def test_without_rules_everything_passes(proxied):
    """Requests and replies arrive as they were sent."""
    front = proxied()
    name = front.name()
    answer = front.post("lookup", name, {"amount": 3})
    assert answer.json["reference"] == name
    assert [effect["payload"] for effect in front.effects(name)] == [{"amount": 3}]
    assert front.look(name).json["items"][0]["id"] == answer.json["id"]


@pytest.mark.parametrize("behaviour", SPOILT)
def test_a_spoilt_request(proxied, behaviour):
    """Each behaviour shows its own face and has its own effects, and the next request passes."""
    seen, effects = SPOILT[behaviour]
    front = proxied({"method": "POST", "behaviour": behaviour, "times": 1, "seconds": 0.05})
    name = front.name()
    if isinstance(seen, int):
        assert front.post("lookup", name).status == seen
    else:
        with pytest.raises(seen):
            front.post("lookup", name)
    assert len(front.effects(name)) == effects
    assert front.post("lookup", front.name()).status == 201
    assert [(entry["behaviour"], entry["lost"]) for entry in front.passed()] == [
        (behaviour, behaviour in LOSING),
        (None, False),
    ]


def test_the_reply_to_every_third_write_is_lost(proxied):
    """Writes are counted over all connections, looks in between are not, and nothing lost is undone."""
    front = proxied({"method": "POST", "every": 3, "behaviour": "lose_reply"})
    names, lost = [front.name() for _ in range(7)], []
    for number, name in enumerate(names, start=1):
        try:
            front.post("lookup", name)
        except LOST:
            lost.append(number)
        assert front.look(name).json["items"]
    assert lost == [3, 6]
    assert [len(front.effects(name)) for name in names] == [1] * 7
    assert [entry["lost"] for entry in front.passed() if entry["act"] == "send"] == [n in lost for n in range(1, 8)]


def test_a_lost_reply_ends_without_a_byte(proxied, connect):
    """The connection ends in the ordinary way, after the server has answered, and not one byte came back."""
    front = proxied({"behaviour": "lose_reply"})
    line = connect(front.port)
    line.sendall(b"POST /nothing/effects HTTP/1.1\r\nAuthorization: Bearer lab-secret\r\nContent-Length: 2\r\n\r\n{}")
    assert line.recv(1) == b""


def test_every_request_is_recorded_before_it_is_forwarded(proxied):
    """The record says when, what and which bytes, and tells looks from sends."""
    front = proxied()
    front.post("lookup", front.name(), body=b'{"a":  1}')
    front.get("/effects?limit=5")
    sent, looked = front.passed()
    assert (sent["act"], sent["method"], sent["path"], sent["whole"]) == ("send", "POST", "/lookup/effects", True)
    assert sent["payload_sha256"] == hashlib.sha256(b'{"a":  1}').hexdigest()
    assert (looked["act"], looked["method"], looked["path"]) == ("look", "GET", "/effects?limit=5")
    assert sent["at"] <= looked["at"]


@pytest.mark.parametrize("sent", [0, 1, 30])
def test_a_reply_is_cut_after_so_many_bytes(before, connect, sent):
    """Exactly so many bytes of the reply arrive."""
    _, port = before(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", {"behaviour": "cut_reply", "bytes": sent})
    line = connect(port)
    line.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert read_all(line) == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[:sent]


def test_an_answer_stalls_halfway(before, connect):
    """The first bytes arrive, then none for a while, then the rest: nothing of the answer is lost."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    _, port = before(answer, {"behaviour": "stall_reply", "bytes": 20, "seconds": 0.4})
    line = connect(port)
    line.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert line.recv(65536) == answer[:20]
    line.settimeout(0.1)
    with pytest.raises(TimeoutError):
        line.recv(1)
    line.settimeout(SECONDS)
    assert line.recv(65536) == answer[20:]


@pytest.mark.parametrize("sent", [1, 20, 44])
def test_a_request_is_cut_after_so_many_bytes(before, connect, sent):
    """Exactly so many bytes of the request reach the server, and the caller gets none back."""
    upstream, port = before(b"", {"behaviour": "cut_request", "bytes": sent})
    request = b"POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
    line = connect(port)
    line.sendall(request)
    assert read_all(line) == b""
    while not upstream.received:
        pass
    assert upstream.received == [request[:sent]]


def test_a_refused_connection_is_reset(proxied):
    """The caller's connection breaks before it can read anything, and the server sees nothing of it."""
    front = proxied({"behaviour": "refuse", "nth": [1]})
    name = front.name()
    with pytest.raises(ConnectionError):
        front.post("lookup", name)
    assert front.wire(name) == []
    assert front.post("lookup", name).status == 201


def test_a_half_open_connection_is_accepted_and_never_answered(proxied, connect):
    """The server side accepts, reads and says nothing; the caller's own deadline ends the wait."""
    front = proxied({"behaviour": "half_open", "nth": [1]})
    line = connect(front.port)
    line.sendall(b"GET /effects HTTP/1.1\r\n\r\n")
    line.settimeout(0.2)
    with pytest.raises(TimeoutError):
        line.recv(1)
    assert front.get("/effects").status == 200
    assert len(front.passed()) == 1


def test_a_held_connection_ends_when_the_caller_leaves(before, connect):
    """Nothing is kept for a caller that is gone, and the process ends when asked."""
    _, port = before(b"HTTP/1.1 204 No Content\r\n\r\n", {"behaviour": "hang"})
    line = connect(port)
    line.sendall(b"GET / HTTP/1.1\r\n\r\n")
    line.shutdown(socket.SHUT_WR)
    assert read_all(line) == b""


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
    ],
)
def test_every_framing_passes_byte_by_byte(before, connect, answer):
    """However a reply is framed, the caller gets exactly its bytes and then its end."""
    _, port = before(answer)
    line = connect(port)
    line.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read_all(line) == answer


def test_an_interim_reply_is_not_the_reply(before, connect):
    """A 100 is passed over; the final reply follows."""
    _, port = before(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    line = connect(port)
    line.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read_all(line) == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_a_head_reply_has_no_body(before, connect):
    """The length that a HEAD reply announces is not waited for."""
    _, port = before(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    line = connect(port)
    line.sendall(b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert read_all(line) == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


def test_a_chunked_request_passes_whole(before, connect):
    """A request body in chunks reaches the server as it came."""
    upstream, port = before(b"HTTP/1.1 204 No Content\r\n\r\n")
    request = b"PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    line = connect(port)
    line.sendall(request)
    assert read_all(line) == b"HTTP/1.1 204 No Content\r\n\r\n"
    assert upstream.received == [request]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"PUT / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_an_unreadable_request_is_not_forwarded(before, connect, request_bytes):
    """What has no readable end reaches no server; the caller's connection ends."""
    upstream, port = before(b"")
    line = connect(port)
    with contextlib.suppress(ConnectionError):  # an end with bytes unread is a reset
        line.sendall(request_bytes)
        assert read_all(line) == b""
    assert upstream.received == []


def test_half_a_request_is_recorded_and_not_forwarded(proxied, connect):
    """A body that ends early is on record as not whole, and reaches no server."""
    front = proxied()
    line = connect(front.port)
    line.sendall(b"PUT /x HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf")
    line.shutdown(socket.SHUT_WR)
    assert read_all(line) == b""
    assert [(entry["method"], entry["whole"], entry["lost"]) for entry in front.passed()] == [("PUT", False, True)]


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"HTTP/1.1 x OK\r\n\r\n"]
)
def test_an_unreadable_reply_ends_the_connection(before, connect, answer):
    """A reply without a readable end is not passed on; the caller sees an end without a byte."""
    _, port = before(answer)
    line = connect(port)
    line.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert read_all(line) == b""


def test_a_server_that_is_not_there_ends_the_connection(connect):
    """Where nobody listens behind the proxy the caller sees an end without a byte."""
    with start_proxy(free_port()) as child:
        line = connect(child.port)
        line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert read_all(line) == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_proxy_ends_cleanly_when_asked(before, connect, number):
    """A signal ends it with code 0, held connections or not."""
    upstream, port = before(b"HTTP/1.1 204 No Content\r\n\r\n")
    with start_proxy(upstream.port, rules=[{"behaviour": "half_open"}]) as child:
        line = connect(child.port)
        line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        child.signal(number)
        assert child.wait() == 0
        assert child.errors() == ""
    assert port


def test_a_proxy_ends_with_its_parent():
    """When the pipe from its parent ends, so does the proxy."""
    with start_proxy(free_port()) as child:
        child.let_go()
        assert child.wait() == 0


@pytest.mark.parametrize(
    "arguments",
    [["--rule", "{"], ["--rule", '{"behaviour": "nonsense"}'], ["--rule", '{"behaviour": "delay", "route": "key"}']],
)
def test_a_proxy_that_cannot_start_says_why(arguments):
    """Bad arguments end the process with a sentence, not a traceback."""
    with pytest.raises(NotReady) as ended:
        start_proxy(1, *arguments)
    assert ended.value.said.startswith("the proxy cannot start: ")


def test_a_port_that_is_taken_is_named():
    """Two proxies cannot listen on one port."""
    with start_proxy(1) as child, pytest.raises(NotReady, match=r"cannot start: .*in use"):
        start_proxy(1, port=child.port)
