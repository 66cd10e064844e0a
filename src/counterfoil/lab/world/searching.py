"""One kind's schedules, explored in a process of its own.

``python -m counterfoil.lab.world.searching KIND BASE FAULTS SWITCHES MOST`` prints one line of JSON.
"""

from __future__ import annotations

import json
import sys

from counterfoil.lab.world import run
from counterfoil.lab.world.chance import Search
from counterfoil.lab.world.scenario import explore

SHOWN_MAX = 5


def main() -> None:
    """Explore, and tell."""
    kind, base = sys.argv[1:3]
    faults, switches, most = map(int, sys.argv[3:6])
    with run.virtual(), run.folder() as folder:
        found = explore(kind, base, folder / "receipts.db", Search(faults, switches), most)
    broken = [{"path": "".join(map(str, path)), "said": said} for path, said in found.violations]
    told = {
        "kind": kind, "base": base, "schedules": found.schedules, "complete": found.complete,
        "violations": len(broken), "broken": broken[:SHOWN_MAX],
    }  # fmt: skip
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
