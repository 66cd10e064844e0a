"""One operation, every way: the scenario that a search explores, over and over in the same file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from counterfoil.lab.world.chance import Search
from counterfoil.lab.world.check import at_end
from counterfoil.lab.world.hands import SimStore
from counterfoil.lab.world.options import BASES, Options
from counterfoil.lab.world.play import World, time
from counterfoil.lab.world.programs import ACTOR, Message, Queue, call, live
from counterfoil.lab.world.score import STANDS
from counterfoil.lab.world.stage import EPOCH, Process
from counterfoil.runtime.worker import Worker
from counterfoil.store.sqlite import SqliteStore

SWEEPS = (0.0, 11.0, 13.0, 16.0, 80.0, 100.0)
"""Seconds at which the worker sweeps while things go wrong: beside the call, past its deadline, past the horizon."""
TROUBLE_SECONDS, CALM_SECONDS = 120.0, 4000.0
CALM_SWEEPS = (150.0, 220.0, 300.0, 400.0, 550.0, 640.0, 720.0, 800.0, 900.0, 1000.0, 1200.0, 1500.0, 2000.0, 3000.0)
"""After two faults what is owed may be due only then; a sweep that has nothing to do is none."""


def options_for(kind: str, base: str) -> Options:
    """A world of one operation with one kind of provider."""
    return Options(
        seed=f"search {kind}", operations=1, kinds=(kind,), rates={}, sends={}, looks={}, callers=2, workers=1,
        far=False, asks=0, assumed=True, beyond=False, ahead=False, sweep_seconds=0.0,
        first="" if base == BASES[0] else base,
    )  # fmt: skip


class Explored:
    """What a search of one kind came to."""

    def __init__(self) -> None:
        self.schedules = 0
        self.violations: list[tuple[str, str]] = []
        self.complete = False


def explore(
    kind: str, base: str, path: Path, search: Search, most: int, told: Callable[[World], None] = lambda _: None
) -> Explored:
    """Play every schedule there is, or as many as allowed.

    Args:
        kind: of the provider.
        base: what becomes of the first send.
        path: the file that all of them are played in.
        search: says what goes wrong in each.
        most: schedules at most.
        told: given each world when it has been judged; the search stands on its path.
    """
    found = Explored()
    SqliteStore(path, clock=lambda: EPOCH).close()
    stores: list[SimStore] = []
    while not search.done and found.schedules < most:
        search.begin()
        world = one(options_for(kind, base), path, search, stores)
        found.schedules += 1
        found.violations += [(search.path(), said) for said in world.violations]
        told(world)
        search.end()
    found.complete = search.done
    for store in stores:
        store.drop()
    return found


def followed(kind: str, base: str, path: Path, search: Search, tell: Callable[[float, str], None]) -> World:
    """Play the one schedule that a path names, and tell it.

    Args:
        kind: of the provider.
        base: what becomes of the first send.
        path: a file of its own.
        search: stands on the path.
        tell: told of everything that happens.
    """
    SqliteStore(path, clock=lambda: EPOCH).close()
    stores: list[SimStore] = []
    search.begin()
    world = one(options_for(kind, base), path, search, stores, tell)
    for store in stores:
        store.drop()
    return world


def one(
    options: Options, path: Path, search: Search, stores: list[SimStore],
    tell: Callable[[float, str], None] | None = None,
) -> World:  # fmt: skip
    """Play one schedule in a file that is wiped first."""
    _wipe(path)
    world = World(options, path, search, stores)
    world.tell = tell
    time.world = world
    try:
        queue = Queue()
        message = Message(kind=options.kinds[0], key="order-1", amount=1)
        for name in ("caller 0", "caller 1"):
            live(world, name, "near", _once(world, message, queue), queue)
        live(world, "worker", "near", _sweeping(world))
        world.stage.run(EPOCH + TROUBLE_SECONDS)
        search.calm = True
        world.stage.run(EPOCH + TROUBLE_SECONDS + CALM_SECONDS)
        world.broke(*at_end(world))
        world.stands = world.read(STANDS)
    finally:
        world.end()
    return world


def _once(world: World, message: Message, queue: Queue) -> Callable[[Process], None]:
    """Call once; a process that takes the place of a dead one calls again."""

    def program(process: Process) -> None:
        ledger = world.opened(process, ACTOR)
        call(world, ledger, message, queue)

    return program


def _sweeping(world: World) -> Callable[[Process], None]:
    def program(process: Process) -> None:
        ledger = world.opened(process, "agent:worker")
        worker = Worker(ledger)
        for at in (*SWEEPS, *CALM_SWEEPS):
            wait = EPOCH + at - world.stage.now
            if wait < 0:
                continue
            world.stage.pass_time(wait)
            if not world.calm or worker.pending():
                worker.sweep()

    return program


_TABLES = ("body", "event", "operation", "worker")


def _wipe(path: Path) -> None:
    """Take every row out, triggers or not: the next schedule begins with nothing."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        found = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall())
        db.execute("BEGIN IMMEDIATE")
        for name in found:
            db.execute(f"DROP TRIGGER {name}")
        for table in _TABLES:
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant of this module
        db.execute("UPDATE clock SET at = 0")
        for statement in found.values():
            db.execute(statement)
        db.execute("COMMIT")
    finally:
        db.close()
