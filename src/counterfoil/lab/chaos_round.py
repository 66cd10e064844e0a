"""The rounds of the chaos: a kill each, or another trouble, while whoever suffered earlier may still live."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from typing import assert_never

from counterfoil.cli import exits
from counterfoil.lab import hardship
from counterfoil.lab.chaos_database import Database
from counterfoil.lab.chaos_scene import DEADLINE_SECONDS, ROUGH, SLOW, STEP_SECONDS, Scene
from counterfoil.lab.disk import Disk, Full, empty_log
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.journal import Journal
from counterfoil.lab.kill_aim import CONCURRENCY, CONCURRENCY_ELSE, Aim, await_aim
from counterfoil.lab.kill_record import KillRecord
from counterfoil.lab.lifetime import check_ended
from counterfoil.lab.processes import Child
from counterfoil.lab.watch import reached

TROUBLES = "troubles.jsonl"

FRESH, FRESH_UNHURT = 4, 8
"""Lines of a file whose run is killed, and of one that may come to its end."""
SENDS = 2
"""How many requests a kill may let pass."""
STOPPED_SECONDS = DEADLINE_SECONDS + 0.5
"""Past the deadline of every send that was under way: only the kernel still says that the process lives."""
GOES_ON_SECONDS = 0.5
"""How long a worker that was stopped goes on before it is told to end: another has taken its place."""
FULL_SECONDS = 0.8
"""How long the disk is full: longer than a run insists on writing down an answer."""
BEGIN_SECONDS_MAX = 5.0
"""How long it is full for a run that has not begun to send: long before that it says so and ends."""
LEFT_BYTES_MIN, LEFT_BYTES_MAX = 4 << 10, 64 << 10
"""How much is left of it, or of a file's growth: some commits still fit, and then one does not."""
LIVING_MAX = 2
"""How many runs of earlier rounds may still live; more would only wait for each other's turn on two cores."""
IDLE_SHARE, IDLE_MIN = 2, 20
"""Runs that end before anything befalls them: at most as many as half the kills, or so many."""


class Trouble(StrEnum):
    """What befalls a process besides being killed."""

    STOPPED = "stopped"
    """Stopped in the middle of a send until every deadline has passed, then let go on."""
    TERMINATED = "terminated"
    """SIGTERM in the middle of a send."""
    INTERRUPTED = "interrupted"
    """Ctrl+C in the middle of a send."""
    CLOCK = "clock"
    """Its clock steps by an hour."""
    DISK = "disk"
    """The disk is full."""


class Outage(Enum):
    """What befalls a database, and whoever writes to it."""

    RESTARTED = "restarted"
    """Stopped at once while a request is under way, and started again."""


Round = Aim | Trouble | Outage

TOO_SOON = (-signal.SIGTERM, -signal.SIGINT, -hardship.STEP)
"""How a process ends that was told to before it could hear."""
ENDED = frozenset(
    {exits.DONE, exits.UNSETTLED, exits.UNAVAILABLE, exits.INTERRUPTED, exits.TERMINATED, *TOO_SOON}
)  # fmt: skip
"""How a process may end that nobody killed: whatever befell it, it said so, and it met no defect of its own."""


class Rounds:
    """Plays one round after the other.

    Args:
        scene: where.
        chance: draws whom, when and how much.
        kills: how many there will be.
        step: told of every round.
    """

    def __init__(self, scene: Scene, chance: random.Random, kills: int, step: Callable[[str], None]) -> None:
        self._scene, self._chance, self._step = scene, chance, step
        self._idle_max = max(IDLE_MIN, kills // IDLE_SHARE)
        self._idle = 0
        self._living: list[Child] = []
        self.ahead = 0.0
        """How far a clock was ahead at most, in seconds."""
        self._journal = Journal(scene.folder / TROUBLES)
        self.record = KillRecord(scene.folder, scene.where.store)
        self.troubles: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        """By exit code, how the processes ended that nobody killed."""

    def play(self, entry: Round) -> None:
        """Play one round."""
        if not self._scene.sweeper.running:  # it met a full disk when it began
            self._end(self._scene.sweeper)
            self._scene.start_sweeper()
        match entry:
            case Aim():
                self._kill(entry)
            case Trouble.STOPPED:
                self._stop()
            case Trouble.TERMINATED | Trouble.INTERRUPTED:
                self._signal(entry)
            case Trouble.CLOCK:
                self._clock()
            case Trouble.DISK:
                self._disk()
            case Outage.RESTARTED:
                self._restart()
            case _ as never:
                assert_never(never)
        self._reap(LIVING_MAX)

    def finish(self) -> None:
        """Wait for everybody's end."""
        self._reap(0)
        self.record.close()
        self._journal.close()

    def _reap(self, most: int) -> None:
        """Look how those have ended that have, and wait for the oldest where more than so many still live."""
        self._living.sort(key=lambda child: child.running)
        while self._living and (len(self._living) > most or not self._living[0].running):
            self._end(self._living.pop(0))

    def _end(self, child: Child) -> None:
        """Wait for the end of a process that nobody killed."""
        self.ends[str(check_ended(child, "a process in the chaos", ENDED))] += 1

    # -- kills -----------------------------------------------------------------------------------------------------

    def _kill(self, aim: Aim) -> None:
        while not self._killed(aim):
            self._missed()
            aim = Aim.SOON

    def _killed(self, aim: Aim) -> bool:
        """Start a run, kill it or the worker beside it at the aim, and say whether that was in time."""
        scene = self._scene
        way, calls = SLOW if aim is Aim.SOCKET else ROUGH, CONCURRENCY.get(aim, CONCURRENCY_ELSE)
        run = scene.start_run(FRESH, way=way, calls=calls)
        # A look is mostly the worker's own; at random it is either's turn.
        beside = aim is Aim.LOOK or (aim is Aim.RANDOM and self._chance.random() < 1 / 2)
        victim = scene.sweeper if beside else run
        await_aim(victim, aim, scene.sights, self._chance, sends=SENDS, also=run)
        seen = run.running or not beside
        if seen:
            victim.signal(signal.SIGKILL)
        killed = seen and victim.wait() == -signal.SIGKILL
        if killed:
            fell = self.record.add(victim.pid, aim)
            self._step(f"kill {self.record.kills} ({aim.value}) fell {fell.value}")
        if killed and beside:
            scene.start_sweeper()
        if beside or not killed:
            self._living.append(run)
        return killed

    # -- other troubles --------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Stop a run in the middle of its sends, or every third time the worker beside it in the middle of a look."""
        scene = self._scene
        if (self.troubles[Trouble.STOPPED] + 1) % 3:
            victim = self._caught(Aim.SOCKET, way=SLOW)
        else:
            victim = self._caught_beside(scene.sweeper)
            self._later(STOPPED_SECONDS + GOES_ON_SECONDS, victim, signal.SIGTERM)
            scene.start_sweeper()
        self._note(Trouble.STOPPED, victim)
        victim.signal(signal.SIGSTOP)
        self._later(STOPPED_SECONDS, victim, signal.SIGCONT)
        self._living.append(victim)

    def _signal(self, trouble: Trouble) -> None:
        run = self._caught(Aim.SOCKET, way=SLOW)
        self._note(trouble, run)
        run.signal(signal.SIGTERM if trouble is Trouble.TERMINATED else signal.SIGINT)
        self._living.append(run)

    def _clock(self) -> None:
        """Let the clock of a run, or of the worker beside it, step forward or back in the middle of its work."""
        scene, turn = self._scene, self.troubles[Trouble.CLOCK]
        step = -STEP_SECONDS if turn & 2 else STEP_SECONDS  # by twos, so that each of both steps either way
        under = hardship.arguments(ahead=self.ahead, step=step)
        if turn & 1:
            scene.sweeper.signal(signal.SIGTERM)
            self._living.append(scene.sweeper)
            victim = self._caught_beside(scene.start_sweeper(under))
        else:
            victim = self._caught(Aim.SEND, way=ROUGH, under=under)
            self._living.append(victim)
        self._note(Trouble.CLOCK, victim)
        victim.signal(hardship.STEP)
        self.ahead += max(0.0, step)

    def _disk(self) -> None:
        """Fill the disk while a run begins, or while its first sends are under way."""
        scene, disk = self._scene, self._scene.where
        if not isinstance(disk, Disk):
            raise RunFailed("a database has no disk of its own that could be filled")
        left, sending = self._chance.randint(LEFT_BYTES_MIN, LEFT_BYTES_MAX), self.troubles[Trouble.DISK] % 2
        empty_log(disk.store)
        if disk.full is Full.RLIMIT:
            run = scene.start_run(FRESH_UNHURT, under=hardship.arguments(file_bytes=left))
        else:
            run = self._caught(Aim.SOCKET, way=SLOW) if sending else scene.start_run(FRESH_UNHURT)
            disk.fill(left)
            reached(lambda: not run.running, FULL_SECONDS if sending else BEGIN_SECONDS_MAX)
            disk.free()
        self._note(Trouble.DISK, run)
        self._living.append(run)

    def _restart(self) -> None:
        """Stop the database in the middle of a run's sends, and start it again."""
        database = self._scene.where
        if not isinstance(database, Database):
            raise RunFailed("a file of receipts has no server that could be stopped")
        run = self._caught(Aim.SEND, way=ROUGH)
        self._living.append(run)
        database.restart()
        self._step("the database was restarted")

    def unhurt(self) -> None:
        """Let a run come to its end."""
        self._living.append(self._scene.start_run(FRESH_UNHURT))
        self._reap(0)

    def _caught(self, aim: Aim, *, way: str, under: Sequence[str] = ()) -> Child:
        """Start a run and return it at the aim, still running; one that ended before is followed by another."""
        scene = self._scene
        while True:
            run = scene.start_run(FRESH_UNHURT, way=way, under=under)
            await_aim(run, aim, scene.sights, self._chance, sends=SENDS)
            if run.running:
                return run
            self._living.append(run)
            self._missed()

    def _caught_beside(self, worker: Child) -> Child:
        """Start a run and return the worker beside it as a look is made, by either of them."""
        run = self._scene.start_run(FRESH_UNHURT)
        self._living.append(run)
        await_aim(worker, Aim.LOOK, self._scene.sights, self._chance, sends=SENDS, also=run)
        return worker

    def _missed(self) -> None:
        self._idle += 1
        if self._idle > self._idle_max:
            raise RunFailed(f"{self._idle} runs ended too soon; there were {self.record.kills} kills")

    def _note(self, trouble: Trouble, child: Child) -> None:
        self._journal.append({"at": time.time(), "trouble": trouble.value, "pid": child.pid})
        self.troubles[trouble.value] += 1
        self._step(f"{trouble.value}: {self.troubles[trouble.value]}")

    @staticmethod
    def _later(seconds: float, child: Child, number: signal.Signals) -> None:
        """Signal a process in a while, whatever round is played by then: somebody may be waiting for its lock."""
        timer = threading.Timer(seconds, child.signal, [number])
        timer.daemon = True
        timer.start()
