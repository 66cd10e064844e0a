"""What a verb of the command line takes: seconds, and the most memory its process ever had."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from counterfoil.lab.failure import RunFailed

SECONDS_MAX = 3_600
_CHILD = """
import os, resource, sys
from counterfoil.cli import main

code = main(sys.argv[1:])
sys.stdout.flush()
try:  # the high-water mark of the program itself: what getrusage says may be its parent's
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
os.write(2, f"peak {peak}\\n".encode())
sys.exit(code)
"""


def footprint(arguments: list[str]) -> dict[str, Any]:
    """Run a verb and return its seconds, start included, and its MiB.

    Args:
        arguments: of the command line.

    Raises:
        RunFailed: it did not end with 0, so that it may have done anything.
    """
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    said, _, peak = run.stderr.rstrip().rpartition("peak ")
    if run.returncode != 0 or not peak.isdigit():
        raise RunFailed(f"counterfoil {' '.join(arguments)} ended with {run.returncode}: {said or run.stderr}")
    return {"seconds": round(seconds, 2), "mib": round(int(peak) / 1024, 1)}
