"""What one world is like: drawn from its seed, so that no two worlds have the same troubles (swarm testing)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import msgspec

from counterfoil.lab.world.provider import BEYOND, DELIVERY_SECONDS, KEY_SECONDS, KINDS, LOOKS, SENDS

FAULTS = (
    "crash", "stop", "interrupt", "store_busy", "ack_lost", "clock_step", "collision", "redelivery", "slow",
    "outage",
)  # fmt: skip
"""What can strike between two effects, beside what a provider does."""


BASES = ("answered", "reply_lost")
"""What becomes of the first send in a search, where no fault strikes it: only what is unknown is looked for."""
STEP_SECONDS = 3600.0
"""How far a clock may be off (A6)."""
NIGHT_SECONDS = 86_400.0 + 3 * STEP_SECONDS
"""Longer than a key is kept, whatever the clocks say."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    """Deliveries may take longer than that all the same, and a look may show what stood before (A3, A5)."""
    ahead: bool
    """Clocks may be stepped forward by more than a delivery takes, so what seems long past may be only just past."""
    sweep_seconds: float
    key_seconds: float = KEY_SECONDS
    """How long the provider remembers a key, and says so."""
    looks_max: int = 0
    """How many looks the contracts allow; 0: as they say."""
    stops: tuple[float, ...] = (1.0, 8.0, 30.0, 600.0)
    """For how many seconds a process may be paused."""
    stop_at: str = ""
    """The one place where that happens; empty: any."""
    night_seconds: float = 0.0
    """How long every host sleeps once, in the middle of it all; the provider does not."""
    reboot: bool = False
    """They are booted again after it; how long that took no clock of theirs can say."""
    first: str = ""
    """What becomes of the very first send, whatever chance says; empty: what chance says."""

    @property
    def stepped(self) -> bool:
        """Clocks are stepped.

        Not where a key is kept for less than a step and hosts have only the wall clock in common: no retention could
        outlast that (A6).
        """
        one_boot = not (self.far or self.reboot)
        return "clock_step" in self.rates and (one_boot or self.key_seconds > STEP_SECONDS)

    @property
    def assumptions_hold(self) -> bool:
        """What is concluded from absence may be relied on: deliveries take no longer, whatever clocks say (A3)."""
        return not self.beyond

    def assumed_of(self) -> dict[str, object]:
        """What the deployment assumes of every delivery, and whether that holds here: for whoever counts again."""
        return {"assumptions": "hold" if self.assumptions_hold else "broken", "delivery_seconds": DELIVERY_SECONDS}


def drawn(seed: str, operations: int, **terrain: Any) -> Options:
    """Draw a world; what a terrain names is as it says."""
    return msgspec.structs.replace(_drawn(seed, operations), **terrain)


def _drawn(seed: str, operations: int) -> Options:
    chance = random.Random(f"options {seed}")

    def some(names: tuple[str, ...], least: float, most: float) -> dict[str, float]:
        on = [name for name in names if chance.random() < 0.6]  # noqa: PLR2004 - most, never all
        return {name: least + (most - least) * chance.random() for name in on}

    beyond = chance.random() < 0.1  # noqa: PLR2004 - one world in ten
    sends, looks = (tuple(name for name in fates[1:] if beyond or name not in BEYOND) for fates in (SENDS, LOOKS))
    kinds = tuple(kind for kind in KINDS if chance.random() < 0.8) or KINDS  # noqa: PLR2004
    return Options(
        seed=seed, operations=operations, kinds=kinds,
        rates=some(FAULTS, 0.001, 0.02) | {"redelivery": 0.1 + 0.3 * chance.random()},
        sends={SENDS[0]: 1.0 + 6 * chance.random(), **some(sends, 0.05, 1.0)},
        looks={LOOKS[0]: 1.0 + 4 * chance.random(), **some(looks, 0.02, 0.5)},
        callers=chance.choice((1, 2, 2, 3)), workers=chance.choice((1, 1, 2)), far=chance.random() < 0.5,  # noqa: PLR2004
        asks=chance.choice((0, 0, 1, 1, 2)), assumed=chance.random() < 0.7, beyond=beyond,  # noqa: PLR2004
        ahead=chance.random() < 0.5,  # noqa: PLR2004
        sweep_seconds=chance.choice((3.0, 8.0, 25.0)),
        key_seconds=chance.choice((*[KEY_SECONDS] * 8, 40.0, 100.0)), looks_max=chance.choice((0, 0, 0, 1, 2)),
        night_seconds=chance.choice((*[0.0] * 9, NIGHT_SECONDS)), reboot=chance.random() < 0.5,  # noqa: PLR2004
    )  # fmt: skip


def read(text: str) -> Options:
    """Read a world that is named by its seed, its operations, and whatever differs from what that seed draws.

    Raises:
        ValueError: it names none; the message says why.
    """
    try:
        named = msgspec.json.decode(text, type=dict[str, Any])
        seed, operations = str(named.pop("seed")), int(named.pop("operations"))
        return msgspec.convert(msgspec.to_builtins(drawn(seed, operations)) | named, Options)
    except KeyError as missing:
        raise ValueError(f"a world has a {missing.args[0]}") from missing
    except (msgspec.MsgspecError, TypeError) as error:
        raise ValueError(str(error)) from error


def differing(options: Options) -> dict[str, Any]:
    """What `read` needs to make a world again: its seed, its operations, and what differs from what that draws."""
    usual = msgspec.to_builtins(drawn(options.seed, options.operations))
    named = msgspec.to_builtins(options)
    return {name: named[name] for name in named if name in ("seed", "operations") or named[name] != usual[name]}
