"""Where a kill is aimed: from outside, by the clock and by what the provider sees arrive, never by a hook."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab.ground_truth import EFFECTS, WIRE
from counterfoil.lab.processes import Child
from counterfoil.lab.watch import Tail, reached

START_SECONDS_MAX = 0.35
"""About as long as a run needs from its start to its first claim."""
SOON_SECONDS_MAX = 0.1
"""Shorter than any run lasts: the interpreter alone takes longer to start."""
LIFE_SECONDS_MAX = 0.8
"""About as long as a run of a few lines takes from its start to its end."""
HALFWAY_SECONDS_MIN, HALFWAY_SECONDS_MAX = 0.08, 0.25
"""After a request arrived at a proxy that stalls every answer (`STALL_SECONDS`): the first half is out by the one, and
the second is not by the other."""
STALL_SECONDS = 0.4
"""How long such a proxy leaves an answer halfway."""
ANSWER_SECONDS_MAX = 0.01
"""About twice what an answer and the record of its outcome take together."""
SIGHT_SECONDS_MAX = 120.0
"""How long a request is waited for; a run without any ends long before."""


class Aim(StrEnum):
    """What a kill waits for."""

    START = "start"
    """Some moment around the beginning of the run."""
    SEND = "send"
    """A request has just arrived and its answer is not out: the claim is durable and the outcome is not."""
    LOOK = "look"
    """A look has just arrived."""
    EFFECT = "effect"
    """An effect has just been applied: its answer is on the way, its outcome about to be written or just written."""
    SOCKET = "mid_socket"
    """An answer is halfway through its connection: the effect has happened, and the run has read a part of that."""
    RANDOM = "random"
    """Some moment of a whole life."""
    SOON = "soon"
    """So soon that any run still runs; taken where a run ended before its kill."""


CONCURRENCY = {Aim.EFFECT: 1}
"""Calls at once of the run that a kill is aimed at, where it matters: with several, one is always in flight."""
CONCURRENCY_ELSE = 3
"""Enough that a kill meets several, few enough that some are left for the next."""

SHARES = ((Aim.SEND, 0.5), (Aim.START, 0.2), (Aim.EFFECT, 0.2), (Aim.LOOK, 0.1))
"""Half the kills are aimed between claim and outcome, so that a third falls there on a slow machine too."""


def aims(
    kills: int, chance: random.Random, *, looks: bool, shares: Sequence[tuple[Aim, float]] = SHARES
) -> Iterator[Aim]:
    """Name an aim for each kill, in an order drawn by chance.

    Args:
        kills: how many.
        chance: draws the order.
        looks: the contract has looks that a kill may wait for.
        shares: how much of the kills goes to each aim; what is left over by rounding is aimed at sends.
    """
    shares = [(Aim.EFFECT if aim is Aim.LOOK and not looks else aim, share) for aim, share in shares]
    listed = [aim for aim, share in shares for _ in range(round(kills * share))]
    listed = (listed + [Aim.SEND] * kills)[:kills]
    chance.shuffle(listed)
    return iter(listed)


class Sights:
    """What can be seen of a run from the provider's side.

    Args:
        folder: where the provider writes what it received and what it did.
        stalled: where a proxy that stalls every answer writes what passes it, if there is one.
    """

    def __init__(self, folder: Path, stalled: Path | None = None) -> None:
        self._wire, self._done = Tail(folder / WIRE), Tail(folder / EFFECTS)
        self._stalled = None if stalled is None else Tail(stalled / WIRE)
        self.sends = self.looks = self.effects = self.stalls = 0
        self.only: frozenset[str] | None = None
        """Digests of the payloads that count; None counts all. Looks have none, and count in any case."""

    def look(self) -> None:
        """Count what was written since."""
        for entry in self._wire.more():
            self.sends += entry["act"] == "send" and self._counts(entry)
            self.looks += entry["act"] == "look"
        self.effects += sum(map(self._counts, self._done.more()))
        if self._stalled is not None:
            self.stalls += sum(entry["act"] == "send" and self._counts(entry) for entry in self._stalled.more())

    def _counts(self, entry: Mapping[str, Any]) -> bool:
        return self.only is None or entry["payload_sha256"] in self.only


def strike(child: Child, aim: Aim, sights: Sights, chance: random.Random, *, sends: int) -> bool:
    """Kill a run at the aim and say whether it was still running then.

    Args:
        child: the run.
        aim: what is waited for.
        sights: of its provider.
        chance: draws how many requests and how long.
        sends: about how many sends this kill may let pass.
    """
    await_aim(child, aim, sights, chance, sends=sends)
    if not child.running:
        return False
    child.signal(signal.SIGKILL)
    return child.wait() == -signal.SIGKILL


def await_aim(
    child: Child, aim: Aim, sights: Sights, chance: random.Random, *, sends: int, also: Child | None = None
) -> None:
    """Wait for the moment an aim names, or until the child has ended.

    Args:
        child: whom it is about.
        aim: what is waited for.
        sights: of its provider.
        chance: draws how many requests and how long.
        sends: about how many sends may pass.
        also: whose end ends the waiting too: without it there would be nothing to see.
    """
    sights.look()
    pause = 0.0
    seen = _Seen(sights, child, also or child)
    match aim:
        case Aim.START:
            pause = chance.uniform(0, START_SECONDS_MAX)
        case Aim.SOON:
            pause = chance.uniform(0, SOON_SECONDS_MAX)
        case Aim.RANDOM:
            pause = chance.uniform(0, LIFE_SECONDS_MAX)
        case Aim.SEND:
            seen.wait(sends=sights.sends + chance.randint(1, max(1, sends)))
        case Aim.LOOK:
            seen.wait(looks=sights.looks + 1)
        case Aim.EFFECT:
            seen.wait(effects=sights.effects + chance.randint(1, max(1, sends)))
            pause = chance.uniform(0, ANSWER_SECONDS_MAX)
        case Aim.SOCKET:
            seen.wait(stalls=sights.stalls + 1)
            pause = chance.uniform(HALFWAY_SECONDS_MIN, HALFWAY_SECONDS_MAX)
    until = time.monotonic() + pause
    reached(lambda: not child.running or time.monotonic() >= until, pause)


class _Seen(NamedTuple):
    """Waiting for what is seen of a run."""

    sights: Sights
    child: Child
    also: Child

    def wait(self, *, sends: int = 0, looks: int = 0, effects: int = 0, stalls: int = 0) -> None:
        """Wait until there are so many in all, or nobody is left of whom there could be more."""

        def seen() -> bool:
            sights = self.sights
            sights.look()
            enough = sights.sends >= sends and sights.looks >= looks
            enough = enough and sights.effects >= effects and sights.stalls >= stalls
            return enough or not self.child.running or not self.also.running

        reached(seen, SIGHT_SECONDS_MAX)
