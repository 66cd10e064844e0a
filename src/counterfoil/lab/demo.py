"""The demo: one small agent loop, three accidents, with receipts and without, and what really happened each time."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab import sabotage
from counterfoil.lab.accident import ACCIDENTS, Accident, committed, let_pass
from counterfoil.lab.agentloop import GUARDED, LONGEST_DELIVERY_SECONDS, NAIVE, TRANSCRIPT
from counterfoil.lab.contract_copy import write_copy
from counterfoil.lab.credential import ENVIRONMENT
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.journal import read
from counterfoil.lab.processes import Child, start_provider
from counterfoil.lab.run_folder import STORE
from counterfoil.lab.scoreboard import count_effects, read_only

SEND_DEADLINE_SECONDS = 1.0
"""How long a guarded sender may write in the demo: a loopback answer takes milliseconds, and case L waits for it."""
LIFE_SECONDS_MAX = 40.0
"""How long one life of the agent may take; it needs about two seconds."""
PASS_SECONDS_MAX = 20.0
"""How long the passing of every deadline may take; it takes about as long as the deadline."""

CONTRACT_CHANGES: Mapping[str, Any] = {
    "send_deadline_seconds": SEND_DEADLINE_SECONDS,
    "read_budget": {"looks_max": 20, "first_after_seconds": 0.1, "spacing_seconds": 0.2},
}
CONTRACT = "lab.lookup"
ERRORS = "agent.err"
"""What the agent's last life said on its error stream."""


RUNNERS = (NAIVE, GUARDED)


class Row(NamedTuple):
    """What one runner made of one accident."""

    case: str
    runner: str
    sent: int
    effects: int
    outcome: str
    """As the agent told it in the end; `effects` is what really happened."""
    waited_seconds: float
    """Between the kill and the next start."""

    @property
    def held(self) -> bool:
        """It came out as it must: one effect where a receipt stood before it, more than one where none did."""
        return (self.effects == 1 and self.outcome == "succeeded") if self.runner == GUARDED else self.effects > 1


def folder_of(top: Path, case: str, runner: str) -> Path:
    """Where one row keeps its truth."""
    return top / f"{case}-{runner}"


def run(top: Path, mutant: str | None, step: Callable[[str], None]) -> list[Row]:
    """Let both runners meet every accident.

    Args:
        top: gets a folder per row.
        mutant: a rule that is off in the guarded agents, or None.
        step: told of each row before it begins.
    """
    rows = []
    for case, accident in ACCIDENTS.items():
        for runner in RUNNERS:
            step(f"{case}, {runner}: {accident.told}")
            rows.append(_Scene(folder_of(top, case, runner), runner, accident, mutant).play(case))
    return rows


class _Scene:
    """One agent, one provider, one accident."""

    def __init__(self, folder: Path, runner: str, accident: Accident, mutant: str | None) -> None:
        self._folder, self._runner, self._accident = folder, runner, accident
        self._mutant = mutant if runner == GUARDED else None
        folder.mkdir()
        if runner == GUARDED:
            write_copy(folder, CONTRACT, CONTRACT_CHANGES)

    def play(self, case: str) -> Row:
        waited = 0.0
        with start_provider(self._folder, rules=[self._accident.rule]) as provider:
            if self._accident.killed:
                with self._agent(provider.port) as agent:
                    self._kill(agent)
                waited = let_pass(self._accident, self._over, PASS_SECONDS_MAX)
            with self._agent(provider.port) as agent:
                code = agent.wait(LIFE_SECONDS_MAX)
                (self._folder / ERRORS).write_text(agent.errors(), encoding="utf-8")
                if code != 0:
                    raise RunFailed(f"the {self._runner} agent ended with {code}: {agent.errors()}")
        sent, effects = count_effects(self._folder)
        outcome = read(self._folder / TRANSCRIPT)[-1]["what"]
        return Row(case, self._runner, sent, effects, outcome, round(waited, 3))

    def _agent(self, port: int) -> Child:
        arguments = (self._runner, "--port", str(port), "--folder", str(self._folder))
        argv = sabotage.command(self._mutant, "counterfoil.lab.agentloop", *arguments)
        return Child(argv, env=ENVIRONMENT, ready_seconds=None)

    def _kill(self, agent: Child) -> None:
        if not committed(agent, self._folder) or not agent.running:
            raise RunFailed(f"the {self._runner} agent ended before it could be killed: {agent.errors()}")
        agent.signal(signal.SIGKILL)
        agent.wait()

    def _over(self) -> float:
        """When, by the clock the store goes by, all that was promised of the killed worker has passed."""
        if self._runner != GUARDED:
            return time.time() + SEND_DEADLINE_SECONDS + LONGEST_DELIVERY_SECONDS
        with closing(read_only(self._folder / STORE)) as store:
            deadline: float = store.execute("SELECT max(deadline) FROM operation").fetchone()[0]
        return deadline + LONGEST_DELIVERY_SECONDS


def as_json(rows: list[Row]) -> dict[str, Any]:
    """The rows and whether all of them came out as they must."""
    return {"rows": [row._asdict() for row in rows], "ok": all(row.held for row in rows)}
