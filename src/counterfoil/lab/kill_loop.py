"""`counterfoil run` of many operations under a provider that loses replies, killed and started again until it is done.

The command is the real one in a process of its own; nothing in it knows of the kills.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab import sabotage
from counterfoil.lab.contract_copy import write_copy
from counterfoil.lab.control import drain
from counterfoil.lab.credential import ENVIRONMENT, SECRETS
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.journal import Journal
from counterfoil.lab.kill_aim import CONCURRENCY, CONCURRENCY_ELSE, Aim, Sights, aims, strike
from counterfoil.lab.kill_window import Window, window
from counterfoil.lab.processes import Child, start_provider
from counterfoil.lab.provider import ACCOUNT
from counterfoil.lab.run_folder import STORE
from counterfoil.lab.scoreboard import score, total

CONTRACTS = ("lab.key", "lab.lookup", "lab.nothing")

INTENTS, ACTIONS, KILLS = "intents.jsonl", "intents.yaml", "kills.jsonl"

IDLE_ROUNDS_MAX = 20
"""Runs that end by themselves while kills are left; each then gets a kill nearer to its beginning."""
WAIT_SECONDS = 60.0
"""What a run may wait for after its last line: the last receipt is settled a few seconds later."""
RUN_SECONDS_MAX = 240.0
"""One run to its end, of as many operations as may be asked for."""
LATE_SECONDS = 0.4
"""How late the provider applies some requests; under the assumed longest delivery by far."""
DELIVERY: Mapping[str, Any] = {
    "seconds": 1.0, "by": "counterfoil-lab kill-loop",
    "why": f"the provider of this run applies what it got within {LATE_SECONDS:g} seconds",
}  # fmt: skip

FAULTS: tuple[Mapping[str, Any], ...] = (
    {"behaviour": "lose_reply", "every": 4},
    {"behaviour": "lose_request", "every": 11},
    {"behaviour": "apply_late", "every": 13, "seconds": LATE_SECONDS},
    {"behaviour": "error_500", "every": 17},
    {"behaviour": "look_500", "every": 7},
    {"behaviour": "look_empty", "every": 9},
    {"behaviour": "look_everything", "every": 10},
    # Half the rest is slow before its effect and some after it, so that kills fall before, between and after both.
    {"behaviour": "hang", "every": 5, "seconds": 0.05},
    {"behaviour": "slow", "every": 2, "seconds": 0.04},
)

_BRIEF = {"first_after_seconds": 0.05, "spacing_seconds": 0.2}

CHANGES: Mapping[str, Mapping[str, Any]] = {
    # Three looks, then the key is used: the way that ends in the same request again.
    "lab.key": {"send_deadline_seconds": 2.0, "read_budget": {"looks_max": 3, **_BRIEF}},
    "lab.lookup": {"send_deadline_seconds": 2.0, "read_budget": {"looks_max": 20, **_BRIEF}},
    "lab.nothing": {"send_deadline_seconds": 2.0},
}
"""What the copy of each contract changes."""

UNKNOWN_SHARE = 10
"""At least one operation in so many must have been unknown, or the figures say nothing."""
IN_FLIGHT_SHARE = 3
"""At least one kill in so many must have fallen between claim and outcome."""


class Plan(NamedTuple):
    """What is asked of the kill loop, for each contract."""

    operations: int
    kills: int
    contracts: tuple[str, ...] = CONTRACTS
    seed: int = 1
    mutant: str | None = None


def run(top: Path, plan: Plan, step: Callable[[str], None]) -> dict[str, Any]:
    """Run the loop once per contract and return the figures, summed and one by one.

    Args:
        top: gets a folder per contract.
        plan: how much, on what and by which seed.
        step: told of every kill and of every contract's end.
    """
    figures = {}
    for contract in plan.contracts:
        folder = top / contract
        folder.mkdir()
        figures[contract] = _Loop(folder, contract, plan, step).run()
    return {**_sum(list(figures.values())), "contracts": figures, "ok": all(f["ok"] for f in figures.values())}


def _sum(figures: list[dict[str, Any]]) -> dict[str, Any]:
    names = [name for name, value in figures[0].items() if isinstance(value, int) and name != "ok"]
    return {**total(figures, names), "kills_by_window": total((f["kills_by_window"] for f in figures), tuple(Window))}


class _Loop:
    """One contract's run."""

    def __init__(self, folder: Path, contract: str, plan: Plan, step: Callable[[str], None]) -> None:
        self._folder, self._contract, self._plan, self._step = folder, contract, plan, step
        self._chance = random.Random(f"{plan.seed}:{contract}")
        self._windows = dict.fromkeys((w.value for w in Window), 0)
        self._killed = 0

    def run(self) -> dict[str, Any]:
        route = self._contract.removeprefix("lab.")
        rules = [{"route": route, **rule} for rule in FAULTS]
        with start_provider(self._folder, rules=rules) as provider:
            self._write_inputs(provider.port)
            self._until_done()
            drain(provider.port)
        self._step(f"{self._contract}: done")
        return self._figures()

    def _write_inputs(self, port: int) -> None:
        write_copy(self._folder, self._contract, CHANGES[self._contract])
        action: dict[str, Any] = {
            "contract": f"{self._contract}.yaml",
            "base_url": f"http://127.0.0.1:{port}",
            "account": ACCOUNT,
            "secrets": dict(SECRETS),
            "owner": "payments",
            "authoriser": "payments-lead",
        }
        if self._contract == "lab.lookup":
            action["longest_delivery"] = DELIVERY
        actions = {"store": STORE, "actor": "agent:support", "actions": {"refund": action}}
        (self._folder / ACTIONS).write_text(json.dumps(actions, indent=1) + "\n", encoding="utf-8")  # JSON is YAML
        orders = [f"order-{number:04}" for number in range(1, self._plan.operations + 1)]
        intents = [{"action": "refund", "key": o, "payload": {"order": o, "amount": 1500}} for o in orders]
        lines = "".join(json.dumps(intent) + "\n" for intent in intents)
        (self._folder / INTENTS).write_text(lines, encoding="utf-8")

    def _until_done(self) -> None:
        """Start the run again and again; the kills are used up before it is left to end by itself."""
        sights, listed = Sights(self._folder), self._aims()
        aim, idle = next(listed, None), 0
        journal = Journal(self._folder / KILLS)
        while aim is not None:
            with self._start(aim) as child:
                if strike(child, aim, sights, self._chance, sends=self._sends(sights)):
                    self._count(journal, child.pid, aim)
                    aim = next(listed, None)
                    continue
                self._check(child)
            idle += 1
            if idle > IDLE_ROUNDS_MAX:
                raise RunFailed(f"only {self._killed} of {self._plan.kills} kills met a run that was still running")
            aim = Aim.SOON
        journal.close()
        with self._start() as child:
            self._check(child)

    def _start(self, aim: Aim | None = None) -> Child:
        file = str(self._folder / INTENTS)
        calls = CONCURRENCY_ELSE if aim is None else CONCURRENCY.get(aim, CONCURRENCY_ELSE)
        arguments = ("run", file, "--concurrency", str(calls), "--wait", str(WAIT_SECONDS), "--json")
        argv = sabotage.command(self._plan.mutant, "counterfoil.cli", *arguments)
        return Child(argv, env=ENVIRONMENT, ready_seconds=None)

    def _aims(self) -> Iterator[Aim]:
        return aims(self._plan.kills, self._chance, looks="read_budget" in CHANGES[self._contract])

    def _sends(self, sights: Sights) -> int:
        """About how many sends the next kill may let pass, so that enough are left for those after it."""
        left = max(1, self._plan.kills - self._killed)
        return (self._plan.operations - sights.sends) // left - CONCURRENCY_ELSE  # those in flight go with the kill

    def _count(self, journal: Journal, pid: int, aim: Aim) -> None:
        at = time.time()
        worker, fell = window(self._folder / STORE, pid)
        journal.append({"at": at, "pid": pid, "worker": worker, "aim": aim.value, "window": fell.value})
        self._windows[fell] += 1
        self._killed += 1
        self._step(f"{self._contract}: kill {self._killed} fell {fell.value}")

    def _check(self, child: Child) -> None:
        try:
            code = child.wait(RUN_SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            raise RunFailed(f"a run under {self._contract} did not end by itself") from error
        if code not in (0, 1):
            raise RunFailed(f"a run under {self._contract} ended with {code}: {child.errors()}")

    def _figures(self) -> dict[str, Any]:
        found = score(self._folder)
        counted = {name: getattr(found, name) for name in found.__struct_fields__}
        plan, kills = self._plan, self._killed
        broken = found.duplicates + found.unrecorded + found.excess_sends + found.false_outcomes + found.unsettled
        ok = (
            broken == 0
            and (found.operations, kills) == (plan.operations, plan.kills)
            and found.unknown_seen * UNKNOWN_SHARE >= found.operations
            and self._windows[Window.CLAIM_TO_OUTCOME] * IN_FLIGHT_SHARE >= kills
        )
        return {**counted, "kills": kills, "kills_by_window": dict(self._windows), "ok": ok}
