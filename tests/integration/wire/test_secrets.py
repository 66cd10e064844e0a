"""Secrets reach the server and nothing else: no log, no exception, no answer, no terminal."""

from __future__ import annotations

import io
import traceback
from base64 import b64encode

import pytest
from rich.console import Console
from rich.pretty import pretty_repr
from tests.integration.wire.conversation import PATIENT, SHORT, request_to
from tests.integration.wire.servers import Peer, Server, answering, dead_port, proxying

from counterfoil.domain.answer import Replied
from counterfoil.providers.wire import Flight, Limits, WireRequest, check_request, check_url, exchange

QUERY = "canary-query-9f2c"
BEARER = "canary-bearer-77aa"
BODY = "canary-body-51d0"
PROXY = "canary-proxy-3b3b"
CANARIES = (QUERY, BEARER, BODY, PROXY)
COOKIE = "canary-cookie-a0a0"

ECHO = (
    f"HTTP/1.1 307 Temporary Redirect\r\n"
    f"Location: http://user:{BEARER}@127.0.0.1/next?api_key={QUERY}#{QUERY}\r\n"
    f"Content-Location: /next?api_key={QUERY}\r\n"
    f"Link: <http://127.0.0.1/?api_key={QUERY}&page=2>; rel=next\r\n"
    f"Set-Cookie: session={COOKIE}\r\n"
    f'WWW-Authenticate: Bearer realm="{COOKIE}"\r\n'
    f"Proxy-Authenticate: Basic {COOKIE}\r\n"
    f"Authorization: Bearer {BEARER}\r\n"
    f"X-Echo: Bearer {BEARER}\r\n"
    f"ETag: kept\r\n"
).encode()


def scripts() -> dict[str, tuple]:
    """What a server may do that brings an exchange to each of its ends."""
    return {
        "replies": (answering(ECHO + b"content-length: 0\r\n\r\n"), "http"),
        "echoes the body": (answering(ECHO + b"content-length: 18\r\n\r\n" + BEARER.encode()), "http"),
        "cuts the body": (answering(ECHO + b"content-length: 99\r\n\r\nabc"), "http"),
        "sends a bad head": (answering(ECHO + b"bad header " + QUERY.encode() + b"\r\n\r\n"), "http"),
        "sends garbage": (answering(QUERY.encode() + b"\r\n\r\n"), "http"),
        "closes": (Peer.take, "http"),
        "resets": (lambda peer: (peer.take(), peer.reset()), "http"),
        "hangs": (Peer.hang, "http"),
        "speaks no TLS": (lambda peer: peer.say(b"plain " * 100), "https on http"),
    }


def secret_request(url: str, **fields) -> WireRequest:
    """A request with a canary in every place that may hold a secret."""
    headers = (("authorization", f"Bearer {BEARER}"), ("x-api-key", QUERY))
    return request_to(
        f"{url}?api_key={QUERY}", **{"headers": headers, "body": BODY.encode(), "secrets": CANARIES, **fields}
    )


def leaked(*texts: str) -> list[str]:
    """The canaries found in any of these texts."""
    return [canary for canary in (*CANARIES, COOKIE) if any(canary in text for text in texts)]


def shown(thing: object) -> str:
    """How a thing looks to whoever prints it, plainly or prettily."""
    return repr(thing) + str(thing) + pretty_repr(thing)


ENDS = [pytest.param(name, marks=pytest.mark.slow if name == "hangs" else ()) for name in scripts()]


@pytest.mark.parametrize("name", ENDS)
def test_r76_no_end_of_an_exchange_shows_a_secret(name, logged, capfd):
    """However it ends, the answer, the flight, the logs and the terminal hold no canary of request or reply."""
    script, scheme = scripts()[name]
    flight = Flight()
    deadline = SHORT if name == "hangs" else PATIENT
    with Server(script) as server:
        request = secret_request(server.url().replace("http:", "https:" if "https" in scheme else "http:"))
        answer = exchange(request, deadline_seconds=deadline, flight=flight)
    captured = capfd.readouterr()
    assert leaked(shown(answer), shown(flight), shown(request)) == []
    assert leaked(logged.getvalue(), captured.out, captured.err) == []
    if isinstance(answer, Replied):
        assert leaked(str(answer.headers), answer.body.decode()) == []


def test_r76_no_proxy_secret_is_shown(logged):
    """Credentials for the proxy stay between us and it, whether it opens the way or not."""
    refusal = f"HTTP/1.1 407 No\r\nproxy-authenticate: Basic {COOKIE}\r\n\r\n{PROXY}".encode()
    with Server(proxying(refusal, tunnel=False)) as proxy:
        request = secret_request(
            "https://127.0.0.1/", proxy=proxy.url(""), proxy_headers=(("proxy-authorization", PROXY),)
        )
        answer = exchange(request, deadline_seconds=PATIENT)
    assert answer.reason == "proxy_refused"
    assert leaked(shown(answer), shown(request), logged.getvalue()) == []


def test_r76_a_refused_connection_shows_no_secret(logged):
    """The most ordinary failure of all names nothing either."""
    with dead_port() as port:
        request = secret_request(f"http://127.0.0.1:{port}/")
        answer = exchange(request, deadline_seconds=PATIENT)
    assert leaked(shown(answer), logged.getvalue()) == []


def test_r76_an_interruption_carries_no_secret(monkeypatch):
    """The chain of exceptions behind an interruption names nothing that was sent."""

    def recv(sock, size):
        raise KeyboardInterrupt

    with Server(Peer.hang) as server:
        monkeypatch.setattr("socket.socket.recv", recv)
        with pytest.raises(KeyboardInterrupt) as caught:
            exchange(secret_request(server.url()), deadline_seconds=PATIENT)
        monkeypatch.undo()
    assert leaked("".join(traceback.format_exception(caught.value))) == []


WRONG_URLS = {
    "userinfo": f"https://user:{QUERY}@host/",
    "userinfo alone": f"https://{QUERY}@host/",
    "scheme": f"ftp://host/?api_key={QUERY}",
    "scheme is the secret": f"{QUERY}://host/",
    "not absolute": f"/path?api_key={QUERY}",
    "fragment": f"https://host/?api_key={QUERY}#part",
    "space": f"https://host/?api_key={QUERY} x",
    "line break": f"https://host/?api_key={QUERY}\r\nx: y",
    "port": f"https://host:{QUERY}/",
    "port range": f"https://host:70000/?api_key={QUERY}",
    "host": f"https://hö{QUERY}/",
    "brackets": f"https://[{QUERY}]/",
    "length": f"https://host/?api_key={QUERY}" + "x" * 9000,
}


@pytest.mark.parametrize("url", WRONG_URLS.values(), ids=WRONG_URLS)
def test_r76_a_refused_url_is_not_repeated(url):
    """The message says what is wrong and nothing of what was written; no other exception stands behind it."""
    with pytest.raises(ValueError, match=r"^url: ") as caught:
        check_url(url)
    assert leaked("".join(traceback.format_exception(caught.value))) == []
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


WRONG_FIELDS = {
    "header value": {"headers": (("x-api-key", f"{QUERY}\r\nevil: 1"),)},
    "header value outside ASCII": {"headers": (("x-api-key", f"{QUERY}é"),)},
    "header name": {"headers": ((f"bad name {QUERY}", "x"),)},
    "our header": {"headers": (("Content-Length", QUERY),)},
    "method": {"method": f"POST {QUERY}"},
    "proxy": {"proxy": f"http://user:{QUERY}@127.0.0.1:1"},
    "proxy path": {"proxy": f"http://127.0.0.1:1/{QUERY}"},
    "proxy scheme": {"proxy": f"https://127.0.0.1:1?{QUERY}"},
    "proxy header among the others": {"headers": (("proxy-authorization", QUERY),)},
    "proxy header without a proxy": {"proxy_headers": (("proxy-authorization", QUERY),)},
    "secret": {"secrets": (QUERY + "\ud800",)},
}


@pytest.mark.parametrize("fields", WRONG_FIELDS.values(), ids=WRONG_FIELDS)
def test_r76_a_refused_request_is_not_repeated(fields):
    """The same for everything else in a request."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - each has its own words, none of them ours to repeat here
        check_request(request_to("https://host/", **fields))
    assert leaked("".join(traceback.format_exception(caught.value))) == []
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_r76_a_traceback_with_local_variables_shows_no_request():
    """Terminals that print local variables print requests and flights as they show themselves: without content."""
    console = Console(file=io.StringIO(), width=200)
    console.print([secret_request("https://host/"), Flight(secrets=CANARIES)])
    assert leaked(console.file.getvalue()) == []


def test_credentials_of_a_reply_are_not_kept():
    """Cookies and challenges are dropped, addresses lose their query, echoes of our secrets vanish; the rest stays."""
    with Server(answering(ECHO + b"content-length: 0\r\n\r\n")) as server:
        answer = exchange(secret_request(server.url()), deadline_seconds=PATIENT)
    assert answer.headers == (
        ("location", "http://127.0.0.1/next"),
        ("content-location", "/next"),
        ("etag", "kept"),
        ("content-length", "0"),
    )


def test_an_echo_in_the_body_is_masked_at_its_length():
    """A service that quotes the key it was sent does not bring it into the store: plain, encoded or in JSON."""
    secret = 'key/with "quotes"'
    quoted = f'{{"a": "{BEARER}", "b": "key%2Fwith%20%22quotes%22", "c": "key/with \\"quotes\\"", '
    packed = b64encode(secret.encode())
    coded = f'"d": "{packed.decode()}", "e": "key%2Fwith+%22quotes%22", "short": "1234"}}'
    body = (quoted + coded).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with Server(answering(head + body)) as server:
        request = request_to(server.url(), secrets=(BEARER, secret, "1234"))
        answer = exchange(request, deadline_seconds=PATIENT, limits=Limits(body_bytes_max=len(body)))
    assert answer.complete is True
    assert len(answer.body) == len(body)
    assert leaked(answer.body.decode()) == []
    assert b"quotes" not in answer.body
    assert packed not in answer.body
    assert b"1234" in answer.body  # too short to be told from the digits of an id
