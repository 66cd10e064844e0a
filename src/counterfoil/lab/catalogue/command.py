"""`counterfoil-lab contracts --check`: the whole catalogue, or one contract of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from counterfoil import contracts
from counterfoil.lab.behaviour import model
from counterfoil.lab.catalogue.check import Checked, check
from counterfoil.lab.catalogue.journal import Journal
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.sabotage import MUTANTS
from counterfoil.lab.world.run import folder, virtual


def chosen(asked: Sequence[str]) -> list[str]:
    """The contracts to check: of the catalogue, those whose provider is described by a behaviour.

    Raises:
        RunFailed: there is none of that name.
    """
    names = [known for known in contracts.names() if known in model.names()]
    for name in asked:
        if name not in names:
            described = ", ".join(names)
            raise RunFailed(
                f"--contract {name}: no behaviour to check it against is described; there is one of: {described}"
            )
    return list(dict.fromkeys(asked)) or names


def run(
    names: list[str], keep: Path | None, step: Callable[[str], None], sabotage: str | None = None
) -> dict[str, Any]:
    """Check each contract and count.

    Args:
        names: of the catalogue.
        keep: gets a folder for each with what really happened.
        step: told of each when it is done.
        sabotage: the rule that is turned off in this very process.
    """
    if sabotage is not None:
        MUTANTS[sabotage]()
    rows = []
    with virtual(), folder() as top:
        for name in names:
            place = top / name
            place.mkdir()
            journal = Journal(place) if keep else None
            rows.append(check(contracts.load(name), model.load(name), place, journal))
            if keep is not None and journal is not None:
                journal.close()
                shutil.copytree(place, keep / name)
            step(name)
    return as_json(rows)


def as_json(rows: list[Checked]) -> dict[str, Any]:
    """The counts, and a row for each contract."""
    return {
        "contracts": len(rows),
        "passed": sum(row.passed for row in rows),
        "unsafe_answers": sum(len(row.unsafe) for row in rows),
        "weakened": sum(row.weakened for row in rows),
        "weakened_caught": sum(len(row.caught) for row in rows),
        "equivalent": sum(len(row.equivalent) for row in rows),
        "cases": sum(row.cases for row in rows),
        "rows": [_row(row) for row in rows],
        "ok": bool(rows) and all(row.passed for row in rows),
    }


def _row(row: Checked) -> dict[str, Any]:
    return {
        "contract": row.id, "provider": row.provider, "mechanism": row.mechanism, "cases": row.cases,
        "passed": row.passed, "unsafe": sorted(set(row.unsafe)), "misfits": row.misfits, "weakened": row.weakened,
        "caught": row.caught, "survivors": row.survivors, "equivalent": row.equivalent,
        "outcomes": dict(row.outcomes), "seconds": row.seconds,
    }  # fmt: skip
