"""Where a run leaves its raw truth: a folder of the caller's choice, or one that goes with the run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterfoil.lab.failure import RunFailed

STORE, RESULT, EXPORTS = "receipts.db", "result.json", "exports"


@contextlib.contextmanager
def run_folder(keep: Path | None) -> Iterator[Path]:
    """Give a folder that is empty at first, and nobody else's until it is given back.

    Args:
        keep: stays behind; None: a temporary one that is removed.

    Raises:
        RunFailed: the folder cannot be made, holds something or is another run's: two mixed would count as neither.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="counterfoil-lab-") as folder:
            yield Path(folder)
        return
    with _claimed(keep):
        if any(keep.iterdir()):
            raise RunFailed(f"--keep {keep}: is not empty; name a new folder, so that no two runs are counted as one")
        yield keep.absolute()


@contextlib.contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Make a folder and hold a lock on it, before anybody looks whether it is empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise RunFailed(f"--keep {folder}: cannot be used ({error.strerror})") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        why = "another run has it" if isinstance(error, BlockingIOError) else f"cannot be locked ({error.strerror})"
        raise RunFailed(f"--keep {folder}: {why}; name a new folder") from error
    try:
        yield
    finally:
        os.close(held)


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Leave what the laboratory itself reports beside the truth it was counted from."""
    (folder / RESULT).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def write_exports(folder: Path, store: Path | None = None) -> None:
    """Leave every receipt of a run's store as the document that `counterfoil export` writes.

    Args:
        folder: of the run.
        store: where its receipts stand; default: right in the folder.
    """
    import counterfoil
    from counterfoil.runtime.export import document, write

    (folder / EXPORTS).mkdir(exist_ok=True)
    with counterfoil.open(store or folder / STORE) as ledger:
        for history in ledger.store.histories():
            receipt = ledger.get(history.operation.id)
            made = document(history, outcome=receipt.outcome)
            write(folder / EXPORTS / f"{receipt.id}.json", made, store=ledger.store.path)
