"""Just enough HTTP/1.1 to know where a request and its reply end (RFC 9112, section 6), every byte kept as it came."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

HEAD_BYTES_MAX = 1 << 16
"""Larger heads than this are refused by common servers too."""

BODY_BYTES_MAX = 64 << 20
"""A whole body is held in memory, because its reply may have to be lost whole."""

_LINE_END, _HEAD_END = b"\r\n", b"\r\n\r\n"
_INFORMATIONAL = range(100, 200)
_BODILESS = frozenset({204, 304})


class Unreadable(ValueError):
    """The bytes end too early, are too many, or are no HTTP/1.1; whoever sent them gets no answer."""

    def __init__(self, why: str, head: bytes = b"") -> None:
        super().__init__(why)
        self.head = head
        """The whole head, where at least that was readable: the body was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One request or one reply."""

    head: bytes
    sent_body: bytes = b""
    """The body as framed on the wire."""
    body: bytes = b""
    """The body itself, without chunk framing."""
    last: bool = False
    """Whether the connection ends after it."""

    @property
    def raw(self) -> bytes:
        """Every byte, as it came."""
        return self.head + self.sent_body

    @property
    def start(self) -> list[str]:
        """The words of the first line."""
        return start_of(self.head)


def start_of(head: bytes) -> list[str]:
    """Return the words of the first line of a head; three where it is HTTP."""
    return head.split(_LINE_END, 1)[0].decode("latin-1").split(" ", 2)


async def read_request(reader: asyncio.StreamReader) -> Message | None:
    """Read one request, or None when the other side has nothing more to ask.

    Raises:
        Unreadable: the request is cut, too large or not HTTP.
    """
    head = await _head(reader)
    if head is None:
        return None
    fields = _fields(head)
    try:
        sent, body = await _framed(reader, fields, nothing_means_empty=True)
    except Unreadable as cut:
        raise Unreadable(str(cut), head) from cut
    return Message(head=head, sent_body=sent, body=body, last=_last(head, fields))


async def read_reply(reader: asyncio.StreamReader, method: str) -> Message:
    """Read the final reply to a request, whatever interim ones come before it.

    Raises:
        Unreadable: the reply is cut, too large or not HTTP, or there is none.
    """
    while True:
        head = await _head(reader)
        if head is None:
            raise Unreadable("the server closed without a reply")
        status = int(start_of(head)[1])
        if status not in _INFORMATIONAL:
            break
    fields = _fields(head)
    if method == "HEAD" or status in _BODILESS:
        return Message(head=head, last=_last(head, fields))
    sent, body = await _framed(reader, fields, nothing_means_empty=False)
    framed = "content-length" in fields or _chunked(fields)
    return Message(head=head, sent_body=sent, body=body, last=_last(head, fields) or not framed)


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    try:
        head = await reader.readuntil(_HEAD_END)
    except asyncio.IncompleteReadError as ended:
        if ended.partial:
            raise Unreadable("the head is cut") from ended
        return None
    except asyncio.LimitOverrunError as large:
        raise Unreadable("the head is too large") from large
    words = start_of(head)
    version, number = words[-1], words[1] if words[0].startswith("HTTP/") else "0"
    if not number.isdigit() or not (words[0].startswith("HTTP/1.") or version.startswith("HTTP/1.")):
        raise Unreadable("this is not HTTP/1.1")
    return head


async def _framed(
    reader: asyncio.StreamReader, fields: dict[str, str], *, nothing_means_empty: bool
) -> tuple[bytes, bytes]:
    """Read a body and return it as framed and as meant."""
    try:
        if _chunked(fields):
            return await _chunks(reader)
        if "content-length" in fields:
            body = await reader.readexactly(_bounded(int(fields["content-length"])))
            return body, body
        body = b"" if nothing_means_empty else await _rest(reader)
        return body, body
    except asyncio.IncompleteReadError as cut:
        raise Unreadable("the body is cut") from cut
    except Unreadable:
        raise
    except (asyncio.LimitOverrunError, ValueError) as wrong:
        raise Unreadable("the body has no readable length") from wrong


async def _rest(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while piece := await reader.read(HEAD_BYTES_MAX):
        body += piece
        _bounded(len(body))
    return body


async def _chunks(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    sent, body = b"", b""
    while True:
        line = await reader.readuntil(_LINE_END)
        size = _bounded(int(line.split(b";", 1)[0], 16))
        sent += line
        if size == 0:
            break
        chunk = await reader.readexactly(size + len(_LINE_END))
        sent, body = sent + chunk, body + chunk[:size]
        _bounded(len(body))
    while (line := await reader.readuntil(_LINE_END)) != _LINE_END:  # trailers
        sent += line
        _bounded(len(sent))
    return sent + _LINE_END, body


def _bounded(size: int) -> int:
    if not 0 <= size <= BODY_BYTES_MAX:
        raise Unreadable("the body is too large")
    return size


def _fields(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _chunked(fields: dict[str, str]) -> bool:
    return fields.get("transfer-encoding", "").lower().endswith("chunked")


def _last(head: bytes, fields: dict[str, str]) -> bool:
    wish = fields.get("connection", "").lower()
    old = b"HTTP/1.0" in head.split(_LINE_END, 1)[0]
    return wish == "close" or (old and wish != "keep-alive")
