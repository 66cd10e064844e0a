"""Which URLs and headers can be sent exactly as they are written, and which are refused at declaration."""

from __future__ import annotations

import pytest

from counterfoil.providers.request import parse_url
from counterfoil.providers.wire import WireRequest, check_request, check_url

GOOD = {
    "http://example.org": ("http", "example.org", 80, "/", "example.org"),
    "HTTPS://Example.ORG/": ("https", "example.org", 443, "/", "example.org"),
    "https://example.org:443/a": ("https", "example.org", 443, "/a", "example.org"),
    "http://example.org:443/a": ("http", "example.org", 443, "/a", "example.org:443"),
    "http://example.org?x=1": ("http", "example.org", 80, "/?x=1", "example.org"),
    "http://127.0.0.1:8080/a/../b//c;d=1?e=@:/?": (
        "http",
        "127.0.0.1",
        8080,
        "/a/../b//c;d=1?e=@:/?",
        "127.0.0.1:8080",
    ),
    "http://[::1]:8080/%C3%A9": ("http", "::1", 8080, "/%C3%A9", "[::1]:8080"),
    "https://xn--hnsel-gra.example./": ("https", "xn--hnsel-gra.example.", 443, "/", "xn--hnsel-gra.example."),
    "http://under_score.internal:65535/": ("http", "under_score.internal", 65535, "/", "under_score.internal:65535"),
    "http://3com.example/": ("http", "3com.example", 80, "/", "3com.example"),
}


@pytest.mark.parametrize(("url", "parts"), GOOD.items(), ids=GOOD)
def test_a_url_is_taken_apart_unchanged(url, parts):
    """Host and port say where to go; path and query are the bytes that were written."""
    target = parse_url(url)
    assert (target.scheme, target.host, target.port, target.path, target.authority) == parts


BAD = {
    "": "not absolute",
    "example.org/a": "not absolute",
    "//example.org/a": "not absolute",
    "http:/example.org": "not absolute",
    "ftp://example.org/": "scheme",
    "file:///etc/passwd": "scheme",
    "http://": "host",
    "http:///path": "host",
    "http://:80/": "host",
    "http://a..b/": "host",
    "http://-a.example/": "host",
    "http://exa mple.org/": "host",
    "http://exa%6dple.org/": "host",
    "http://" + "a" * 64 + ".example/": "host",
    "http://" + "a." * 130 + "example/": "host",
    "http://hänsel.example/": "ASCII",
    "http://\u212aelvin.example/": "ASCII",
    "http://example.org\uff0fevil/": "ASCII",
    "http://127.1/": "IPv4",
    "http://2130706433/": "IPv4",
    "http://0x7f.0.0.1/": "IPv4",
    "http://1.2.3.256/": "IPv4",
    "http://[::1/": "host",
    "http://[1.2.3.4]/": "IPv6",
    "http://[fe80::1%eth0]/": "IPv6",
    "http://[::1]x:80/": "host",
    "http://example.org:/": "port",
    "http://example.org:0/": "port",
    "http://example.org:65536/": "port",
    "http://example.org:-1/": "port",
    "http://example.org:8a/": "port",
    "http://example.org:\u0668\u0660/": "ASCII",
    "http://user@example.org/": "userinfo",
    "http://user:password@example.org/": "userinfo",
    "http://:@example.org/": "userinfo",
    "http://example.org\\@evil.example/": "userinfo",
    "http://example.org\\evil/": "host",
    "http://example.org/#part": "fragment",
    "http://example.org/#": "fragment",
    "http://example.org/a b": "percent-encoded",
    "http://example.org/a\r\nhost: evil": "percent-encoded",
    "http://example.org/a\x00": "percent-encoded",
    "http://example.org/é": "percent-encoded",
    "http://example.org/?a={b}": "percent-encoded",
    "http://example.org/%": "percent-encoded",
    "http://example.org/%zz": "percent-encoded",
    "http://example.org\n/": "host",
    " http://example.org/": "not absolute",
    "http://example.org/" + "a" * 8192: "longer",
}


@pytest.mark.parametrize(("url", "word"), BAD.items(), ids=[repr(url)[:60] for url in BAD])
def test_a_url_that_would_not_arrive_as_written_is_refused(url, word):
    """The message names the fault, so that it can be mended without seeing the URL."""
    with pytest.raises(ValueError, match=word):
        check_url(url)


@pytest.mark.parametrize(
    "header",
    [
        ("", "x"),
        ("a b", "x"),
        ("a:", "x"),
        ("ä", "x"),
        ("a\r\nb", "x"),
        ("a", "x\ny"),
        ("a", "x\ry"),
        ("a", "x\x00"),
        ("a", " x"),
        ("a", "x "),
        ("a", "é"),
        ("Host", "evil"),
        ("Connection", "keep-alive"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "0"),
        ("Accept-Encoding", "gzip"),
        ("Expect", "100-continue"),
        ("Upgrade", "h2c"),
        ("Proxy-Authorization", "x"),
    ],
    ids=repr,
)
def test_a_header_that_could_reframe_the_request_is_refused(header):
    """No header ends the head early, and none that frames the exchange is the caller's to set."""
    with pytest.raises(ValueError, match=r"^headers\[0\]: "):
        check_request(WireRequest(method="POST", url="http://example.org/", headers=(header,)))


@pytest.mark.parametrize("header", [("a", ""), ("a", "x y\tz"), ("X-Odd.Name_1", "ü".encode().hex()), ("etag", '"x"')])
def test_an_ordinary_header_passes(header):
    """Empty values, inner blanks and odd but legal names are fine."""
    check_request(WireRequest(method="POST", url="http://example.org/", headers=(header,)))


@pytest.mark.parametrize("method", ["", "post", "POST ", "POST\r\n", "P\u00d6ST", "CONNECT", "TRACE", "A" * 40])
def test_a_method_that_is_no_plain_word_is_refused(method):
    """Methods are capital words; CONNECT belongs to the wire and TRACE would send credentials back."""
    with pytest.raises(ValueError, match="method"):
        check_request(WireRequest(method=method, url="http://example.org/"))


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "PROPFIND", "VERSION-CONTROL"])
def test_an_ordinary_method_passes(method):
    """HTTP's own methods and those of CalDAV."""
    check_request(WireRequest(method=method, url="http://example.org/"))


@pytest.mark.parametrize(
    "proxy",
    ["https://proxy.example:3128", "http://proxy.example/path", "http://proxy.example?x", "proxy:3128", "http://u:p@p"],
)
def test_a_proxy_is_a_bare_address(proxy):
    """A proxy is named as http://host:port; its credentials go into proxy_headers."""
    with pytest.raises(ValueError, match=r"^proxy"):
        check_request(WireRequest(method="POST", url="http://example.org/", proxy=proxy))


@pytest.mark.parametrize("verify", [False, "", 0, None])
def test_verification_cannot_be_switched_off(verify):
    """There is no value that means: trust whoever answers."""
    with pytest.raises(ValueError, match="verify"):
        check_request(WireRequest(method="POST", url="https://example.org/", verify=verify))
