"""One world of a simulation or a search, told as it happens, or made smaller; in a process of its own, JSON by lines.

``python -m counterfoil.lab.world.story tell SEED WORLD OPERATIONS`` tells a world; ``... play OPTIONS`` one that is
named by its options; ``... follow KIND BASE FAULTS SWITCHES PATH`` one schedule of a search; ``... shrink SEED WORLD
OPERATIONS LAW SECONDS`` looks for the smallest world that still breaks that law.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from counterfoil.lab.world import run, scenario
from counterfoil.lab.world.batch import played
from counterfoil.lab.world.chance import Search
from counterfoil.lab.world.options import Options, differing, drawn, read
from counterfoil.lab.world.shrink import shrunk


def _say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


def _happens(at: float, words: str) -> None:
    _say(at=at, said=words)


def main() -> None:
    """Play the world."""
    what, *given = sys.argv[1:]
    with run.virtual():
        match what, given:
            case "tell", [seed, number, operations]:
                _tell(drawn(f"{seed}-{number}", int(operations)))
            case "play", [options]:
                _tell(read(options))
            case "follow", [kind, base, faults, switches, path]:
                _follow(kind, base, Search.along(path, int(faults), int(switches)))
            case "shrink", [seed, number, operations, law, seconds]:
                smaller, said = shrunk(drawn(f"{seed}-{number}", int(operations)), law, float(seconds))
                _say(options=msgspec.to_builtins(smaller), differing=differing(smaller), violations=said)
            case _:
                sys.exit(__doc__)


def _tell(options: Options) -> None:
    _say(options=msgspec.to_builtins(options))
    world, had = played(options, tell=_happens)
    _say(violations=world.violations, operations=had, trace=world.digest())


def _follow(kind: str, base: str, search: Search) -> None:
    _say(options=msgspec.to_builtins(scenario.options_for(kind, base)))
    with run.folder() as folder:
        world = scenario.followed(kind, base, folder / "receipts.db", search, _happens)
    _say(violations=world.violations, operations=world.operations, trace=world.digest(), strayed=search.strayed)


if __name__ == "__main__":
    main()
