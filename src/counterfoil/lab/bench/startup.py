"""What starting costs: CPU milliseconds of a whole process above bare Python, measured in turn."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 9
IMPORT = "import counterfoil; counterfoil.open"


def cpu_ms(arguments: list[str]) -> float:
    """CPU time of one child process, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def above_bare(arguments: list[str]) -> float:
    """The median over runs of a command's CPU time less that of `python -c pass` beside it."""
    cpu_ms(arguments)  # byte code is compiled once
    return statistics.median(cpu_ms(arguments) - cpu_ms(["-c", "pass"]) for _ in range(RUNS))


def cli_start_ms(store: Path) -> float:
    """Starting the command line, as `counterfoil list` on a small store."""
    return above_bare(["-m", "counterfoil.cli", "list", "--json", "--limit", "1", "--store", str(store)])


def import_ms() -> float:
    """Importing the package and everything that opening a ledger needs."""
    return above_bare(["-c", IMPORT])
