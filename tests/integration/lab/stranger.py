"""The stranger's count: `scripts/recount.py` by itself, as whoever trusts nobody would run it over what was kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RECOUNT = Path(__file__).parents[3] / "scripts" / "recount.py"
SECONDS = 120
AGREES, DISAGREES, UNREPORTED = 0, 1, 3


def told(folder, *arguments):
    """The exit code, which is one of a folder that can be counted, and what was printed."""
    argv = [sys.executable, "-I", RECOUNT, folder, *arguments]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.returncode in (AGREES, DISAGREES, UNREPORTED), run.stderr
    return run.returncode, run.stdout


def recount(folder):
    """The exit code and everything that was counted."""
    code, printed = told(folder, "--json")
    return code, json.loads(printed)


def disagreements(folder):
    """The exit code and what the report says otherwise."""
    code, counts = recount(folder)
    return code, counts["disagreements"]
