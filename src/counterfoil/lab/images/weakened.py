"""A store that promises too early: what the images must notice, or they would notice nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from counterfoil.store import opening


def weaken(level: str) -> Callable[[], None]:
    """Let every connection of this process keep less than the product makes sure of, behind its back.

    Args:
        level: SQLite's word for `PRAGMA synchronous`.

    Returns:
        What undoes it.
    """
    changed: Any = opening
    settings = opening._settings  # noqa: SLF001 - replaced as by every mutant: in this process, from outside

    def behind(db: sqlite3.Connection, path: Path, *, writes: bool) -> None:
        settings(db, path, writes=writes)
        db.execute(f"PRAGMA synchronous = {level}")

    def mend() -> None:
        changed._settings = settings  # noqa: SLF001 - likewise

    changed._settings = behind  # noqa: SLF001 - likewise
    return mend
