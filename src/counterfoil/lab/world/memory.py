"""A spool that stands in the world's own memory: it survives its process, as files do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

Spooled = tuple[Path, str, bytes, bytes | None]

_numbers = itertools.count()
"""No name is ever given twice, as in the real one: what was taken is that one and no later one."""


class MemorySpool:
    """The same promises as `runtime.spool.Spool`, in the order in which answers came.

    Args:
        kept: what is spooled, shared by every process of the world.
        seen: counts a situation.
    """

    def __init__(self, kept: list[Spooled], seen: Callable[[str], None]) -> None:
        self._kept, self._seen = kept, seen

    def put(self, operation: str, record: bytes, body: bytes | None) -> bool:
        """Keep one observation."""
        self._seen("an answer was spooled")
        self._kept.append((Path(f"{operation}.{next(_numbers)}"), operation, record, body))
        return True

    def waiting(self) -> Iterator[Spooled]:
        """Every observation that waits."""
        yield from tuple(self._kept)

    def taken(self, path: Path) -> None:
        """The store has it now."""
        self._kept[:] = [one for one in self._kept if one[0] != path]
