"""A driver that stops for good: the process is gone between two effects, and nobody is told."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.world import World, die

from counterfoil.runtime import ledger as running

STEPS_MAX = 200
"""More effects than any plan here has: an enumeration that comes this far does not end."""


class Crash(BaseException):
    """The process is gone; nothing of the product may catch it."""


class Stopping:
    """Drives plans like the product, counts their effects, and stops before or after one of them.

    Args:
        step: the effect to stop at, counted from 0 over all plans driven; None never stops.
        when: `before` or `after` it was carried out.
    """

    def __init__(self, step: int | None, when: str = "before") -> None:
        self._step, self._when = step, when
        self._numbers = itertools.count()
        self.seen: list[str] = []

    def drive(self, plan, hands):
        """Carry a plan out, as `counterfoil.runtime.drive.drive` does, up to the fatal step."""
        try:
            effect = next(plan)
            while True:
                effect = self._one(plan, hands, effect)
        except StopIteration as stop:
            return stop.value
        finally:
            plan.close()

    def _one(self, plan, hands, effect):
        number = next(self._numbers)
        self.seen.append(type(effect).__name__)
        self._stop(number, "before")
        try:
            reply = hands.perform(effect)
        except Crash:
            raise
        except BaseException as error:  # noqa: BLE001 - as the product's driver does
            return plan.throw(error)
        self._stop(number, "after")
        return plan.send(reply)

    def _stop(self, number: int, when: str) -> None:
        if number == self._step and when == self._when:
            raise Crash


@contextlib.contextmanager
def stopping(step: int | None, when: str = "before") -> Iterator[Stopping]:
    """Let every ledger of this process drive its plans with a driver that stops."""
    driver, drive = Stopping(step, when), running.drive
    running.drive = driver.drive
    try:
        yield driver
    finally:
        running.drive = drive


def left_behind(
    folder: Path, kind: str, *fates: str, step: int, when: str, longest_delivery: float | None = None
) -> World:
    """A world whose first process died at one point of its call."""
    world = World(folder, kind, *fates, longest_delivery=longest_delivery)
    ledger = world.open()
    with stopping(step, when), pytest.raises(Crash):
        world.call(ledger)
    die(ledger)
    return world


def points() -> Iterator[tuple[int, str]]:
    """Every place to stop: before and after the first effect, the second, and so on."""
    for step in range(STEPS_MAX):
        yield step, "before"
        yield step, "after"
    raise AssertionError("the plan has no end")
