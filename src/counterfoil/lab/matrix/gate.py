"""What stands under the store of a life in which the disk fails: it passes everything on until it is shut."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from counterfoil.lab.images.disk import Operation
from counterfoil.lab.images.faults import KINDS

CODES: Mapping[str, Mapping[str, int]] = {
    "full": KINDS["full"].codes,
    "io_error": {act: code for act, code in KINDS["io_error"].codes.items() if act in ("write", "sync")},
    "read_only": {"write": 8},
    "locked": KINDS["busy"].codes,
}
"""By fault, SQLite's number of the error for each act that fails."""


class Gate:
    """A `Watch` that refuses while it is shut."""

    def __init__(self) -> None:
        self._codes: Mapping[str, int] = {}
        self._until = 0.0
        self.clock: Callable[[], float] = lambda: 0.0
        self.refusals = 0

    def shut(self, codes: Mapping[str, int], *, until: float) -> None:
        """Answer these acts with these errors until then."""
        self._codes, self._until = codes, until

    def refused(self, act: str, file: str) -> int:
        """The error an act is answered with; 0: it is carried out."""
        del file
        code = self._codes.get(act, 0) if self.clock() <= self._until else 0
        self.refusals += code != 0
        return code

    def done(self, operation: Operation) -> None:
        """Nothing is recorded."""
