"""Contracts of the catalogue with shorter budgets: a laboratory run must not wait for what people would wait for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.contracts.loader import CATALOGUE

_HEAD = """\
# A copy of {name} for one laboratory run. Only how long is waited differs from the catalogue, and what may be read:
# {changed}.
# What the provider documents is unchanged. It is named for what it is: receipts say {name}.brief.
"""


def write_copy(folder: Path, name: str, changes: Mapping[str, Any]) -> Path:
    """Write a copy of a catalogue contract that says of itself what it changes.

    Args:
        folder: where it stands.
        name: the contract's name in the catalogue.
        changes: by top-level clause, the fields that differ; a plain value replaces the clause.
    """
    import yaml

    found = yaml.safe_load((CATALOGUE / f"{name}.yaml").read_text("utf-8"))
    for clause, change in changes.items():
        found[clause] = {**found.get(clause, {}), **change} if isinstance(change, Mapping) else change
    found["id"] = f"{name}.brief"
    path = folder / f"{name}.yaml"
    head = _HEAD.format(name=name, changed=", ".join(sorted(changes)) or "nothing")
    path.write_text(head + yaml.safe_dump(found, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path
