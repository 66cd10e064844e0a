"""Run worlds: one after another by their seeds, each in a file of its own."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from counterfoil.domain.decision import Decider
from counterfoil.domain.schedule import CALL, REST, REVIEW
from counterfoil.lab.world.check import at_end
from counterfoil.lab.world.declared import policy_for
from counterfoil.lab.world.options import Options
from counterfoil.lab.world.people import desk
from counterfoil.lab.world.play import CALM_SECONDS, TROUBLE_SECONDS, World, time
from counterfoil.lab.world.programs import Message, Queue, caller, live, worker
from counterfoil.lab.world.score import STANDS
from counterfoil.lab.world.stage import EPOCH
from counterfoil.runtime import executor
from counterfoil.runtime.policies import adopt
from counterfoil.store import opening, reckoning, sqlite
from counterfoil.store.sqlite import SqliteStore

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of our own in it
"""Where a file is a file and nobody waits for a disk: what survives a loss of power is asked elsewhere."""


@contextlib.contextmanager
def virtual() -> Iterator[None]:
    """Let the modules that read a clock read the world's."""
    places: list[Any] = [executor, sqlite, opening, reckoning]
    real = [place.time for place in places]
    for place in places:
        place.time = time
    try:
        yield
    finally:
        for place, was in zip(places, real, strict=True):
            place.time = was


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder for receipts files, in memory where there is one."""
    with tempfile.TemporaryDirectory(prefix="world-", dir=MEMORY) as made:
        yield Path(made)


def play(options: Options, path: Path, tell: Callable[[float, str], None] | None = None) -> World:
    """Play one world to its end and judge it; its violations are on it.

    Args:
        options: what goes wrong.
        path: where its receipts stand.
        tell: told of everything that happens.
    """
    world = World(options, path)
    world.tell = tell
    time.world = world
    try:
        queue = _begin(world)
        ends = EPOCH + TROUBLE_SECONDS + _night(world)
        world.stage.run(ends)
        world.chance.calm = True  # type: ignore[attr-defined]
        world.skew.clear()
        while world.stage.now < ends + CALM_SECONDS and not _settled(world, queue):
            world.stage.run(world.stage.now + CALM_SECONDS / 30)
        world.broke(*at_end(world))
        world.stands = world.read(STANDS)
        world.trace(*world.stands)
    finally:
        world.end()
    return world


def _night(world: World) -> float:
    """Let every host sleep once, if this world says so; how many seconds that takes."""
    seconds = world.options.night_seconds
    if seconds:
        world.stage.run(EPOCH + world.chance.between("dusk", 100.0, TROUBLE_SECONDS / 2))
        world.stage.asleep_until, world.slept = world.stage.now + seconds, seconds
        world.seen("every host slept for a night")
        if world.options.reboot:
            world.stage.at(world.stage.asleep_until, world.reboot)
    return seconds


def _settled(world: World, queue: Queue) -> bool:
    """Nothing is owed by anything automatic, nothing is on its way and nobody is about to call: no more will happen."""
    owed = world.read("SELECT count(*) FROM operation WHERE step NOT IN ('', ?, ?, ?)", REVIEW, REST, CALL)[0][0]
    return not (owed or any(world.truth.on_the_way.values()) or queue.waiting or queue.held)


def _begin(world: World) -> Queue:
    options = world.options
    store = SqliteStore(world.path, clock=world.time.now)
    if options.asks:
        who = Decider(by="user:lea", reason="we begin", how="terminal", seen=0)
        adopt(store, policy_for(options.asks), who, replaces="")
    store.close()
    queue = Queue()
    fill(world, queue)
    for n in range(options.callers):
        live(world, f"caller {n}", "near", caller(world, queue), queue)
    for n in range(options.workers):
        host = "far" if options.far and n else "near"
        live(world, f"worker {n}", host, worker(world, options.sweep_seconds))
    live(world, "desk", "near", desk(world))
    return queue


def fill(world: World, queue: Queue) -> None:
    """Put every message of the world into its queue; some are the same effect under another name, or other bytes."""
    chance, before = world.chance, ""
    for i in range(world.options.operations):
        odd = chance.among("odd", range(20)) if i else 2
        kind = before if odd in (0, 1) else chance.among("kind", world.options.kinds)
        # Either the same payment as the one before, under a key of its own, or its key with another payment.
        amount, key = i - 1 if odd == 0 else i, f"order-{i - 1 if odd == 1 else i}"
        queue.waiting.append(Message(kind=kind, key=key, amount=amount))
        before = kind
