"""Where the chaos is played: one book of receipts, one provider, and two bad ways from the workers to it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from counterfoil.lab import hardship, lifetime
from counterfoil.lab.chaos_database import Database
from counterfoil.lab.contract_copy import write_copy
from counterfoil.lab.control import drain, put_rules
from counterfoil.lab.deployment import action, digest_of, write_actions, write_intents
from counterfoil.lab.disk import Disk
from counterfoil.lab.kill_aim import CONCURRENCY_ELSE, STALL_SECONDS, Sights
from counterfoil.lab.kill_loop import CONTRACTS, LATE_SECONDS
from counterfoil.lab.kill_window import is_made
from counterfoil.lab.processes import Child, start_provider, start_proxy
from counterfoil.lab.watch import wait_for

ROUGH, SLOW = "rough", "slow"
"""The two ways: one that loses, cuts, resets and stays silent, and one on which every answer stops halfway."""
WIRES = {ROUGH: "rough-wire", SLOW: "slow-wire"}
"""Where each writes what passes it."""

DEADLINE_SECONDS = 1.0
"""How long a sender may write: a stopped one is past it soon."""
STEP_SECONDS = 3600.0
"""By how much a clock steps: far more than a delivery takes."""
SILENT_SECONDS = 1.5
"""How long a way stays silent: longer than a sender waits, and far less than the half minute of a look."""
DELIVERY: Mapping[str, Any] = {
    "seconds": SILENT_SECONDS + LATE_SECONDS + 1.0, "by": "counterfoil-lab chaos",
    "why": f"a way keeps a request for {SILENT_SECONDS:g} seconds, and the provider applies it {LATE_SECONDS:g} later",
}  # fmt: skip
"""How late a request may be applied, and no word of clocks: none of their steps may prove absent what is on its way."""
_BRIEF = {"first_after_seconds": 0.05, "spacing_seconds": 0.2}
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "lab.key": {"send_deadline_seconds": DEADLINE_SECONDS, "read_budget": {"looks_max": 3, **_BRIEF}},
    "lab.lookup": {"send_deadline_seconds": DEADLINE_SECONDS, "read_budget": {"looks_max": 6, **_BRIEF}},
    "lab.nothing": {"send_deadline_seconds": DEADLINE_SECONDS},
}
"""What the copy of each contract changes: that is all a deployment could do to be quicker."""

FAULTS: tuple[Mapping[str, Any], ...] = (
    {"behaviour": "lose_reply", "every": 7},
    {"behaviour": "lose_request", "every": 13},
    {"behaviour": "apply_late", "every": 11, "seconds": LATE_SECONDS},
    {"behaviour": "error_500", "every": 17},
    {"behaviour": "error_503_retry_after", "every": 19},
    {"behaviour": "reset", "every": 23},
    {"behaviour": "cut_body", "every": 29},
    {"behaviour": "html_200", "every": 27},
    {"behaviour": "accept_drop", "every": 15},
    {"behaviour": "look_500", "every": 7},
    {"behaviour": "look_empty", "every": 9},
    {"behaviour": "look_everything", "every": 10},
    {"behaviour": "look_cut", "every": 13},
    {"behaviour": "hang", "every": 5, "seconds": 0.05},
    {"behaviour": "slow", "every": 2, "seconds": 0.04},
)
"""What the provider does wrong; most of it after the effect has happened."""
ROUGH_RULES: tuple[Mapping[str, Any], ...] = (
    {"behaviour": "half_open", "every": 41, "seconds": SILENT_SECONDS},
    {"behaviour": "refuse", "every": 37},
    {"method": "POST", "behaviour": "cut_request", "every": 19, "bytes": 60},
    {"method": "POST", "behaviour": "cut_request", "every": 23},
    {"behaviour": "cut_reply", "every": 13, "bytes": 30},
    {"behaviour": "reset", "every": 17},
    {"behaviour": "hang", "every": 43, "seconds": SILENT_SECONDS},
)
SLOW_RULES: tuple[Mapping[str, Any], ...] = ({"method": "POST", "behaviour": "stall_reply", "seconds": STALL_SECONDS},)

MADE_SECONDS_MAX = 20.0
"""How long the first worker may take to make the book; it takes a third of a second."""
SWEEP_SECONDS = 0.1
"""Between the sweeps of the worker that runs beside."""
WAIT_SECONDS = 0.5
"""How long a run waits for what is unknown: the worker beside it goes on after that."""
CALM_SECONDS_MAX = 90.0
"""How long the last run may wait until everything is settled or a person's turn; it takes a few seconds."""
CALM_CALLS = 8
REPEATED = 2
"""Lines of earlier files in every file: whatever feeds a worker may do so twice."""


class Scene:
    """All that stands during the chaos, until the stack it was opened on is closed.

    Args:
        folder: of the run; the provider's truth stands right in it.
        where: the receipts stand there.
        mutant: a rule that is off in every worker, or None.
        chance: draws which lines come again.
        house: ends what is started here.
    """

    def __init__(
        self, folder: Path, where: Disk | Database, mutant: str | None, chance: random.Random, house: ExitStack
    ) -> None:
        self.folder, self.where = folder, where
        self.orders: list[tuple[str, str]] = []
        self._mutant, self._chance, self._house = mutant, chance, house
        self._files = 0
        self._provider = house.enter_context(start_provider(folder, rules=FAULTS))
        self._ways = {way: self._way(way, rules) for way, rules in ((ROUGH, ROUGH_RULES), (SLOW, SLOW_RULES))}
        self.sights = Sights(folder, folder / WIRES[SLOW])
        (folder / "intents").mkdir()
        for contract in CONTRACTS:
            write_copy(folder, contract, CHANGES[contract])
        for way, proxy in self._ways.items():
            write_actions(folder / f"{way}.yaml", self._actions(proxy.port), store=where.named)
        self.sweeper = self.start_sweeper()
        # What a full disk, or a kill, makes of a file that is being made is not what this is about.
        wait_for("the making of the book of receipts", lambda: is_made(where.store), MADE_SECONDS_MAX)

    def _way(self, way: str, rules: Sequence[Mapping[str, Any]], port: int = 0) -> Child:
        record = ("--folder", str(self.folder / WIRES[way]))
        return self._house.enter_context(start_proxy(self._provider.port, *record, rules=rules, port=port))

    @staticmethod
    def _actions(port: int) -> Mapping[str, Mapping[str, Any]]:
        # One destination by two ways: whoever finds an operation may look for it by its own.
        where = {"destination": "the laboratory's provider"}
        more = {"lab.lookup": {"longest_delivery": DELIVERY}}
        return {c.removeprefix("lab."): action(c, port, **where, **more.get(c, {})) for c in CONTRACTS}

    # -- workers ---------------------------------------------------------------------------------------------------

    def start_run(
        self, fresh: int, *, way: str = ROUGH, calls: int = CONCURRENCY_ELSE, under: Sequence[str] = ()
    ) -> Child:
        """Start `counterfoil run` of a new file; the sights are of its fresh lines from now on.

        Args:
            fresh: lines that no file had before; some of earlier files come after them.
            way: to the provider.
            calls: at once.
            under: what the run suffers from; see `hardship`.
        """
        actions = [contract.removeprefix("lab.") for contract in CONTRACTS]
        again = self._chance.sample(self.orders, min(REPEATED, len(self.orders)))
        for _ in range(fresh):
            number = len(self.orders)
            self.orders.append((actions[number % len(actions)], f"order-{number + 1:05}"))
        lines = self.orders[-fresh:]
        self.sights.only = frozenset(digest_of(order) for _, order in lines)
        return self._start_run([*lines, *again], way, calls, WAIT_SECONDS, under)

    def _start_run(
        self, lines: Sequence[tuple[str, str]], way: str, calls: int, wait: float, under: Sequence[str]
    ) -> Child:
        self._files += 1
        file = self.folder / "intents" / f"{self._files:05}.jsonl"
        write_intents(file, lines)
        actions = ("--actions", str(self.folder / f"{way}.yaml"))
        run = lifetime.start_run(
            file, calls=calls, wait_seconds=wait, mutant=self._mutant, more=actions,
            under=under or hardship.arguments(),
        )  # fmt: skip
        self._house.callback(run.kill)
        return run

    def start_sweeper(self, under: Sequence[str] = ()) -> Child:
        """Start the `counterfoil worker` that acts beside every run; it is the scene's `sweeper` from now on."""
        arguments = ("worker", "--actions", str(self.folder / f"{ROUGH}.yaml"), "--interval", str(SWEEP_SECONDS))
        self.sweeper = lifetime.start(arguments, mutant=self._mutant, under=under or hardship.arguments())
        self._house.callback(self.sweeper.kill)
        return self.sweeper

    # -- the end -------------------------------------------------------------------------------------------------------

    def calm(self, ahead: float) -> None:
        """Turn every fault off and let a run of every line go on until nothing is left to do.

        Nothing is on its way any more when it begins, so what the provider did not do it never will.

        Args:
            ahead: how far any clock was ahead, in seconds.
        """
        self.sweeper.stop()
        put_rules(self._provider.port, ())
        drain(self._provider.port)
        for way, proxy in self._ways.items():
            port = proxy.port
            proxy.kill()
            self._way(way, (), port)
        under = hardship.arguments(ahead=ahead)
        run = self._start_run(self.orders, ROUGH, CALM_CALLS, CALM_SECONDS_MAX, under)
        lifetime.check_ended(run, "a run with nothing wrong any more")
