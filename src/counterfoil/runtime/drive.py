"""The two drivers: they carry effects out and decide nothing.

An exception of an effect, Ctrl+C and cancellation included, is thrown into the plan, which records what is known
and raises it again.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

from counterfoil.plans.effects import Effect, Plan

T = TypeVar("T")


class Hands(Protocol):
    """What carries one effect out, in either world."""

    def perform(self, effect: Effect) -> Any:
        """Carry an effect out in the calling thread."""
        ...

    def aperform(self, effect: Effect) -> Awaitable[Any]:
        """Carry an effect out without holding up the event loop."""
        ...


def drive(plan: Plan[T], hands: Hands) -> T:
    """Carry a plan out, blocking; return what it returns."""
    perform = hands.perform
    try:
        effect = next(plan)
        while True:
            try:
                reply = perform(effect)
            except BaseException as error:  # noqa: BLE001 - the plan records what is known and raises it again
                effect = plan.throw(error)
            else:
                effect = plan.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


async def adrive(plan: Plan[T], hands: Hands) -> T:
    """Carry a plan out on the running event loop; return what it returns."""
    perform = hands.aperform
    try:
        effect = next(plan)
        while True:
            try:
                reply = await perform(effect)
            except BaseException as error:  # noqa: BLE001 - the plan records what is known and raises it again
                effect = plan.throw(error)
            else:
                effect = plan.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
