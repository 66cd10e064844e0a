"""Once a status line was read it is never lost: whole replies are complete, all others say why they are not."""

from __future__ import annotations

import gzip
import time

import pytest
from tests.integration.wire.conversation import BODY, MUCH_LATER, PATIENT, converse, request_to
from tests.integration.wire.servers import Peer, Server, answering, proxying

from counterfoil.domain.answer import Replied
from counterfoil.providers.wire import Limits, exchange

SCHEMES = pytest.mark.parametrize("scheme", ["http", "https"])
CREATED = b'HTTP/1.1 201 Created\r\nX-Id: ev_1\r\ncontent-length: 13\r\n\r\n{"id": "ev_1"'
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def reply(octets: bytes, **fields) -> Replied:
    """What the wire makes of these bytes."""
    answer = converse(answering(octets), **fields).answer
    assert isinstance(answer, Replied)
    return answer


@SCHEMES
def test_a_whole_reply_is_complete(scheme):
    """Status, headers in wire order with lower-case names, and the exact body."""
    conversation = converse(answering(CREATED), scheme=scheme)
    assert conversation.answer == Replied(
        status=201, headers=(("x-id", "ev_1"), ("content-length", "13")), body=b'{"id": "ev_1"'
    )
    seen = conversation.server.requests[0]
    assert (seen.method, seen.target, seen.body) == ("POST", "/effects", BODY)
    assert conversation.flight.may_have_left is True


def test_what_is_sent_is_what_was_given():
    """Path and query byte for byte, the caller's headers, and our own framing: no coding, no reuse."""
    with Server(answering(CREATED)) as server:
        request = request_to(server.url("/a%2Fb/../c;d?x=%20&x=y"), method="PUT", headers=(("If-None-Match", "*"),))
        exchange(request, deadline_seconds=PATIENT)
    seen = server.requests[0]
    assert (seen.method, seen.target) == ("PUT", "/a%2Fb/../c;d?x=%20&x=y")
    assert seen.headers == {
        "host": f"127.0.0.1:{server.port}",
        "if-none-match": "*",
        "accept-encoding": "identity",
        "connection": "close",
        "content-length": str(len(BODY)),
    }


@pytest.mark.parametrize(("method", "length"), [("GET", None), ("DELETE", None), ("POST", "0"), ("PUT", "0")])
def test_an_empty_body_is_announced_where_one_is_expected(method, length):
    """A POST without a body says so; a GET, which is how one looks, says nothing."""
    conversation = converse(answering(CREATED), method=method, body=b"")
    assert conversation.server.requests[0].headers.get("content-length") == length


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_r65_a_redirect_is_a_reply_and_is_not_followed(status):
    """The other place gets nothing, whichever redirect it is: a 307 would have sent the body twice."""
    with Server(answering(CREATED)) as elsewhere:
        head = f"HTTP/1.1 {status} Elsewhere\r\nlocation: {elsewhere.url()}\r\ncontent-length: 0\r\n\r\n"
        conversation = converse(answering(head.encode()))
    assert conversation.answer.status == status
    assert conversation.answer.complete is True
    assert dict(conversation.answer.headers)["location"] == elsewhere.url()
    assert len(conversation.server.requests) == 1
    assert elsewhere.connections == 0


def test_r65_a_redirect_of_a_look_is_not_followed_either():
    """A look that was sent elsewhere has not looked."""
    with Server(answering(CREATED)) as elsewhere:
        head = f"HTTP/1.1 302 Elsewhere\r\nlocation: {elsewhere.url()}\r\ncontent-length: 0\r\n\r\n"
        conversation = converse(answering(head.encode()), method="GET", body=b"")
    assert conversation.answer.status == 302
    assert elsewhere.connections == 0


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
def test_a_status_that_invites_a_retry_is_sent_once(status):
    """Retry-After or not, the wire sends once and hands the status up."""
    head = f"HTTP/1.1 {status} Later\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n"
    conversation = converse(answering(head.encode()))
    assert conversation.answer == Replied(status=status, headers=(("retry-after", "0"), ("content-length", "0")))
    assert len(conversation.server.requests) == 1
    assert conversation.server.connections == 1


WHOLE = {
    "chunked": (CHUNKED + b"2\r\nab\r\n1;ext=1\r\nc\r\n0\r\ntrailer: 1\r\n\r\n", b"abc"),
    "delimited by the close": (b"HTTP/1.0 200 OK\r\n\r\nabc", b"abc"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "not modified, with a length": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", b""),
    "coded by identity": (b"HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 1\r\n\r\na", b"a"),
    "without a reason phrase": (b"HTTP/1.1 200\r\ncontent-length: 1\r\n\r\na", b"a"),
    "after a 100": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", b"a"),
    "after a 103": (
        b"HTTP/1.1 103 Early Hints\r\nlink: </s.css>\r\n\r\n" * 2 + b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
        b"a",
    ),
}


@pytest.mark.parametrize(("octets", "body"), WHOLE.values(), ids=WHOLE)
def test_each_framing_is_read_to_its_end(octets, body):
    """Every way HTTP/1 has to end a body gives the whole body; an informational reply is no status."""
    answer = reply(octets)
    assert (answer.complete, answer.reason, answer.body) == (True, "", body)
    assert answer.status in {200, 204, 304}


def test_a_reply_to_head_has_no_body():
    """The length a HEAD announces is not waited for."""
    answer = reply(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", method="HEAD", body=b"")
    assert (answer.complete, answer.body) == (True, b"")


CUT = {
    "length": (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "body_cut", b"abc"),
    "length, before the first byte": (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", "body_cut", b""),
    "in a chunk": (CHUNKED + b"a\r\nabc", "body_cut", b"abc"),
    "before the last chunk": (CHUNKED + b"3\r\nabc\r\n", "body_cut", b"abc"),
    "in the last chunk": (CHUNKED + b"3\r\nabc\r\n0\r\n", "body_cut", b"abc"),
    "a chunk of no size": (CHUNKED + b"zz\r\nabc\r\n", "body_malformed", b""),
    "a chunk longer than announced": (CHUNKED + b"1\r\nabc\r\n0\r\n\r\n", "body_malformed", b"a"),
    "more than announced": (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nabc", "length_mismatch", b"a"),
    "a second reply": (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 400 No\r\n\r\n", "length_mismatch", b""),
    "after the status line": (b"HTTP/1.1 200 OK\r\n", "head_cut", b""),
    "in a header": (b"HTTP/1.1 200 OK\r\nx-id: e", "head_cut", b""),
    "before the blank line": (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n", "head_cut", b""),
    "a header without a colon": (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "head_malformed", b""),
    "two lengths": (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", "head_malformed", b""),
    "a negative length": (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "head_malformed", b""),
    "an unknown transfer coding": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "head_malformed", b""),
}


@pytest.mark.parametrize(("octets", "reason", "body"), CUT.values(), ids=CUT)
def test_r65_a_reply_that_breaks_off_keeps_its_status(octets, reason, body):
    """A status was seen, so the server took the request; that the rest is cut or wrong is said, never guessed."""
    answer = reply(octets)
    assert (answer.status, answer.complete, answer.reason, answer.body) == (200, False, reason, body)


@SCHEMES
def test_r65_a_reset_in_the_body_keeps_the_status(scheme):
    """A reset after the head cuts the body and nothing else."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(b"HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\nabc")
        peer.reset()

    answer = converse(script, scheme=scheme).answer
    assert (answer.status, answer.complete, answer.body) == (201, False, b"abc")
    assert answer.reason in (
        {"reset"} if scheme == "http" else {"reset", "body_cut"}
    )  # OpenSSL tells them apart or not


@SCHEMES
def test_an_end_without_goodbye_is_a_cut_only_under_tls(scheme):
    """A body delimited by the close is whole after an orderly close; TLS knows an attacker's close from the peer's."""
    conversation = converse(answering(b"HTTP/1.0 200 OK\r\n\r\nabc"), scheme=scheme)
    assert conversation.answer.complete is (scheme == "http")
    assert conversation.answer.reason == ("" if scheme == "http" else "body_cut")
    assert conversation.answer.body == b"abc"


def test_an_orderly_end_under_tls_is_whole():
    """With close_notify the same body is complete."""

    def script(peer: Peer) -> None:
        answering(b"HTTP/1.0 200 OK\r\n\r\nabc")(peer)
        peer.sock = peer.sock.unwrap()

    assert converse(script, scheme="https").answer == Replied(status=200, body=b"abc")


def test_a_coding_nobody_asked_for_is_kept_raw():
    """Content is never decoded here: the bytes stay as they came, and the reply says it is encoded."""
    packed = gzip.compress(b'{"id": 1}' * 1000)
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n"
    answer = reply(head.encode() + packed)
    assert (answer.complete, answer.reason, answer.body) == (False, "encoded", packed)


def test_a_coding_that_is_garbage_raises_nothing():
    """Bytes that are no gzip are as good as any, since nobody unpacks them."""
    answer = reply(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\xff\xfe\xfd")
    assert (answer.complete, answer.reason, answer.body) == (False, "encoded", b"\xff\xfe\xfd")


@pytest.mark.parametrize(
    "framing", [b"content-length: 101\r\n\r\n", b"\r\n", b"transfer-encoding: chunked\r\n\r\n65\r\n"]
)
def test_a_body_over_the_limit_is_cut_at_the_limit(framing):
    """What fits is kept as evidence, what does not is never read into memory."""
    octets = b"HTTP/1.1 200 OK\r\n" + framing + b"x" * 101
    answer = reply(octets, limits=Limits(body_bytes_max=100))
    assert (answer.status, answer.complete, answer.reason) == (200, False, "body_too_large")
    assert answer.body == b"x" * 100


def test_a_body_at_the_limit_is_whole():
    """The limit itself still fits; zero is a limit too."""
    octets = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n" + b"x" * 100
    assert reply(octets, limits=Limits(body_bytes_max=100)).complete is True
    assert reply(octets, limits=Limits(body_bytes_max=0)).reason == "body_too_large"


def test_an_endless_body_is_cut_at_the_default_limit():
    """A server that never stops writing is left after a mebibyte, long before the deadline."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(b"HTTP/1.1 200 OK\r\n\r\n")
        while not peer.server.stopping.is_set():
            peer.say(b"x" * 65536)

    answer = converse(script).answer
    assert (answer.reason, len(answer.body)) == ("body_too_large", 1024 * 1024)


def test_a_head_that_never_ends_is_cut_at_the_limit():
    """A flood of headers keeps the status and nothing else."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(b"HTTP/1.1 200 OK\r\n")
        while not peer.server.stopping.is_set():
            peer.say(b"x-flood: 0123456789\r\n" * 1000)

    answer = converse(script).answer
    assert answer == Replied(status=200, complete=False, reason="head_too_large")


def test_a_head_over_the_limit_is_refused_even_in_one_piece():
    """A head that arrives whole is measured all the same."""
    octets = b"HTTP/1.1 200 OK\r\nx-long: " + b"y" * 200 + b"\r\ncontent-length: 0\r\n\r\n"
    assert reply(octets, limits=Limits(head_bytes_max=200)).reason == "head_too_large"
    assert reply(octets, limits=Limits(head_bytes_max=400)).complete is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beginning", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", True),
        (CHUNKED + b"186a0\r\n", True),
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nx-slow: ", False),
    ],
    ids=["length", "chunk", "close", "head"],
)
def test_a_trickle_ends_at_the_deadline(beginning, kept):
    """A byte every 50 ms resets every time-out per read; the absolute deadline ends it and keeps what came."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(beginning)
        peer.drip(b"y" * 100_000)

    begun = time.monotonic()
    answer = converse(script, deadline=1.0).answer
    assert time.monotonic() - begun < MUCH_LATER
    assert (answer.status, answer.complete, answer.reason) == (200, False, "read_timeout")
    assert set(answer.body) == (set(b"y") if kept else set())


def test_an_answer_before_the_body_was_read_counts():
    """A server that refuses a large body early and closes has answered, although our write broke."""

    def script(peer: Peer) -> None:
        peer.server.requests.append(peer.head())
        peer.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")

    conversation = converse(script, body=b"x" * (5 * 1024 * 1024))
    assert conversation.answer == Replied(status=413, headers=(("content-length", "0"),))
    assert len(conversation.server.requests) == 1


def test_r65_a_tunnel_carries_the_request_unseen():
    """Through a proxy the server gets the request, and the proxy gets only the CONNECT and what is meant for it."""
    with Server(proxying()) as proxy, Server(answering(CREATED), scheme="https") as server:
        secret = (("proxy-authorization", "Basic cHJveHk6cHc="),)
        own = (("authorization", "Bearer own"),)
        request = request_to(server.url(), proxy=proxy.url(""), proxy_headers=secret, headers=own)
        answer = exchange(request, deadline_seconds=PATIENT)
    assert answer.status == 201
    assert [(seen.method, seen.target) for seen in proxy.requests] == [("CONNECT", f"127.0.0.1:{server.port}")]
    assert proxy.requests[0].headers["proxy-authorization"] == secret[0][1]
    assert "authorization" not in proxy.requests[0].headers
    assert "proxy-authorization" not in server.requests[0].headers
    assert server.requests[0].headers["authorization"] == own[0][1]


def test_a_forwarding_proxy_gets_the_whole_address():
    """A plain request goes to the proxy in absolute form, with what is meant for it, and its reply is the reply."""
    with Server(answering(CREATED)) as proxy:
        secret = (("proxy-authorization", "Basic cHJveHk6cHc="),)
        request = request_to("http://localhost/effects", proxy=proxy.url(""), proxy_headers=secret)
        answer = exchange(request, deadline_seconds=PATIENT)
    assert answer.status == 201
    assert proxy.requests[0].headers["proxy-authorization"] == secret[0][1]
    assert proxy.requests[0].target == "http://localhost/effects"
