"""The public types: right use passes, wrong use fails, line by line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def _checked(name: str) -> tuple[int, set[int]]:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--explicit-package-bases",
        str(HERE / name),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    lines = {int(m.group(1)) for m in re.finditer(rf"{re.escape(name)}:(\d+): error", run.stdout)}
    return run.returncode, lines


def test_right_use_passes() -> None:
    """A guarded function keeps its arguments, and its receipt has a type."""
    assert _checked("right.py") == (0, set())


def test_wrong_use_is_refused_line_by_line() -> None:
    """Every line marked as refused is an error, and no other line is."""
    marked = {
        number
        for number, line in enumerate((HERE / "wrong.py").read_text().splitlines(), 1)
        if line.endswith("# refused")
    }
    code, lines = _checked("wrong.py")
    assert (code, lines) == (1, marked)
