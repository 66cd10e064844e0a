"""A certificate as JUnit XML: one test case per accident, for whatever reads test results."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from counterfoil.cli.terminal import safe
from counterfoil.lab.accident import ACCIDENTS
from counterfoil.lab.certify import Trial
from counterfoil.lab.failure import RunFailed

SUITE = "counterfoil-lab certify"


def checked(path: Path | None) -> Path | None:
    """Return where to write, if anywhere, before a run that would be in vain.

    Raises:
        RunFailed: nothing can be written there.
    """
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise RunFailed(f"--junit {path}: is no file in a folder that exists")
    return path


def write(path: Path, trials: Sequence[Trial]) -> None:
    """Write every case, with what stands against it as its failure."""
    failed = sum(bool(trial.against) for trial in trials)
    total = sum(trial.seconds for trial in trials)
    suite = ET.Element(
        "testsuite", name=SUITE, tests=str(len(trials)), failures=str(failed), errors="0", skipped="0",
        time=f"{total:.3f}",
    )  # fmt: skip
    for trial in trials:
        row = trial.row
        case = ET.SubElement(
            suite, "testcase", classname=safe(row.subject), name=f"{row.case}: {ACCIDENTS[row.case].told}",
            time=f"{trial.seconds:.3f}",
        )  # fmt: skip
        if trial.against:
            ET.SubElement(case, "failure", message=trial.against, type=f"case {row.case}")
        figures = ", ".join(f"{name} {value}" for name, value in row._asdict().items() if name != "subject")
        ET.SubElement(case, "system-out").text = figures
    ET.indent(suite)
    path.write_bytes(ET.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n")
