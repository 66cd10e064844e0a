"""What `counterfoil verify --deep` finds wrong with the receipts of a run, after all that befell it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.lifetime import CLI
from counterfoil.lab.processes import module

VERIFY_SECONDS_MAX = 60.0


def violations(store: Path | str, actions: Path) -> int:
    """Count them, in a process in which no rule is off.

    Args:
        store: the receipts.
        actions: by whose contracts every finding is judged anew.

    Raises:
        RunFailed: the receipts cannot be verified.
    """
    argv = module(CLI, "verify", "--deep", "--store", str(store), "--actions", str(actions), "--json")
    run = subprocess.run(argv, capture_output=True, text=True, timeout=VERIFY_SECONDS_MAX, check=False)
    try:
        return len(json.loads(run.stdout)["violations"])
    except (ValueError, KeyError) as error:
        raise RunFailed(f"the receipts cannot be verified: {run.stdout}{run.stderr}") from error
