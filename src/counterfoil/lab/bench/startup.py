"""What starting costs: CPU milliseconds of a whole process above bare Python, measured in turn."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

RUNS = 9
IMPORT = "import counterfoil; counterfoil.open"


def cpu_ms(arguments: list[str], environment: Mapping[str, str]) -> float:
    """CPU time of one child process, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, timeout=60, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def above_bare(arguments: list[str]) -> float:
    """The median over runs of a command's CPU time less that of `python -c pass` beside it.

    Byte code is compiled once, into a folder of its own: where PYTHONDONTWRITEBYTECODE is set, compiling every module
    anew would be most of the figure, and no installed package does that.
    """
    with tempfile.TemporaryDirectory(prefix="counterfoil-pyc-") as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for each in (arguments, ["-c", "pass"]):
            cpu_ms(each, environment)
        return statistics.median(
            cpu_ms(arguments, environment) - cpu_ms(["-c", "pass"], environment) for _ in range(RUNS)
        )


def cli_start_ms(store: Path) -> float:
    """Starting the command line, as `counterfoil list` on a small store."""
    return above_bare(["-m", "counterfoil.cli", "list", "--json", "--limit", "1", "--store", str(store)])


def import_ms() -> float:
    """Importing the package and everything that opening a ledger needs."""
    return above_bare(["-c", IMPORT])
