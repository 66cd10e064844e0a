"""Commits whose answer is lost by the wire: cut where chance says, and what the database says stands, written down."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

from counterfoil.lab.cutting import Mode, Wire
from counterfoil.lab.database import Server
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.framing import Message, Talk, Write
from counterfoil.lab.journal import Journal

CUTS, ACKNOWLEDGED = "commit_cuts.jsonl", "acknowledged.jsonl"
EVERY = 6
"""One commit in so many is cut, as long as there are cuts to be made."""
MODES = (Mode.UNDELIVERED, Mode.UNANSWERED, Mode.CLOSED)
ASK_SECONDS_MAX = 60.0
"""How long the database may be away, or its process be busy, before nobody can say what stands."""
PAUSE_SECONDS = 0.02

_AT_IT = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
# An event is known by its record together with its own row number or that of its operation: both are bound with it.
_STANDS = """
SELECT id FROM event WHERE record = ANY (%s::bytea[])
    AND (id = ANY (%s::bigint[]) OR id / 32768 = ANY (%s::bigint[]))
"""


class CommitCuts(Wire):
    """Cuts as many commits as it is allowed to.

    Args:
        server: where the receipts are.
        folder: gets the journals.
        chance: draws which, and how.
    """

    def __init__(self, server: Server, folder: Path, chance: random.Random) -> None:
        super().__init__(server.folder)
        self._url = server.url()
        self._chance, self._guard = chance, threading.Lock()
        self._journal, self._acknowledged = Journal(folder / CUTS), Journal(folder / ACKNOWLEDGED)
        self._allowed = self._begun = self.made = 0
        self._failed: list[str] = []

    def __exit__(self, *how: object) -> None:
        """Hang up on everybody."""
        super().__exit__(*how)
        self._journal.close()
        self._acknowledged.close()

    def allow(self, cuts: int) -> None:
        """So many in all may be made from now on.

        Raises:
            RunFailed: of one of them nobody could say what stands.
        """
        self._allowed = cuts
        if self._failed:
            raise RunFailed(f"after a commit that was cut the database did not say what stands: {self._failed[0]}")

    def mode_at(self, talk: Talk, message: Message) -> Mode | None:
        """Draw whether a commit is cut."""
        if not talk.is_commit(message):
            return None
        with self._guard:
            if self._begun >= self._allowed or self._chance.randrange(EVERY):
                return None
            self._begun += 1
            return self._chance.choice(MODES)

    def held(self, mode: Mode, backend: int, writes: Sequence[Write]) -> None:
        """Ask the database what became of it, and write that down, while its client still waits."""
        try:
            events = self._stand(backend, writes)
        except (psycopg.Error, RunFailed) as error:
            self._failed.append(str(error))
            return
        line = {"at": time.time(), "mode": mode.value, "durable": bool(events), "events": events}
        with self._guard:
            self._journal.append(line)
            self.made += 1

    def told(self, durable: list[bytes]) -> None:
        """Write down what is about to be acknowledged."""
        for digest in durable:
            self._acknowledged.append({"hash": digest.hex()})

    def _stand(self, backend: int, writes: Sequence[Write]) -> list[int]:
        """The events that are durable of what was asked for, once the process that it was asked of has ended."""
        until = time.monotonic() + ASK_SECONDS_MAX
        while time.monotonic() < until:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self._url, autocommit=True) as database:
                if not database.execute(_AT_IT, (backend,)).fetchall():
                    found = [database.execute(_STANDS, (w.records, w.numbers, w.numbers)) for w in writes]
                    return [row[0] for cursor in found for row in cursor]
            time.sleep(PAUSE_SECONDS)
        raise RunFailed("its process did not end, or nobody was there to ask")
