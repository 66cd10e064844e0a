"""What a virtual process holds: the real store and executor, with a place between any two things they do."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from counterfoil.cli.named import SHORT_CHARS
from counterfoil.domain.action import Draw
from counterfoil.domain.command import Command, Reply
from counterfoil.domain.errors import StoreBusy
from counterfoil.domain.identifier import NONCE_BYTES, operation_id
from counterfoil.domain.payload import SALT_BYTES
from counterfoil.lab.world.stage import Crashed, Process
from counterfoil.plans.effects import Send
from counterfoil.runtime.executor import Executor
from counterfoil.store import rows
from counterfoil.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from counterfoil.lab.world.play import World
    from counterfoil.plans.effects import Effect


class Time(ModuleType):
    """Stands in the place of `time` in the modules that read it: the clock is the world's."""

    def __init__(self) -> None:
        super().__init__("time")
        self.world: World | None = None

    def time(self) -> float:
        """The wall clock of the host that asks."""
        return self.now()

    def monotonic(self) -> float:
        """A clock that does not go back, and stands still while its host sleeps; what is paused goes on later."""
        return self.world.stage.now - self.world.slept if self.world else 0.0

    def sleep(self, seconds: float) -> None:
        """Let the others go on meanwhile."""
        if self.world:
            self.world.stage.pass_time(seconds)

    def now(self) -> float:
        """Seconds since the epoch, by the clock of the host whose process runs."""
        world = self.world
        if world is None:
            return 0.0
        process = world.stage.process
        return world.stage.now + (world.skew.get(process.host, 0.0) if process else 0.0)


class Struck:
    """A store's writes; before and after each commit the process may stop, die or be told that it failed."""

    _world: World
    _process: Process
    _durable: Callable[[Command], Reply]

    def _written(self, command: Command) -> Reply:
        world = self._world
        kind = type(command).__name__
        world.about = about(command)
        world.point(f"before {kind}")
        if world.store_fails():
            self._process.sure = False
            raise StoreBusy(str(world.path))
        reply = self._durable(command)
        world.about = about(command)
        if world.strikes("ack_lost"):
            self._process.sure = False
            world.seen(f"the acknowledgement of {kind} was lost")
            world.trace("lost", type(reply).__name__)
            raise StoreBusy(str(world.path))
        world.committed(command, reply)
        world.point(f"after {kind}")
        return reply


class SimStore(Struck, SqliteStore):
    """The real store of a file."""

    def __init__(self, world: World, process: Process) -> None:
        self._world, self._process = world, process
        super().__init__(world.path, clock=world.time.now, uptime=lambda: self._world.uptime(self._process.host))
        self._durable = self.write
        self.write = self._written

    def again(self, world: World, process: Process) -> None:
        """Serve another process as if it had opened the file just now; opening one costs more than a whole call."""
        self._world, self._process = world, process
        self._seen, self._seen_at = rows.latest(self._connection()), self._world.time.monotonic()
        self._policy_at = self._stood_at = 0.0

    def drop(self) -> None:
        """Let go of the file for good."""
        self._close_connections()


class SimExecutor(Executor):
    """The real executor; between any two effects others go on, and this is where a process dies."""

    world: World

    def perform(self, effect: Effect) -> Any:
        """Carry one effect out, with a place before it and one after it."""
        kind = type(effect).__name__
        self.world.about = about(effect)
        self.world.point(f"before {kind}")
        process = self.world.stage.process
        if isinstance(effect, Send) and process is not None:
            self.world.sending[process], self.world.sent_for[process] = effect.token, effect.operation
            process.sure = True
        reply = super().perform(effect)
        self.world.about = about(effect)
        self.world.point(f"after {kind}")
        return reply


def about(effect: object) -> str:
    """The operation an effect is about, as its id begins; empty where it is about none yet."""
    claim = getattr(effect, "claim", effect)
    named = str(getattr(claim, "operation", "") or getattr(claim, "id", ""))
    return named[:SHORT_CHARS] if named.startswith("op_") else ""


class SimRoster:
    """Who is alive, as the kernel would say: a process of another host is never proven dead."""

    def __init__(self, world: World, process: Process) -> None:
        self._world, self._process = world, process
        self._name = ""
        self.in_hand: set[str] = set()

    def worker(self) -> str:
        """This process's id."""
        if not self._name:
            self._name = self._world.enrol(self._process)
        return self._name

    def hand(self, worker: str, token: str) -> str:
        """Say whether the holder of a token can still write."""
        holder = self._world.workers[worker]
        if holder is self._process:
            return "alive" if token in self.in_hand else "dead"
        if holder.host != self._process.host:
            return "unknown"
        return "dead" if holder.dead else "alive"

    def retire(self) -> None:
        """The process ends as it should."""


class SimDrawer:
    """Draws by the world's seed."""

    def __init__(self, world: World, roster: SimRoster, seed: str) -> None:
        self._world, self._roster = world, roster
        self._random = random.Random(seed)
        self._tokens = 0

    def draw(self) -> Draw:
        """Draw everything one call needs."""
        worker = self._roster.worker()
        self._tokens += 1
        n = self._world.number()
        return Draw(
            n=n, id=operation_id(n, self._random.randbytes(NONCE_BYTES)), worker=worker,
            token=f"{worker}.{self._tokens}", salts=self._random.randbytes(2 * SALT_BYTES),
            jitter=self._random.random(),
        )  # fmt: skip


__all__ = ["Crashed", "SimDrawer", "SimExecutor", "SimRoster", "SimStore", "Time"]
