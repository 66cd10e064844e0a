"""What the two sides of a PostgreSQL connection say to each other, as far as a wire must know it that cuts at a commit.

Of the protocol (version 3) this reads how messages are framed, what is bound to a statement, and how the server ends a
transaction. Whoever listens learns which writes of events a client has asked to be made durable, and which of them the
server has said that stand.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LENGTH_BYTES = 4
NEGOTIATIONS = frozenset({80877103, 80877104})
"""Codes by which a client asks for TLS or GSSAPI before it begins: each is answered by one bare byte."""
STARTS = 3
"""The major version of what begins a session."""
COMMIT = b"COMMIT\0"
IDLE = b"I"
"""No transaction is open."""
HASH_BYTES = 32
ROW_BYTES = 8
BYTEA, BIGINT = 17, 20
"""Types of which arrays are bound."""
_ARRAY = struct.Struct("!iiIii")


class Message(NamedTuple):
    """One message of a client's."""

    kind: bytes
    """Its letter; empty for what comes before a session begins."""
    whole: bytes

    @property
    def commits(self) -> bool:
        """Whether it asks for a transaction's end."""
        return self.kind == b"Q" and self.whole[1 + LENGTH_BYTES :] == COMMIT


class Write(NamedTuple):
    """What a client has bound to one statement that writes an event, or events."""

    values: Sequence[bytes]

    @property
    def records(self) -> list[bytes]:
        """The records of events among it."""
        return [value for value in self.values if _is_record(value)]

    @property
    def numbers(self) -> list[int]:
        """What may be the row number of an event or of its operation."""
        return [int.from_bytes(value, "big", signed=True) for value in self.values if len(value) == ROW_BYTES]


class Talk:
    """One connection, from its first byte on."""

    def __init__(self) -> None:
        self.backend = 0
        """The server's process; 0 until it has said so."""
        self.idle = True
        """No transaction is open."""
        self.readies = 0
        """How often the server has said that it waits for the next question."""
        self.writes: list[Write] = []
        """What is not answered yet."""
        self._begun = False
        self._negotiating = 0
        self._client = self._server = b""
        self._said: list[bytes] = []
        self._failed, self._tag = False, b""

    def asked(self, said: bytes) -> Iterator[Message]:
        """Take in what the client said, and give each message that is whole."""
        self._client += said
        while (size := _size(self._client, kind=int(self._begun))) is not None:
            whole, self._client = self._client[:size], self._client[size:]
            message = Message(whole[: int(self._begun)], whole)
            if not self._begun:
                self._before(whole)
            elif message.kind == b"B" and (write := Write(bound(whole))).records:
                self.writes.append(write)
            yield message

    def is_commit(self, message: Message) -> bool:
        """Whether a message makes writes durable, by itself or by ending the transaction that they stand in."""
        if message.kind == b"B":
            return self.idle and bool(self.writes) and bool(Write(bound(message.whole)).records)
        return message.commits and bool(self.writes)

    def answered(self, said: bytes) -> list[bytes]:
        """Take in what the server said; return the hashes of the events that it says are durable now."""
        if self._negotiating:
            said, self._negotiating = said[self._negotiating :], max(0, self._negotiating - len(said))
        self._server += said
        durable = []
        while (size := _size(self._server, kind=1)) is not None:
            whole, self._server = self._server[:size], self._server[size:]
            durable += self._hear(whole[:1], whole[1 + LENGTH_BYTES :])
        return durable

    def _before(self, whole: bytes) -> None:
        code = int.from_bytes(whole[LENGTH_BYTES : 2 * LENGTH_BYTES], "big")
        self._begun = code >> 16 == STARTS
        self._negotiating += code in NEGOTIATIONS

    def _hear(self, kind: bytes, body: bytes) -> list[bytes]:
        if kind == b"K":
            self.backend = int.from_bytes(body[:LENGTH_BYTES], "big")
        elif kind == b"E":
            self._failed = True
        elif kind == b"C":
            self._tag = body
        elif kind == b"D" and self.idle and self.writes:
            self._said.append(body[-HASH_BYTES:])  # a statement that writes by itself says the hash last
        elif kind == b"Z":
            return self._ready(body)
        return []

    def _ready(self, body: bytes) -> list[bytes]:
        self.readies += 1
        durable: list[bytes] = []
        if body == IDLE and not self._failed:
            durable = [write.values[-1] for write in self.writes] if self._tag == COMMIT else self._said
        if body == IDLE:
            self.writes = []
        self.idle, self._said, self._failed = body == IDLE, [], False
        return durable


def _is_record(value: bytes) -> bool:
    """Whether it is a JSON object: nothing else is that a store of receipts binds, not even an array as text."""
    if not value.startswith(b'{"'):
        return False
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False


def _size(said: bytes, *, kind: int) -> int | None:
    """How long the first message is; None while it is not whole."""
    if len(said) < kind + LENGTH_BYTES:
        return None
    size = kind + int.from_bytes(said[kind : kind + LENGTH_BYTES], "big")
    return size if len(said) >= size else None


def bound(message: bytes) -> list[bytes]:
    """The values that a Bind binds, those of arrays each; NULL is left out."""
    at = 1 + LENGTH_BYTES
    for _ in range(2):  # the names of the portal and of the statement
        at = message.index(b"\0", at) + 1
    at += 2 + 2 * int.from_bytes(message[at : at + 2], "big")  # the formats of what is bound
    values = _counted(message, at + 2, int.from_bytes(message[at : at + 2], "big"))
    return [each for value in values for each in _elements(value)]


def _counted(said: bytes, at: int, count: int) -> Iterator[bytes]:
    """So many values, each with its length before it."""
    for _ in range(count):
        size = int.from_bytes(said[at : at + LENGTH_BYTES], "big", signed=True)
        at += LENGTH_BYTES
        if size >= 0:
            yield said[at : at + size]
            at += size


def _elements(value: bytes) -> Iterator[bytes]:
    if len(value) >= _ARRAY.size:
        dimensions, _, kind, count, _ = _ARRAY.unpack_from(value)
        if dimensions == 1 and kind in {BYTEA, BIGINT}:
            yield from _counted(value, _ARRAY.size, count)
            return
    yield value
