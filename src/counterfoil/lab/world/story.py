"""One world of a simulation, told as it happens, or made smaller; in a process of its own, a line of JSON each.

``python -m counterfoil.lab.world.story tell SEED WORLD OPERATIONS`` tells it; ``... shrink SEED WORLD OPERATIONS LAW
SECONDS`` looks for the smallest world that still breaks that law.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from counterfoil.lab.world import run
from counterfoil.lab.world.batch import played
from counterfoil.lab.world.options import drawn
from counterfoil.lab.world.shrink import shrunk


def _say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


def main() -> None:
    """Play the world."""
    what, seed, number, operations, *rest = sys.argv[1:]
    options = drawn(f"{seed}-{number}", int(operations))
    with run.virtual():
        if what == "shrink":
            law, seconds = rest
            smaller, said = shrunk(options, law, float(seconds))
            _say(options=msgspec.to_builtins(smaller), violations=said)
            return
        _say(options=msgspec.to_builtins(options))
        world, had = played(options, tell=lambda at, words: _say(at=at, said=words))
        _say(violations=world.violations, operations=had, trace=world.digest())


if __name__ == "__main__":
    main()
