"""What verification can find wrong, each by the law it breaks."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Law(StrEnum):
    """What a violation breaks."""

    IDENTITY = "identity"
    """The id, the row number and the events belong together."""
    SEQUENCE = "sequence"
    """Events are numbered without a gap, and the operation names the last."""
    CHAIN = "chain"
    """Every event's hash covers it and the event before."""
    RECORD = "record"
    """Every record can be read as what its kind says."""
    BODY = "body"
    """A body that still exists is the one whose salted digest is on record."""
    AUTHORITY = "authority"
    """Nothing is dispatched without permission."""
    BASIS = "basis"
    """No second attempt without a recorded basis that held then."""
    EVIDENCE = "evidence"
    """Every finding rests on a source that can establish it."""
    JUDGEMENT = "judgement"
    """What is kept of an observation still proves what it is said to have found; asked by `verify --deep` only."""
    PROJECTION = "projection"
    """The columns are the fold of the events."""
    FILE = "file"
    """The file has its pages, indexes and guards; not a law of one operation."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that cannot be true of an honest record."""

    operation: str
    seq: int
    """Which of its events; 0: the operation's own row."""
    law: Law
    problem: str
