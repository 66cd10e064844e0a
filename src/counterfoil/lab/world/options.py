"""What one world is like: drawn from its seed, so that no two worlds have the same troubles (swarm testing)."""

from __future__ import annotations

import random
from collections.abc import Mapping

import msgspec

from counterfoil.lab.world.provider import BEYOND, KINDS, LOOKS, SENDS

FAULTS = (
    "crash", "stop", "interrupt", "store_busy", "ack_lost", "clock_step", "collision", "redelivery", "late_answer",
)  # fmt: skip
"""What can strike between two effects, beside what a provider does."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """One world's own troubles."""

    seed: str
    operations: int
    kinds: tuple[str, ...]
    rates: Mapping[str, float]
    """How often each fault strikes, at each place where it can."""
    sends: Mapping[str, float]
    looks: Mapping[str, float]
    """How likely each fate is."""
    callers: int
    workers: int
    far: bool
    """The second worker is on another host: it can prove nobody dead, and its clock is its own."""
    asks: int
    """How many people the policy asks; 0: there is no policy."""
    assumed: bool
    """The deployment states how long a delivery takes."""
    beyond: bool
    """Deliveries may take longer than that all the same."""
    ahead: bool
    """Clocks may be stepped forward by more than a delivery takes, so what is long past may be only just past (A6)."""
    sweep_seconds: float
    first: str = ""
    """What becomes of the very first send, whatever chance says; empty: what chance says."""


def drawn(seed: str, operations: int) -> Options:
    """Draw a world."""
    chance = random.Random(f"options {seed}")  # noqa: S311 - a simulation is no secret

    def some(names: tuple[str, ...], least: float, most: float) -> dict[str, float]:
        on = [name for name in names if chance.random() < 0.6]  # noqa: PLR2004 - most, never all
        return {name: least + (most - least) * chance.random() for name in on}

    beyond = chance.random() < 0.1  # noqa: PLR2004 - one world in ten
    usual = tuple(name for name in SENDS[1:] if beyond or name not in BEYOND)
    kinds = tuple(kind for kind in KINDS if chance.random() < 0.8) or KINDS  # noqa: PLR2004
    return Options(
        seed=seed, operations=operations, kinds=kinds,
        rates=some(FAULTS, 0.001, 0.02) | {"redelivery": 0.1 + 0.3 * chance.random()},
        sends={SENDS[0]: 1.0 + 6 * chance.random(), **some(usual, 0.05, 1.0)},
        looks={LOOKS[0]: 1.0 + 4 * chance.random(), **some(LOOKS[1:], 0.02, 0.5)},
        callers=chance.choice((1, 2, 2, 3)), workers=chance.choice((1, 1, 2)), far=chance.random() < 0.5,  # noqa: PLR2004
        asks=chance.choice((0, 0, 1, 1, 2)), assumed=chance.random() < 0.7, beyond=beyond,  # noqa: PLR2004
        ahead=chance.random() < 0.1,  # noqa: PLR2004
        sweep_seconds=chance.choice((2.0, 7.0, 20.0)),
    )  # fmt: skip
