"""One kind's schedules, explored in a process of its own.

``python -m counterfoil.lab.world.searching KIND BASE FAULTS SWITCHES MOST [DIR]`` prints one line of JSON; with a
folder, every schedule leaves a line there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from counterfoil.lab.world import run
from counterfoil.lab.world.chance import Search
from counterfoil.lab.world.scenario import explore
from counterfoil.lab.world.searched import Searched

SHOWN_MAX = 5


def main() -> None:
    """Explore, and tell."""
    kind, base = sys.argv[1:3]
    faults, switches, most = map(int, sys.argv[3:6])
    search, left = Search(faults, switches), None
    with run.virtual(), run.folder() as folder:
        if len(sys.argv) > 6:  # noqa: PLR2004 - the last argument
            left = Searched(Path(sys.argv[6]), f"{kind}-{base}", search)
        found = explore(kind, base, folder / "receipts.db", search, most, left.add if left else lambda _: None)
    if left:
        left.close()
    broken = [{"path": path, "said": said} for path, said in found.violations]
    told = {
        "kind": kind, "base": base, "schedules": found.schedules, "complete": found.complete,
        "violations": len(broken), "broken": broken[:SHOWN_MAX],
    }  # fmt: skip
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
