"""Where a run leaves its raw truth: a folder of the caller's choice, or one that goes with the run."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterfoil.lab.failure import RunFailed

STORE, RESULT, EXPORTS = "receipts.db", "result.json", "exports"


@contextlib.contextmanager
def run_folder(keep: Path | None) -> Iterator[Path]:
    """Give a folder that is empty at first.

    Args:
        keep: stays behind; None: a temporary one that is removed.

    Raises:
        RunFailed: the folder cannot be made or holds something: two runs mixed would count as neither.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="counterfoil-lab-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        taken = any(keep.iterdir())
    except OSError as error:
        raise RunFailed(f"--keep {keep}: cannot be used ({error.strerror})") from error
    if taken:
        raise RunFailed(f"--keep {keep}: is not empty; name a new folder, so that no two runs are counted as one")
    yield keep.absolute()


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
