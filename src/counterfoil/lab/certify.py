"""Any worker command, in any language, through the three accidents; its true effects are counted outside it.

The worker is told by environment variables alone where the provider is and which key to use. Nothing of it is trusted:
what it did is what the provider wrote down.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.domain.words import Outcome
from counterfoil.lab import orphans, sabotage
from counterfoil.lab.accident import ACCIDENTS, Accident, committed, let_pass
from counterfoil.lab.control import drain
from counterfoil.lab.credential import ENVIRONMENT
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.orphans import Orphan, left_behind
from counterfoil.lab.processes import ERRORS, STOP_SECONDS, Child, start_provider
from counterfoil.lab.provider import ACCOUNT
from counterfoil.lab.scoreboard import count_effects, read_only
from counterfoil.lab.watch import reached
from counterfoil.store.opening import APPLICATION_ID

GUARDED, UNGUARDED = "guarded", "unguarded"
NEVER_ENDED = "never ended"

STATE = "state"
"""The one folder of a case that the worker is told of, and that survives its restart."""
FIRST, SECOND = "first-life.out", "second-life.out"

MARGIN_SECONDS = 0.5
"""Waited beyond the deadline that the worker was told, because a worker counts it from a little later."""
PROMISED_SECONDS_MAX = 60.0
"""How far beyond that deadline a receipt may promise something: no more is waited for it."""
END_BYTES = 1 << 16
"""How much is read of what a worker said: its last words."""
KEY_BYTES = 4
"""Enough that no two runs ask a worker for the same key: it may remember more than it is told to."""

SQLITE = b"SQLite format 3\0"
"""How a database begins."""


class Bounds(NamedTuple):
    """How long a worker may take, as it is told and as it is waited for."""

    deadline_seconds: float
    """Nothing the worker waits for may take longer: its time-outs, leases and deadlines, set as anybody sets them."""
    life_seconds: float
    """One life of the worker, from its start to its end."""


class Row(NamedTuple):
    """What one worker made of one accident."""

    subject: str
    runner: str
    """`guarded` where it left receipts of Counterfoil in its folder."""
    case: str
    sent: int
    effects: int
    outcome: str
    """The last word of the worker's own, where it is an outcome; else how it ended."""
    waited_seconds: float
    """Between the kill and the next start."""


class Trial(NamedTuple):
    """One case as it went."""

    row: Row
    against: str
    """Why it does not hold; empty where it does."""
    seconds: float
    last_words: str = ""
    """The last line of what the worker said on standard error."""


def run(
    top: Path, command: Sequence[str], bounds: Bounds, mutant: str | None, step: Callable[[str], None]
) -> list[Trial]:
    """Let the worker meet every accident, each with a provider and a folder of its own.

    Args:
        top: gets a folder per case.
        command: the worker's program and arguments; no shell takes part.
        bounds: how long it may take.
        mutant: a rule of Counterfoil that is off in the worker, or None.
        step: told of each case before it begins.

    Raises:
        RunFailed: there is no such program, it cannot be started, or the rule could not be turned off in it.
    """
    _startable(command[0])
    here = orphans.adopt()
    off = sabotage.Everywhere(top, mutant)
    trials = []
    for case, accident in ACCIDENTS.items():
        step(f"{case}: {accident.told}")
        trials.append(_Case(top / case, command, bounds, off.environment, here).play(case, accident))
    off.check()
    return trials


def as_json(trials: Sequence[Trial]) -> dict[str, Any]:
    """The rows, what stands against them, and whether nothing does."""
    why = [f"{trial.row.case}: {trial.against}" for trial in trials if trial.against]
    if not any(trial.row.effects for trial in trials):
        why = ["no effect in any case: this says nothing about the worker", *why]
    return {"rows": [trial.row._asdict() for trial in trials], "why": why, "ok": not why}


def subject_of(command: Sequence[str]) -> str:
    """What a command is called: the last file it names, else its program."""
    named = [word for word in command if Path(word).is_file()]
    return Path((named or command)[-1 if named else 0]).name


def _startable(program: str) -> None:
    if shutil.which(program) is not None:
        return
    there = Path(program)
    why = "is a folder" if there.is_dir() else "may not be executed" if there.exists() else "there is no such program"
    raise RunFailed(f"{program}: {why}")


class _Case:
    """One worker, one provider, one accident."""

    def __init__(
        self, folder: Path, command: Sequence[str], bounds: Bounds, also: Mapping[str, str], here: Collection[int]
    ) -> None:
        self._known = set(here)
        self._folder, self._command, self._bounds, self._also = folder, command, bounds, also
        self._state = folder / STATE
        self._state.mkdir(parents=True)

    def play(self, case: str, accident: Accident) -> Trial:
        begun, waited, met = time.monotonic(), 0.0, True
        key = f"order-{case}-{secrets.token_hex(KEY_BYTES)}"
        with start_provider(self._folder, rules=[accident.rule]) as provider:
            self._known.add(provider.pid)
            environment = {**self._also, **told(provider.port, key, self._state, self._bounds.deadline_seconds)}
            if accident.killed:
                met = self._die(environment)
                waited = let_pass(accident, self._over, self._bounds.deadline_seconds + PROMISED_SECONDS_MAX)
            outcome, left = self._live(environment)
            drain(provider.port)
        sent, effects = count_effects(self._folder)
        row = Row(
            subject=subject_of(self._command),
            runner=GUARDED if receipts_of(self._folder) else UNGUARDED,
            case=case,
            sent=sent,
            effects=effects,
            outcome=outcome,
            waited_seconds=round(waited, 3),
        )
        return Trial(row, self._against(row, left, met=met), time.monotonic() - begun, self._last_words())

    def _start(self, environment: Mapping[str, str], output: str) -> Child:
        try:
            return Child(self._command, env=environment, ready_seconds=None, output=self._folder / output)
        except OSError as error:
            why = f"cannot be started ({error.strerror}); is there what its first line names?"
            raise RunFailed(f"{self._command[0]}: {why}") from error

    def _die(self, environment: Mapping[str, str]) -> bool:
        """Let the worker live until the provider has committed, then kill all of it; say whether it came to that."""
        worker = self._start(environment, FIRST)
        try:
            return committed(worker, self._folder, self._bounds.life_seconds)
        finally:
            self._kill(worker)

    def _live(self, environment: Mapping[str, str]) -> tuple[str, list[Orphan]]:
        """Let the worker live to its end; return the outcome, and what still runs after its every deadline."""
        worker = self._start(environment, SECOND)
        try:
            code = worker.wait(self._bounds.life_seconds)
            reached(lambda: not left_behind(self._known), self._bounds.deadline_seconds + MARGIN_SECONDS)
            left = left_behind(self._known)
        except subprocess.TimeoutExpired:
            return NEVER_ENDED, []
        finally:
            self._kill(worker)  # and what it may have left running: it could send after the count
        said = _end_of(self._folder / SECOND).split()
        return (said[-1] if said and said[-1] in set(Outcome) else f"exit {code}"), left

    def _kill(self, worker: Child) -> None:
        """Kill the worker and whatever it has started, in whatever session."""
        worker.kill_all()
        if not orphans.kill_all(self._known, STOP_SECONDS):
            raise RunFailed("what the worker has started could not be ended")

    def _last_words(self) -> str:
        said = [line for name in (FIRST, SECOND) for line in _errors(self._folder / name)]
        return said[-1] if said else ""

    def _over(self) -> float:
        """When all that the killed worker may have promised has passed; its receipts name what they promised."""
        over = time.time() + self._bounds.deadline_seconds + MARGIN_SECONDS
        for receipts in receipts_of(self._folder):
            with closing(read_only(receipts)) as store:
                over = max([over, *(deadline for (deadline,) in store.execute("SELECT deadline FROM operation"))])
        return over

    def _against(self, row: Row, left: Sequence[Orphan], *, met: bool) -> str:
        if row.outcome == NEVER_ENDED:
            return f"the worker did not end within {self._bounds.life_seconds:g} seconds"
        if row.effects > 1:
            return f"{row.effects} effects for one key"
        if left:
            return f"the worker left processes behind, which could still send: {', '.join(map(str, left))}"
        if not met:
            return "the worker ended before the provider had committed anything, so that it met no accident"
        return "" if row.effects else "no effect, so that the worker met no accident"


def _errors(output: Path) -> list[str]:
    """What a life of the worker said on standard error, by line, without blank ones."""
    path = output.with_suffix(ERRORS)
    lines = _end_of(path).splitlines() if path.exists() else []
    return [line.strip() for line in lines if line.strip()]


def _end_of(path: Path) -> str:
    """The last of what was said: a worker may say more than memory holds."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - END_BYTES))
        return file.read().decode("utf-8", "replace")


def told(port: int, key: str, state: Path, deadline_seconds: float) -> Mapping[str, str]:
    """All that a worker is told, by the names of its environment.

    Args:
        port: where the provider listens.
        key: names the one occurrence that is due.
        state: the folder that survives a restart.
        deadline_seconds: nothing the worker waits for may take longer.
    """
    return {
        **ENVIRONMENT,
        "COUNTERFOIL_LAB_URL": f"http://127.0.0.1:{port}",
        "COUNTERFOIL_LAB_ACCOUNT": ACCOUNT,
        "COUNTERFOIL_LAB_KEY": key,
        "COUNTERFOIL_LAB_STATE": str(state),
        "COUNTERFOIL_LAB_DEADLINE_SECONDS": f"{deadline_seconds:g}",
    }


def receipts_of(folder: Path) -> list[Path]:
    """Every file of receipts that the worker of a case left.

    Asked by SQL: what a killed worker wrote last, the file's own mark among it, may stand in its log only.
    """
    return [path for path in sorted((folder / STATE).rglob("*")) if path.is_file() and _holds_receipts(path)]


def _holds_receipts(path: Path) -> bool:
    with path.open("rb") as file:
        if file.read(len(SQLITE)) != SQLITE:
            return False
    try:
        with closing(read_only(path)) as store:
            return bool(store.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,))
    except sqlite3.DatabaseError:
        return False  # somebody else's, and not to be read by us
