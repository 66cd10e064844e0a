"""Every server through every fate: what it really holds afterwards, and what the guarded worker says of it."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.domain.words import Lifecycle, Outcome
from counterfoil.lab import sabotage
from counterfoil.lab.certify import FIRST, GUARDED, KEY_BYTES, NEVER_ENDED, SECOND, STATE, Bounds, told
from counterfoil.lab.ground_truth import EFFECTS, WIRE
from counterfoil.lab.journal import Journal
from counterfoil.lab.processes import Child, module
from counterfoil.lab.real.relay import Fate, Relay
from counterfoil.lab.real.servers import SERVERS, Running

WORKER = "counterfoil.lab.real.worker"
LATE_SECONDS = 1.0
"""How much later than its client's patience a late answer is."""


class Row(NamedTuple):
    """What became of one write to one server."""

    subject: str
    """The server, as in every certificate."""
    server: str
    case: str
    runner: str
    sent: int
    """How often a write was finished, by the relay's own record."""
    effects: int
    """How many of them the server really holds."""
    outcome: str
    lifecycle: str
    automatic_second_sends: int


class Trial(NamedTuple):
    """One case as it went."""

    row: Row
    against: str
    """Why it does not hold; empty where it does."""
    last_words: str


def run(
    top: Path, servers: Sequence[str], bounds: Bounds, mutant: str | None, step: Callable[[str], None]
) -> list[Trial]:
    """Let a guarded worker meet every fate at every server.

    Args:
        top: gets a folder per case.
        servers: by name, each started anew for each case.
        bounds: how long the worker may take.
        mutant: a rule of Counterfoil that is off in it, or None.
        step: told of each case before it begins.
    """
    off = sabotage.Everywhere(top, mutant)
    trials = []
    for server in servers:
        for fate in Fate:
            step(f"{server}: {fate.value}")
            folder = top / f"{server}-{fate.value}-{GUARDED}"
            (folder / STATE).mkdir(parents=True)
            with SERVERS[server](folder) as running:
                trials.append(_Case(server, fate, folder, running, bounds, off.environment).play())
    off.check()
    return trials


def as_json(trials: Sequence[Trial]) -> dict[str, Any]:
    """The rows, what stands against them, and whether nothing does."""
    rows = [trial.row for trial in trials]
    why = [f"{trial.row.server}, {trial.row.case}: {trial.against}" for trial in trials if trial.against]
    again = sum(row.automatic_second_sends for row in rows)
    return {"rows": [row._asdict() for row in rows], "automatic_second_sends": again, "why": why, "ok": not why}


class _Case:
    """One server, one fate."""

    def __init__(
        self, server: str, fate: Fate, folder: Path, running: Running, bounds: Bounds, also: Mapping[str, str]
    ) -> None:
        self._server, self._fate, self._folder = server, fate, folder
        self._running, self._bounds, self._also = running, bounds, also
        self._key = f"order-{secrets.token_hex(KEY_BYTES)}"

    def play(self) -> Trial:
        wire = Journal(self._folder / WIRE)
        try:
            with Relay(
                self._running.place, finishing=self._running.finishing, fate=self._fate, wire=wire,
                committed=lambda: bool(self._running.held()), hold_seconds=self._bounds.deadline_seconds + LATE_SECONDS,
            ) as relay:  # fmt: skip
                met = self._live(relay, FIRST) if self._fate is Fate.KILLED else True
                self._live(relay, SECOND)
                met = met and relay.answered.is_set()
                sent = relay.sent
        finally:
            wire.close()
        return self._judged(sent, met=met)

    def _live(self, relay: Relay, output: str) -> bool:
        """One life of the worker; the first is ended when the server has committed: True where it came to that."""
        environment = {
            **self._also,
            **told(relay.port, self._key, self._folder / STATE, self._bounds.deadline_seconds),
        }
        argv = module(WORKER, self._server, str(relay.port), self._running.beside)
        worker = Child(argv, env=environment, ready_seconds=None, output=self._folder / output)
        try:
            if output == FIRST:
                return relay.answered.wait(self._bounds.life_seconds)
            worker.wait(self._bounds.life_seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            worker.kill_all()
        return True

    def _judged(self, sent: int, *, met: bool) -> Trial:
        held = self._running.held()
        said = (self._folder / SECOND).read_text("utf-8", "replace").split()[-3:]
        operation, lifecycle, outcome = said if len(said) == 3 else ("", "", NEVER_ENDED)  # noqa: PLR2004
        truth = Journal(self._folder / EFFECTS)
        for name in held:
            truth.append({"kind": self._server, "reference": operation, "name": name})
        truth.close()
        row = Row(
            subject=self._server, server=self._server, case=self._fate.value, runner=GUARDED, sent=sent,
            effects=len(held), outcome=outcome, lifecycle=lifecycle, automatic_second_sends=max(0, sent - 1),
        )  # fmt: skip
        return Trial(row, self._against(row, met=met), _last_line(self._folder / SECOND))

    def _against(self, row: Row, *, met: bool) -> str:
        if not met:
            return "the answer met no fate: the server never committed"
        if row.effects != 1 or row.automatic_second_sends:
            return f"{row.effects} effects of {row.sent} sends"
        unsettled = (Outcome.UNKNOWN.value, Lifecycle.MANUAL_REVIEW.value)
        wanted = unsettled if self._running.stands else (Outcome.SUCCEEDED.value, Lifecycle.SUCCEEDED.value)
        return "" if (row.outcome, row.lifecycle) == wanted else f"ends as {row.outcome}, {row.lifecycle}"


def _last_line(output: Path) -> str:
    errors = output.with_suffix(".err")
    lines = errors.read_text("utf-8", "replace").splitlines() if errors.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
