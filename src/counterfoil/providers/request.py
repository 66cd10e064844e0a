"""One HTTP request as it will stand on the wire, checked before anything is declared or sent."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import msgspec

HEAD_BYTES_MAX = 64 * 1024
"""Reply heads beyond this are a flood: common servers refuse to write more than 8 to 64 KiB themselves."""
BODY_BYTES_MAX = 1024 * 1024
"""What one reply may weigh in memory and in the store; a receipt needs an id and a state, not a download."""
SETUP_SECONDS_MAX = 15.0
"""Name, connection, proxy and TLS together: nothing has left yet, so giving up early costs nothing."""
DEADLINE_SECONDS_MAX = 86_400
"""A day: whoever waits longer for one answer wants a look later, not a connection."""
URL_CHARS_MAX = 8192
"""Above what servers take; RFC 9112 section 3 asks for at least 8000."""
HOST_CHARS_MAX = 253
LABEL_CHARS_MAX = 63
PORT_MAX = 65535
DEFAULT_PORTS = (("http", 80), ("https", 443))

OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that frame the one exchange: set here or not at all, never by a caller."""

_METHOD = re.compile(r"[A-Z][A-Z-]{0,31}")
_NO_METHOD = frozenset({"CONNECT", "TRACE"})
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)")
_TARGET = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?P<port>:.*)?")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_PORT = re.compile(r":[0-9]{1,5}")
_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one exchange may read, and how long it may take before its first byte leaves."""

    head_bytes_max: int = HEAD_BYTES_MAX
    body_bytes_max: int = BODY_BYTES_MAX
    setup_seconds_max: float = SETUP_SECONDS_MAX

    def __post_init__(self) -> None:
        if not (self.head_bytes_max >= 0 and self.body_bytes_max >= 0 and self.setup_seconds_max >= 0):
            raise ValueError("a limit is a number that is not negative")


class WireRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one exchange needs; it holds secrets, so it shows none of itself."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    proxy: str | None = None
    """An http:// proxy, named on purpose; the environment is never asked."""
    proxy_headers: tuple[tuple[str, str], ...] = ()
    """For the proxy alone, such as `proxy-authorization`; never sent through a tunnel."""
    verify: bool | str = True
    """True for the public certificate authorities, or the path of a file or folder of trusted ones; never False."""
    secrets: tuple[str, ...] = ()
    """Resolved secrets this request carries: where the reply echoes one, it is masked or its header dropped."""

    def __repr__(self) -> str:
        return f"WireRequest(body_bytes={len(self.body)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Show terminals no more than `repr` does."""
        return [("body_bytes", len(self.body))]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a URL leads, taken apart."""

    scheme: str
    host: str
    """Without the brackets of an IPv6 address."""
    port: int
    path: str
    """Path and query, exactly as given."""

    @property
    def authority(self) -> str:
        """The host as a Host header names it: the port only where it is not the usual one."""
        return self.bracketed if (self.scheme, self.port) in DEFAULT_PORTS else f"{self.bracketed}:{self.port}"

    @property
    def bracketed(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __repr__(self) -> str:
        return "Target()"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Show terminals no more than `repr` does."""
        return []


def check_url(url: str) -> None:
    """Refuse a URL that could not be sent exactly as it is written; the message names the fault, never the URL.

    Raises:
        ValueError: userinfo, another scheme, a fragment, a host that is not plain ASCII, a port out of range, or a
            character that RFC 3986 wants percent-encoded.
    """
    parse_url(url)


def parse_url(url: str) -> Target:
    """Take a URL apart without changing a byte of it, under the rules of `check_url`."""
    if len(url) > URL_CHARS_MAX:
        raise ValueError(f"url: longer than {URL_CHARS_MAX} characters")
    if "#" in url:
        raise ValueError("url: a fragment is never sent to a server; leave it away")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError("url: not absolute; it begins with http:// or https://")
    scheme = parts["scheme"].lower()
    if scheme not in {"http", "https"}:
        raise ValueError("url: the scheme is neither http nor https")
    if "@" in parts["authority"]:
        raise ValueError("url: userinfo (user:password@) is refused; send credentials as a secret header")
    place = _TARGET.match(parts["target"])
    if place is None or place.end() != len(parts["target"]):
        raise ValueError("url: path or query holds a character that must be percent-encoded")
    host, port = _authority(parts["authority"], dict(DEFAULT_PORTS)[scheme])
    path = parts["target"] if parts["target"].startswith("/") else "/" + parts["target"]
    return Target(scheme=scheme, host=host, port=port, path=path)


def _authority(authority: str, default_port: int) -> tuple[str, int]:
    # Before any change of case: the Kelvin sign, for one, becomes an ASCII k.
    if not authority.isascii():
        raise ValueError("url: the host is not ASCII; write it in its xn-- form")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise ValueError("url: the host is not readable")
    port = default_port
    if parts["port"] is not None:
        if not _PORT.fullmatch(parts["port"]) or not 0 < int(parts["port"][1:]) <= PORT_MAX:
            raise ValueError(f"url: the port is not a number from 1 to {PORT_MAX}")
        port = int(parts["port"][1:])
    host = parts["host"].lower()
    if host.startswith("["):
        if not _is_address(host[1:-1], ipaddress.IPv6Address):
            raise ValueError("url: what stands in brackets is not an IPv6 address")
        return host[1:-1], port
    _check_name(host)
    return host, port


def _check_name(host: str) -> None:
    labels = host.removesuffix(".").split(".")
    fits = len(host) <= HOST_CHARS_MAX and all(
        len(label) <= LABEL_CHARS_MAX and _LABEL.fullmatch(label) for label in labels
    )
    if not fits:
        raise ValueError("url: the host is missing or not a host name")
    # Resolvers read 127.1, 2130706433 and 0x7f.1 as addresses: what looks like a number is a dotted quad or refused.
    if _NUMBER.fullmatch(labels[-1]) and not _is_address(host, ipaddress.IPv4Address):
        raise ValueError("url: the host looks like an IPv4 address and is none")


def _is_address(text: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return "%" not in text  # a zone names a local interface, which means nothing to a server's certificate


def check_request(request: WireRequest) -> None:
    """Refuse a request that could not be sent exactly as it is written; messages never hold a value of it.

    Raises:
        ValueError: what `check_url` refuses, a method that is no plain word, a header that is malformed or is ours
            to set, a proxy that is not a bare http:// address, or `verify` switched off.
    """
    check_url(request.url)
    if not _METHOD.fullmatch(request.method) or request.method in _NO_METHOD:
        raise ValueError("method: not a word of capital letters, or one that is never sent (CONNECT, TRACE)")
    if not isinstance(request.body, bytes):
        raise TypeError("body: not bytes")
    for place, (name, value) in enumerate(request.headers):
        _check_header(f"headers[{place}]", name, value)
        if name.lower().startswith("proxy-"):
            raise ValueError(f"headers[{place}]: what is for a proxy stands in proxy_headers")
    for place, (name, value) in enumerate(request.proxy_headers):
        _check_header(f"proxy_headers[{place}]", name, value)
    _check_proxy(request)
    if any(_SURROGATE.search(secret) for secret in request.secrets):
        raise ValueError("secrets: one of them is not text that UTF-8 can carry")
    if request.verify is not True and not (isinstance(request.verify, str) and request.verify):
        raise ValueError("verify: True or the path of trusted certificates; it cannot be switched off")


def _check_header(place: str, name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{place}: its name is not a header name")
    if name.lower() in OURS:
        raise ValueError(f"{place}: {name.lower()} frames the exchange and is not the caller's to set")
    if not _VALUE.fullmatch(value):
        raise ValueError(
            f"{place}: the value of {name.lower()} has a line break, a character outside ASCII or a margin"
        )


def _check_proxy(request: WireRequest) -> None:
    if request.proxy is None:
        if request.proxy_headers:
            raise ValueError("proxy_headers: there is no proxy to send them to")
        return
    proxy = _parse_proxy(request.proxy)
    if proxy.scheme != "http" or proxy.path != "/":
        raise ValueError("proxy: not of the form http://host:port")


def _parse_proxy(proxy: str) -> Target:
    fault = ""
    try:
        return parse_url(proxy)
    except ValueError as error:
        fault = str(error)
    # Raised out here so that no chain of exceptions leads from one message to another.
    raise ValueError("proxy " + fault)


def check_deadline(seconds: float) -> None:
    """Refuse a deadline that is no number of seconds; zero and less are numbers, and mean that it has passed."""
    # Written so that NaN fails it too.
    if not seconds <= DEADLINE_SECONDS_MAX:
        raise ValueError(f"deadline: not a number of at most {DEADLINE_SECONDS_MAX} seconds")
