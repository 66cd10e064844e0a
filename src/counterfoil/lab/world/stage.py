"""The stage: virtual processes that are greenlets, one virtual clock, and a scheduler between any two effects."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet

EPOCH = 1_800_000_000.0
"""When every world begins."""


class Crashed(BaseException):
    """The process is dead: nothing of it happens any more, its own handlers included."""


class Process:
    """One virtual process: what it has in memory is gone when it crashes.

    Args:
        stage: where it lives.
        name: for people.
        host: whose clock it reads; a process of another host is never provably dead.
    """

    def __init__(self, stage: Stage, name: str, host: str) -> None:
        self.stage, self.name, self.host = stage, name, host
        self.dead = False
        self.stopped_until = 0.0
        """It is paused, as by SIGSTOP, until then: alive, and doing nothing."""
        self.interrupted = False
        """It was told to end; what comes after that is a kill, and has a fault of its own."""
        self.sure = True
        """Nothing has kept the store from it since it last sent."""

    def crash(self) -> None:
        """End it here, as by SIGKILL."""
        self.dead = True

    def spawn(self, program: Callable[[], Any]) -> None:
        """Run something in this process, from now on."""
        self.stage.start(self, program)


class Stage:
    """Runs processes one at a time; who goes next, and when, is chance's.

    Args:
        choose: picks one of several that could go now.
    """

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.now = EPOCH
        self._choose = choose
        self._hub = getcurrent()
        self._due: list[tuple[float, int, greenlet, Process]] = []
        self._order = itertools.count()
        self._went: Process | None = None
        self._running: dict[greenlet, Process] = {}
        self.asleep_until = 0.0
        """No host does anything before then; what is on its way arrives all the same."""
        self.errors: list[tuple[str, BaseException]] = []
        """What ended a program that nothing should end."""

    @property
    def process(self) -> Process | None:
        """The process that runs now; None on the hub: the world itself."""
        return self._running.get(getcurrent())

    def start(self, process: Process, program: Callable[[], Any]) -> None:
        """Queue a program of a process."""

        def run() -> None:
            try:
                program()
            except Crashed:
                pass
            except BaseException as error:  # noqa: BLE001 - a world tells, it does not end
                self.errors.append((process.name, error))

        task = greenlet(run, parent=self._hub)
        self._running[task] = process
        heapq.heappush(self._due, (self.now, next(self._order), task, process))

    def at(self, when: float, happens: Callable[[], Any]) -> None:
        """Have something happen at a time, outside every process: a request arrives, a clock steps."""
        self.start_at(when, Process(self, "the world", ""), happens)

    def start_at(self, when: float, process: Process, program: Callable[[], Any]) -> None:
        """Queue a program for later."""
        task = greenlet(program, parent=self._hub)
        self._running[task] = process
        heapq.heappush(self._due, (when, next(self._order), task, process))

    def pass_time(self, seconds: float) -> None:
        """Let others run meanwhile; raises `Crashed` where the process died."""
        current = getcurrent()
        process = self._running.get(current)
        if process is None:
            return
        if process.dead:
            raise Crashed
        heapq.heappush(self._due, (self.now + seconds, next(self._order), current, process))
        self._hub.switch()
        if process.dead:
            raise Crashed

    def run(self, until: float) -> None:
        """Let everything happen up to a time."""
        due = self._due
        while due and due[0][0] <= until:
            task, process = self._next()
            wakes = max(process.stopped_until, self.asleep_until if process.host else 0.0)
            if wakes > self.now and not process.dead:
                heapq.heappush(due, (wakes, next(self._order), task, process))
                continue
            task.switch()
            if task.dead:
                self._running.pop(task, None)
        self.now = max(self.now, until)

    def _next(self) -> tuple[greenlet, Process]:
        """Who goes now: of those whose time has come, the one that chance picks."""
        due = self._due
        self.now = max(self.now, due[0][0])
        ready = [heapq.heappop(due)]
        while due and due[0][0] <= self.now:
            ready.append(heapq.heappop(due))
        if len(ready) > 1:  # whoever went last comes first: a search counts the switches
            ready.sort(key=lambda one: one[3] is not self._went)
        picked = ready.pop(self._choose(len(ready)) if len(ready) > 1 else 0)
        self._went = picked[3]
        for other in ready:
            heapq.heappush(due, other)
        return picked[2], picked[3]

    def idle(self) -> bool:
        """Whether nothing is left to happen."""
        return not self._due

    def end(self) -> None:
        """Let every program go, unfinished."""
        for *_, process in self._due:
            process.dead = True
        while self._due:
            _, _, task, _ = heapq.heappop(self._due)
            if not task.dead and task.gr_frame is not None:
                try:
                    task.throw(Crashed)
                except Crashed:
                    continue
        self._running.clear()
