"""What one exchange has learnt so far: kept up to date while bytes move, so that an interruption loses none of it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from counterfoil.domain.answer import Replied, Silent

SECRET_CHARS_MIN = 8
"""Shorter secrets are not searched for: a PIN of four digits stands in half of all ids, and masking those would
falsify evidence."""

SECRET_HEADERS = frozenset(
    {
        "authentication-info",
        "authorization",
        "cookie",
        "set-cookie",
        "set-cookie2",
        "www-authenticate",
        "x-access-token",
        "x-amz-security-token",
        "x-api-key",
        "x-auth-token",
        "x-csrf-token",
        "x-session-token",
        "x-xsrf-token",
    }
)
"""Reply headers that carry credentials or sessions: dropped, so that none of them is ever at rest."""
SECRET_PREFIX = "proxy-"  # noqa: S105 - the beginning of header names, no password
ADDRESS_HEADERS = frozenset({"content-location", "location"})
"""Reply headers that hold a URL, whose query may echo an API key or be a signature that opens a door."""

STATUS_LINE = re.compile(rb"HTTP/[0-9]\.[0-9] ([2-9][0-9]{2})(?: [^\x00\r\n]*)?\r?\n")
_USERINFO = re.compile(r"//[^/@]*@")
_PERCENT = re.compile(r"%[0-9A-F]{2}")
_WARY = frozenset("\"&'+<>`")
"""What JSON encoders that fear HTML write as \\uXXXX."""


class Reason(StrEnum):
    """Every word that a `Silent` or an incomplete `Replied` of the wire may give as its reason."""

    BAD_REQUEST = "bad_request"
    """The request, its deadline or its trusted certificates are unusable."""
    DEADLINE = "deadline"
    """The time was over before anything was begun."""
    DNS_FAILED = "dns_failed"
    DNS_TIMEOUT = "dns_timeout"
    CONNECT_FAILED = "connect_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    PROXY_FAILED = "proxy_failed"
    PROXY_REFUSED = "proxy_refused"
    PROXY_TIMEOUT = "proxy_timeout"
    TLS_FAILED = "tls_failed"
    TLS_TIMEOUT = "tls_timeout"
    WRITE_TIMEOUT = "write_timeout"
    READ_TIMEOUT = "read_timeout"
    RESET = "reset"
    CLOSED = "closed"
    """The peer closed without a word."""
    BROKEN = "broken"
    """The connection failed in another way than by a reset."""
    GARBAGE = "garbage"
    """What came is not of the protocol."""
    OUT_OF_STEP = "out_of_step"
    """The peer spoke where it was not asked: none of its replies can be told to answer what was."""
    INFORMATIONAL_FLOOD = "informational_flood"
    HEAD_CUT = "head_cut"
    HEAD_MALFORMED = "head_malformed"
    HEAD_TOO_LARGE = "head_too_large"
    BODY_CUT = "body_cut"
    BODY_MALFORMED = "body_malformed"
    BODY_TOO_LARGE = "body_too_large"
    LENGTH_MISMATCH = "length_mismatch"
    """More came than the reply had announced."""
    ENCODED = "encoded"
    """A content coding nobody asked for; the bytes are kept as they came."""
    INTERRUPTED = "interrupted"
    """An exception that is not ours, such as KeyboardInterrupt, passed through."""


class Flight(msgspec.Struct, kw_only=True):
    """The state of one exchange, readable at any moment by whoever passed it in."""

    may_have_left: bool = False
    """Set immediately before the first byte that the effect may come of is handed to the socket."""
    status: int | None = None
    """Set as soon as a whole final status line was read."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytearray = msgspec.field(default_factory=bytearray)
    secrets: tuple[str, ...] = ()

    def answer(self, reason: Reason | None = Reason.INTERRUPTED) -> Replied | Silent:
        """Say what is known now; `reason` is None only when the reply was read to its end and is sound."""
        if self.status is None:
            return Silent(may_have_left=self.may_have_left, reason=(reason or Reason.CLOSED).value)
        return Replied(
            status=self.status,
            headers=self.headers,
            body=_masked(bytes(self.body), self.secrets),
            complete=reason is None,
            reason="" if reason is None else reason.value,
        )

    def note_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep the final status and the headers that may be kept."""
        self.status = status
        forms = _forms(self.secrets)
        texts = ((name.decode("ascii").lower(), value.decode("latin-1")) for name, value in headers)
        kept = ((name, _without_query(value) if name in ADDRESS_HEADERS else value) for name, value in texts)
        self.headers = tuple(
            (name, value)
            for name, value in kept
            if name not in SECRET_HEADERS
            and not name.startswith(SECRET_PREFIX)
            and not any(form in value for form in forms)
        )

    def __repr__(self) -> str:
        return f"Flight(may_have_left={self.may_have_left}, status={self.status})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Show terminals no more than `repr` does."""
        return [("may_have_left", self.may_have_left), ("status", self.status)]


def _without_query(url: str) -> str:
    return _USERINFO.sub("//", re.split(r"[?#]", url, maxsplit=1)[0], count=1)


def _forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """How a server may write back what it was sent, the user and password of a Basic credential included."""
    parts = {part for secret in secrets for part in (secret, *_pair(secret)) if len(part) >= SECRET_CHARS_MIN}
    return tuple(sorted(set().union(*map(_spellings, parts)), key=len, reverse=True))


def _pair(secret: str) -> tuple[str, ...]:
    """Whom and what a Basic credential names in the clear (RFC 7617 section 2)."""
    scheme, _, coded = secret.partition(" ")
    if scheme.lower() != "basic":
        return ()
    try:
        pair = base64.b64decode(coded, validate=True).decode()
    except ValueError:
        return ()
    return pair, pair.partition(":")[2]


def _spellings(secret: str) -> set[str]:
    """A secret as it is, percent-encoded, as JSON text in the ways of common encoders, in base64 and in hex."""
    octets, coded = secret.encode(), base64.b64encode(secret.encode()).decode()
    percent, text = quote(secret, safe=""), json.dumps(secret)[1:-1]
    wary = "".join(f"\\u{ord(c):04X}" if c in _WARY else c for c in secret.replace("\\", "\\\\"))
    return {
        *(secret, percent, _PERCENT.sub(lambda found: found[0].lower(), percent), quote_plus(secret)),
        *(text, text.replace("/", "\\/"), wary, coded, coded.replace("+", "-").replace("/", "_")),
        *(octets.hex(), octets.hex().upper()),
    }


_ESCAPED = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\u00(2[013-9A-Fa-f]|[34][0-9A-Fa-f]|5[0-9abdefABDEF]|6[0-9A-Fa-f]|7[0-9A-Ea-e])"
)
"""A printable letter of ASCII in JSON's long form, but for the quote and the backslash."""


def _masked(body: bytes, secrets: Iterable[str]) -> bytes:
    if secrets and b"\\u00" in body:
        # An encoder may write any letter as an escape: the same JSON with plain letters is what is searched and kept.
        body = _ESCAPED.sub(lambda found: found[1] + bytes([int(found[2], 16)]), body)
    for form in _forms(secrets):
        # The same length keeps JSON readable and content lengths true.
        body = body.replace(form.encode(), b"*" * len(form.encode()))
    return body
