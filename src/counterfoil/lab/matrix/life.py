"""One life of one operation, as data: what happens to it, and what must be so at which moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from counterfoil.lab.matrix.script import Strike
from counterfoil.lab.world.provider import KEY_SECONDS

if TYPE_CHECKING:
    from counterfoil.lab.matrix.scene import Hands

Facts = Mapping[str, Any]
"""What must be so, by name: columns of the receipt as they stand in the file, what follows from them, and the truth."""

SWEEPS = (1.5, 2.0, 3.0, 5.0, 8.0, 11.0, 13.0, 16.0, 25.0, 45.0, 75.0, 80.0, 100.0, 150.0, 300.0, 600.0, 900.0)
"""Seconds at which a worker sweeps: beside the call, past its deadline, past the horizon."""
AGAIN, END = 1000.0, 1100.0
"""When whoever called calls again, and when all is over."""
SEEN = 1.0
"""When one looks at what a fault has left, where nobody has taken it up yet."""


class Act(NamedTuple):
    """Somebody does something, once."""

    at: float
    """Seconds from the beginning."""
    by: str
    """The process: the same name after its death is another process; `NAME/2` is a second thread of it."""
    does: Callable[[Hands], object]


class Moment(NamedTuple):
    """What must be so at one time."""

    at: float
    facts: Facts


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """One operation from its first call to its end."""

    acts: tuple[Act, ...]
    moments: tuple[Moment, ...]
    strikes: tuple[Strike, ...] = ()
    sends: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()
    """What becomes of the first, the second and so on; then nothing goes wrong."""
    fates_fire: bool = True
    """Each of those must come up; not where a crash may come first."""
    said: Mapping[str, Any] = {}
    """How long something takes, where it matters."""
    asks: int = 0
    """How many people the policy asks."""
    assumed: bool = True
    """The deployment states how long a delivery takes."""
    beyond: bool = False
    """What it states is broken."""
    stepped: bool = False
    """Clocks are stepped."""
    key_seconds: float = KEY_SECONDS
    looks_max: int = 0
    """0: as the contract says."""
    spools: bool = True
    """There is a place beside the store."""
    interruption: type[BaseException] = KeyboardInterrupt
    """What an interrupted process is told."""
    watched: bool = False
    """A file system stands under the store that can be told to fail."""
