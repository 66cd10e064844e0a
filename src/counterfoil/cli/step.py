"""One thing somebody might do about an operation, as it is drawn."""

from __future__ import annotations

import msgspec


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing somebody might do."""

    name: str
    allowed: bool
    because: str
    command: str = ""
