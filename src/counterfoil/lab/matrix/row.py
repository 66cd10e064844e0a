"""A row of the matrix: one fault point, what must be durable after it, and what must not be done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from counterfoil.lab.matrix.life import Life

Lives = Callable[[str], tuple[Life, ...]]
"""The lives of one row's cell, by the kind's code in the table."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One fault point."""

    number: int
    """As in the table."""
    point: str
    """Where the fault strikes."""
    requires: str
    """What must be durable right after it, and what may follow, in one sentence."""
    never: str
    """What must not follow."""
    lives: Lives | None = None
    """None where what it is about is not built."""
    noticed: Mapping[str, str] | str = ""
    """The mutant that makes the cell fail; by code where it differs, with `*` for the others."""
    real: Callable[[str, Path], list[str]] | None = None
    """What a virtual world cannot show: plays it for real and says what is not as it must be."""
    awaits: str = ""
    """What will build what it is about."""

    def mutant(self, code: str) -> str:
        """The mutant that makes this kind's cell fail."""
        if isinstance(self.noticed, str):
            return self.noticed
        return self.noticed.get(code, self.noticed.get("*", ""))
