"""Mutants of the disk: what is answered before it is kept."""

from __future__ import annotations


def synchronous_normal() -> None:
    """Answer before the log is synced, as SQLite does by itself where speed is what counts."""
    from counterfoil.lab.images.weakened import weaken

    weaken("NORMAL")
