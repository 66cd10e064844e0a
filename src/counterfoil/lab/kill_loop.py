"""`counterfoil run` of many operations under a provider that loses replies, killed and started again until it is done.

The command is the real one in a process of its own; nothing in it knows of the kills.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from counterfoil.lab.contract_copy import write_copy
from counterfoil.lab.control import drain
from counterfoil.lab.deployment import action, write_actions, write_intents
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.kill_aim import CONCURRENCY, CONCURRENCY_ELSE, Aim, Sights, aims, strike
from counterfoil.lab.kill_record import KillRecord
from counterfoil.lab.kill_window import Window
from counterfoil.lab.lifetime import check_ended, start_run
from counterfoil.lab.processes import Child, start_provider
from counterfoil.lab.run_folder import STORE
from counterfoil.lab.scoreboard import score, total
from counterfoil.lab.verification import violations
from counterfoil.lab.yardstick import measured

CONTRACTS = ("lab.key", "lab.lookup", "lab.nothing")

INTENTS, ACTIONS = "intents.jsonl", "intents.yaml"

IDLE_ROUNDS_MAX = 20
"""Runs that end by themselves while kills are left; each then gets a kill nearer to its beginning."""
WAIT_SECONDS = 60.0
"""What a run may wait for after its last line: the last receipt is settled a few seconds later."""
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
    {"behaviour": "accept_drop", "every": 15},
    {"behaviour": "error_500", "every": 17},
    {"behaviour": "html_200", "every": 19},
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

MUST_BE_NOUGHT = ("duplicates", "unrecorded", "excess_sends", "false_outcomes", "unsettled", "violations")
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
    return {**_sum(list(figures.values())), "contracts": figures, **together(figures)}


def together(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What all contracts come to: one broken rule is one, wherever too little was met besides."""
    why = [f"{contract}: {said}" for contract, each in figures.items() for said in each["why"]]
    if why and all("error" in each for each in figures.values() if not each["ok"]):
        return {"why": why, "ok": False, "error": f"too little was met: {'; '.join(why)}"}
    return {"why": why, "ok": not why}


def _sum(figures: list[dict[str, Any]]) -> dict[str, Any]:
    names = [name for name, value in figures[0].items() if isinstance(value, int) and name != "ok"]
    return {**total(figures, names), "kills_by_window": total((f["kills_by_window"] for f in figures), tuple(Window))}


class _Loop:
    """One contract's run."""

    def __init__(self, folder: Path, contract: str, plan: Plan, step: Callable[[str], None]) -> None:
        self._folder, self._contract, self._plan, self._step = folder, contract, plan, step
        self._chance = random.Random(f"{plan.seed}:{contract}")
        self._record = KillRecord(folder, folder / STORE)

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
        assumed = {"longest_delivery": DELIVERY} if self._contract == "lab.lookup" else {}
        write_actions(self._folder / ACTIONS, {"refund": action(self._contract, port, **assumed)}, store=STORE)
        numbers = range(1, self._plan.operations + 1)
        write_intents(self._folder / INTENTS, (("refund", f"order-{number:04}") for number in numbers))

    def _until_done(self) -> None:
        """Start the run again and again; the kills are used up before it is left to end by itself."""
        sights, listed = Sights(self._folder), self._aims()
        aim, idle = next(listed, None), 0
        while aim is not None:
            with self._start(aim) as child:
                if strike(child, aim, sights, self._chance, sends=self._sends(sights)):
                    fell = self._record.add(child.pid, aim)
                    self._step(f"{self._contract}: kill {self._record.kills} fell {fell.value}")
                    aim = next(listed, None)
                    continue
                check_ended(child, f"a run under {self._contract}")
            idle += 1
            if idle > IDLE_ROUNDS_MAX:
                killed, planned = self._record.kills, self._plan.kills
                raise RunFailed(f"only {killed} of {planned} kills met a run that was still running")
            aim = Aim.SOON
        self._record.close()
        with self._start() as child:
            check_ended(child, f"a run under {self._contract}")

    def _start(self, aim: Aim | None = None) -> Child:
        calls = CONCURRENCY_ELSE if aim is None else CONCURRENCY.get(aim, CONCURRENCY_ELSE)
        return start_run(
            self._folder / INTENTS, calls=calls, wait_seconds=WAIT_SECONDS, mutant=self._plan.mutant
        )  # fmt: skip

    def _aims(self) -> Iterator[Aim]:
        return aims(self._plan.kills, self._chance, looks="read_budget" in CHANGES[self._contract])

    def _sends(self, sights: Sights) -> int:
        """About how many sends the next kill may let pass, so that enough are left for those after it."""
        left = max(1, self._plan.kills - self._record.kills)
        return (self._plan.operations - sights.sends) // left - CONCURRENCY_ELSE  # those in flight go with the kill

    def _figures(self) -> dict[str, Any]:
        windows = dict(self._record.windows)
        figures = {
            **msgspec.structs.asdict(score(self._folder)),
            "kills": self._record.kills,
            "kills_by_window": windows,
            "violations": violations(self._folder / STORE, self._folder / ACTIONS),
        }
        must = {**dict.fromkeys(MUST_BE_NOUGHT, 0), "operations": self._plan.operations, "kills": self._plan.kills}
        least = {
            "unknown_seen": self._plan.operations / UNKNOWN_SHARE,
            Window.CLAIM_TO_OUTCOME.value: self._plan.kills / IN_FLIGHT_SHARE,
        }
        return figures | measured(figures | windows, must, least)
