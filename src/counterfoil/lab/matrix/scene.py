"""Where a life is played: the virtual world of the simulation, under a script, with the processes that it names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from counterfoil.domain.answer import Answer
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import CounterfoilError, InvariantBroken
from counterfoil.lab.images.shim import Shim
from counterfoil.lab.matrix.gate import CODES, Gate
from counterfoil.lab.matrix.life import Act, Life
from counterfoil.lab.matrix.script import Script
from counterfoil.lab.world.declared import policy_for
from counterfoil.lab.world.options import Options
from counterfoil.lab.world.play import World, time
from counterfoil.lab.world.programs import ACTOR
from counterfoil.lab.world.provider import Provider
from counterfoil.lab.world.stage import EPOCH, Crashed, Process
from counterfoil.lab.world.truth import Wire
from counterfoil.ports.store import Store
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.policies import adopt
from counterfoil.runtime.worker import Worker
from counterfoil.store.sqlite import SqliteStore

RESTART_SECONDS = 0.5
"""After which another process takes the place of one that died."""


class Hands(NamedTuple):
    """What somebody who does something has: the scene, the process, and its ledger."""

    scene: Scene
    process: Process
    ledger: Ledger
    worker: Worker


class Attended(Provider):
    """The world's provider, with one more place: it has happened, and the answer is not read yet."""

    def _travel(self, fate: str, wire: Wire) -> Answer | None:
        answer = super()._travel(fate, wire)
        self._world.point("mid_answer")
        return answer


class Scene(World):
    """One life.

    Args:
        life: what happens.
        kind: of provider.
        path: where its receipts stand.
        gate: the file system's word, where there is one.
    """

    def __init__(self, life: Life, kind: str, path: Path, gate: Gate | None) -> None:
        self.script = Script(life.strikes, {"send": life.sends, "look": life.looks}, life.said)
        super().__init__(_options(life, kind), path, self.script)
        self.life, self.kind, self.gate = life, kind, gate
        self.providers = {kind: Attended(self, kind)}
        self.told: list[str] = []
        """What each call was told, and each decision that was refused."""
        self.passed: list[tuple[str, str]] = []
        """Each place that somebody came by, in order."""
        self._places: dict[Process, str] = {}
        self._processes: dict[str, Process] = {}
        self._hands: dict[Process, Hands] = {}
        self.script.place = self._place

    def _place(self) -> tuple[str, str]:
        process = self.stage.process
        return (process.name, self._places.get(process, "")) if process else ("", "")

    def point(self, where: str) -> None:
        """The same, and the file system may begin to fail here; another exception may interrupt."""
        process = self.stage.process
        if process is not None:
            self._places[process] = where
            self.passed.append((process.name, where))
        try:
            super().point(where)
        except KeyboardInterrupt:
            raise self.life.interruption from None
        if self.gate is not None:
            self._shut(self.gate)

    def _shut(self, gate: Gate) -> None:
        for fault, codes in CODES.items():
            if self.strikes(fault):
                gate.shut(codes, until=self.stage.now + self.script.seconds)

    # -- processes ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Adopt the policy, and start every process that the life names."""
        if self.life.asks:
            store = self.plain()
            who = Decider(by="user:lea", reason="we begin", how="terminal", seen=0)
            adopt(store, policy_for(self.life.asks), who, replaces="")
            store.close()
        for name in dict.fromkeys(act.by for act in self.life.acts):
            mine = (act for act in self.life.acts if act.by == name)
            self._live(name, sorted(mine, key=lambda act: act.at))

    def plain(self) -> Store:
        """The store, in nobody's hands."""
        return SqliteStore(self.path, clock=self.time.now)

    def _live(self, name: str, acts: list[Act]) -> None:
        """Do one thing after the other; where the process dies, another of its name does what is left."""
        base = name.partition("/")[0]
        process = self._processes.get(base)
        if process is None or process.dead:
            process = self._processes[base] = Process(self.stage, base, _host(base))
        self._run(process, name, list(acts))

    def _run(self, process: Process, name: str, left: list[Act]) -> None:
        def run() -> None:
            try:
                while left:
                    self.stage.pass_time(max(EPOCH + left[0].at - self.stage.now, 0.0))
                    self._do(self._opened(process), left.pop(0))
            except (Crashed, KeyboardInterrupt, self.life.interruption) as end:
                self._gone(process, end)
                if left:
                    self.stage.at(self.stage.now + RESTART_SECONDS, lambda: self._live(name, left))

        process.spawn(run)

    def _opened(self, process: Process) -> Hands:
        hands = self._hands.get(process)
        if hands is None:
            ledger = self.opened(process, ACTOR if process.name.startswith("caller") else f"agent:{process.name}")
            if not self.life.spools:
                ledger.spool.put = ledger._executor._spool.put = lambda *_: False  # type: ignore[method-assign]  # noqa: SLF001 - there is no such place
            hands = self._hands[process] = Hands(self, process, ledger, Worker(ledger, report=self._reported))
        return hands

    def _do(self, hands: Hands, act: Act) -> None:
        try:
            act.does(hands)
        except InvariantBroken:
            raise
        except CounterfoilError as refused:
            self.tell_of(type(refused).__name__)

    def _gone(self, process: Process, end: BaseException) -> None:
        if not isinstance(end, Crashed):
            self.interrupted(process)
        process.dead = True
        self.dropped(process)
        self._hands.pop(process, None)

    def _reported(self, _: str, what: object) -> None:
        if isinstance(what, Exception) and not isinstance(what, CounterfoilError):
            raise what

    def tell_of(self, what: str) -> None:
        """Keep what somebody was told."""
        self.told.append(what)

    @property
    def operation(self) -> str:
        """The id of the operation that this is about: the first that stands in the file."""
        found = self.read("SELECT id FROM operation ORDER BY n LIMIT 1")
        return str(found[0][0]) if found else ""


def _host(name: str) -> str:
    return "far" if name.endswith("far") else "near"


def _options(life: Life, kind: str) -> Options:
    return Options(
        seed="matrix", operations=1, kinds=(kind,), rates={"clock_step": 0.0} if life.stepped else {}, sends={},
        looks={}, callers=1, workers=1, far=False, asks=life.asks, assumed=life.assumed, beyond=life.beyond,
        ahead=False, sweep_seconds=0.0, key_seconds=life.key_seconds, looks_max=life.looks_max,
    )  # fmt: skip


@contextlib.contextmanager
def played(life: Life, kind: str, folder: Path) -> Iterator[Scene]:
    """Give the scene of one life, begun; nothing of it runs yet.

    Args:
        life: what happens.
        kind: of provider.
        folder: gets the receipts file.
    """
    gate = Gate() if life.watched else None
    with Shim(folder, gate) if gate else contextlib.nullcontext():
        scene = Scene(life, kind, folder / "receipts.db", gate)
        if gate is not None:
            gate.clock = lambda: scene.stage.now
        with begun(scene):
            yield scene


@contextlib.contextmanager
def begun(scene: Scene) -> Iterator[None]:
    """Let the world be a scene's for a while."""
    time.world = scene
    try:
        scene.begin()
        yield
    finally:
        scene.end()
