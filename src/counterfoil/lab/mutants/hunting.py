"""One mutant hunted through worlds, in a process of its own, where its rule is off.

``python -m counterfoil.lab.mutants.hunting hunt SLUG FIRST LAST [DIR]`` plays the worlds FIRST ... LAST - 1 of the
mutant's terrain up to the first that breaks a law which must notice it, prints one line of JSON, and leaves that world
in the folder. The rule is off where `counterfoil.lab.sabotage` started it. ``... control SLUG:WORLD ...`` plays those
worlds, whatever is off, a line each.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterfoil.lab.mutants.catalogue import MUTANTS, Mutant
from counterfoil.lab.world import run
from counterfoil.lab.world.batch import played
from counterfoil.lab.world.options import Options, drawn
from counterfoil.lab.world.score import counted, law_of
from counterfoil.lab.world.shrink import laws

OPERATIONS = 40
"""In one world of a hunt."""


def options_for(mutant: Mutant, number: int) -> Options:
    """One world of a mutant's terrain."""
    return drawn(f"{mutant.slug}-{number}", **{"operations": OPERATIONS, **mutant.terrain})


def hunt(mutant: Mutant, first: int, last: int, top: Path | None = None) -> dict[str, Any]:
    """Play worlds until one of them notices; say which, and by which law."""
    operations = 0
    for number in range(first, last):
        keep = None if top is None else top / kept_as(mutant.slug, number)
        world, had = played(options_for(mutant, number), keep)
        operations += had
        noticed = sorted(laws(world.violations) & mutant.laws)
        if noticed:
            said = next(said for said in world.violations if law_of(said) == noticed[0])
            figures = {"operations": had, **counted(world)}
            return {
                "world": number, "law": noticed[0], "said": said, "operations": operations, "figures": figures
            }  # fmt: skip
        if keep is not None:
            shutil.rmtree(keep)
    return {"world": None, "law": "", "said": "", "operations": operations, "figures": {}}


def kept_as(slug: str, number: int) -> str:
    """The folder in which the world that noticed a mutant is left."""
    return f"{slug}-{number:05d}"


def control(places: Sequence[str]) -> None:
    """Play worlds in which a mutant was noticed and tell what is broken in each."""
    for place in places:
        slug, _, number = place.partition(":")
        world, _ = played(options_for(MUTANTS[slug], int(number)))
        print(json.dumps({"slug": slug, "world": int(number), "violations": world.violations}), flush=True)


def main() -> None:
    """Hunt or control, and tell."""
    what, *rest = sys.argv[1:]
    with run.virtual():
        if what == "control":
            control(rest)
        else:
            slug, first, last, *top = rest
            told = hunt(MUTANTS[slug], int(first), int(last), Path(top[0]) if top else None)
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
