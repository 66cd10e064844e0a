"""Mutants of the disk: what is answered before it is kept."""

from __future__ import annotations

import importlib


def synchronous_normal() -> None:
    """Answer before the log is synced, as SQLite does by itself where speed is what counts."""
    importlib.import_module("counterfoil.lab.images.weakened").weaken("NORMAL")
