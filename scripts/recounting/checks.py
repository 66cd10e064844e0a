"""Contracts that were checked: every case that was played, with what was sent and what happened in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from recounting.ground import EFFECTS, WIRE, Counts, lines
from recounting.kinds import CASES


def checks(top: Path) -> Counts:
    """Count the cases of every contract."""
    runs = {path.parent.name: contract(path.parent) for path in sorted(top.glob(f"*/{CASES}"))}
    return {
        "contracts": len(runs),
        "cases": sum(run["cases"] for run in runs.values()),
        "unsafe_answers": sum(run["unsafe_answers"] for run in runs.values()),
        "cases_unlike": sum(run["cases_unlike"] for run in runs.values()),
        "runs": runs,
    }


def contract(folder: Path) -> Counts:
    """Count the cases of one contract, and hold what each says of itself against the journals of all."""
    cases = lines(folder / CASES) or []
    happened = Counter(entry["case"] for entry in lines(folder / EFFECTS) or [])
    sent = Counter(entry["case"] for entry in lines(folder / WIRE) or [])
    unlike = [case for case in cases if (case["effects"], case["sent"]) != (happened[case["case"]], sent[case["case"]])]
    strays = (happened.keys() | sent.keys()) - {case["case"] for case in cases}
    return {
        "cases": len(cases),
        "outcomes": dict(Counter(f"{case['scenario']}: {case['outcome']}" for case in cases)),
        "unsafe": sorted({word for case in cases for word in case["unsafe"]}),
        "unsafe_answers": sum(len(case["unsafe"]) for case in cases),
        "cases_unlike": len(unlike) + len(strays),
    }
