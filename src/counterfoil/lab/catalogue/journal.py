"""What really happened in each case, a line each, as the laboratory's other runs leave it."""

from __future__ import annotations

import json
from pathlib import Path

from counterfoil.lab.catalogue.playing import Result


class Journal:
    """The ground truth of one contract.

    Args:
        folder: gets `effects.jsonl`, `wire.jsonl` and `cases.jsonl`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: dict[str, list[str]] = {"effects": [], "wire": [], "cases": []}

    def add(self, number: int, result: Result) -> None:
        """Write one case down."""
        run, case = result.run, result.case
        for effect in result.effects:
            self._add(
                "effects", case=number, at=effect.at, wire=effect.wire, account=effect.account, thing=effect.thing
            )
        for wire, sent in enumerate(run.crossings.sent, 1):
            self._add("wire", case=number, wire=wire, at=sent.at, basis=sent.basis)
        said = {"outcome": run.outcome.value, "sent": len(run.crossings.sent), "unsafe": list(result.unsafe)}
        self._add("cases", case=number, scenario=case.scenario, key=run.key, effects=len(result.effects), **said)

    def _add(self, log: str, **entry: object) -> None:
        self._lines[log].append(json.dumps(entry, sort_keys=True))

    def close(self) -> None:
        """Leave the files."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for log, lines in self._lines.items():
            (self._folder / f"{log}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
