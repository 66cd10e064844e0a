"""The catalogue: what providers document for one action each, as checked data."""

from __future__ import annotations

from counterfoil.contracts.loader import Flaw, lint, load, names, schema

__all__ = ["Flaw", "lint", "load", "names", "schema"]
