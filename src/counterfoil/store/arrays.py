"""Columns of many rows on their way into a statement, in PostgreSQL's binary form: psycopg's own way costs thrice."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format

_NULL = struct.pack(">i", -1)
_length = struct.Struct(">i").pack


class Texts(bytes):
    """A `text[]`."""


class Blobs(bytes):
    """A `bytea[]`."""


class Integers(bytes):
    """A `bigint[]`."""


class Floats(bytes):
    """A `double precision[]`."""


def _head(kind: int, count: int, *, nulls: bool = False) -> bytes:
    """One dimension of so many elements, from the first on."""
    return struct.pack(">iiiii", 1, nulls, kind, count, 1)


def _parts(values: Sequence[bytes | None]) -> bytes:
    return b"".join([_NULL if v is None else _length(len(v)) + v for v in values])


def texts(values: Sequence[str]) -> Texts:
    """Pack texts."""
    return Texts(_head(25, len(values)) + _parts([v.encode() for v in values]))


def blobs(values: Sequence[bytes | None]) -> Blobs:
    """Pack bytes, and NULL for None."""
    return Blobs(_head(17, len(values), nulls=None in values) + _parts(values))


def integers(values: Sequence[int]) -> Integers:
    """Pack whole numbers."""
    return Integers(_head(20, len(values)) + struct.pack(">" + "iq" * len(values), *_sized(values)))


def floats(values: Sequence[float]) -> Floats:
    """Pack numbers."""
    return Floats(_head(701, len(values)) + struct.pack(">" + "id" * len(values), *_sized(values)))


def _sized(values: Sequence[Any]) -> list[Any]:
    return [part for value in values for part in (8, value)]


PACKS: dict[str, Callable[[Any], bytes]] = {
    "text": texts, "bytea": blobs, "bigint": integers, "double precision": floats,
}  # fmt: skip
"""By the name of an element's type."""

_OIDS: dict[type, int] = {Texts: 1009, Blobs: 1001, Integers: 1016, Floats: 1022}


def register(adapters: AdaptersMap) -> None:
    """Have what was packed here sent as it is."""
    for packed, oid in _OIDS.items():
        adapters.register_dumper(packed, type(f"{packed.__name__}Dumper", (_AsItIs,), {"oid": oid}))


class _AsItIs(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj
