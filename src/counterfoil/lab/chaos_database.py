"""The receipts of the chaos in a database of its own, which is stopped at once and loses answers by its wire."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterfoil.lab.commit_cuts import ACKNOWLEDGED, CUTS, CommitCuts
from counterfoil.lab.database import Server, server
from counterfoil.lab.disk import Full
from counterfoil.lab.journal import Journal, read
from counterfoil.lab.mirror import keep
from counterfoil.lab.pooler import Pooler, pooler
from counterfoil.lab.run_folder import STORE
from counterfoil.lab.scoreboard import read_only
from counterfoil.lab.verification import violations

RESTARTS = "restarts.jsonl"


class Database:
    """Where the receipts of a run stand.

    Args:
        folder: of the run.
        made: the server.
        cuts: the wire that everybody but the laboratory itself reaches it by.
        by: the pooler through which they reach that wire, or None.
    """

    full = Full.NONE
    """Its disk is never full."""

    def __init__(self, folder: Path, made: Server, cuts: CommitCuts, by: Pooler | None) -> None:
        self.store: str = made.url()
        """As the laboratory reads it."""
        self.named = cuts.through(self.store) if by is None else by.url(pooled="1")
        """As its workers know it."""
        self.cuts = cuts
        self._folder, self._server, self._pooler = folder, made, by
        self._journal = Journal(folder / RESTARTS)

    def restart(self) -> None:
        """Stop it at once, whoever is writing, and start it again; its pooler is killed before, and there again."""
        if self._pooler is not None:
            self._pooler.restart()
        began = time.time()
        self._server.restart()
        self._journal.append({"at": began, "seconds": round(time.time() - began, 3)})

    def concluded(self, actions: Path) -> dict[str, Any]:
        """Leave the receipts as a file, and return the figures that only a database has.

        Args:
            actions: by whose contracts every finding is judged anew.
        """
        self._journal.close()
        keep(self.store, self._folder / STORE)
        with contextlib.closing(read_only(self._folder / STORE)) as file:
            stands = {row[0].hex() for row in file.execute("SELECT hash FROM event")}
        cuts = Counter(line["durable"] for line in read(self._folder / CUTS))
        acknowledged = {line["hash"] for line in read(self._folder / ACKNOWLEDGED)}
        return {
            "pooler": self._pooler is not None,
            "restarts": len(read(self._folder / RESTARTS)),
            "commit_cuts": cuts.total(),
            "ambiguous": {"durable": cuts[True], "absent": cuts[False]},
            "acknowledged": len(acknowledged),
            "acknowledged_lost": len(acknowledged - stands),
            "violations": violations(self.store, actions),
        }


@contextlib.contextmanager
def database(folder: Path, seed: int, *, pooled: bool) -> Iterator[Database]:
    """Start a database and the wire to it, and remove both.

    Args:
        folder: of the run.
        seed: draws what is cut.
        pooled: a pooler stands before that wire.

    Raises:
        RunFailed: this machine has no pooler.
    """
    with contextlib.ExitStack() as house:
        made = house.enter_context(server())
        cuts = house.enter_context(CommitCuts(made, folder, random.Random(f"cuts {seed}")))
        yield Database(folder, made, cuts, house.enter_context(pooler(made, cuts.port)) if pooled else None)
