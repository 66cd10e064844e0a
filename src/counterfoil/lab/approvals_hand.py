"""Another process at a case's receipts file: it calls once, and stands still where it is told to.

It says `ready` where it stands and goes on when its standard input ends; most of them are killed there.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from counterfoil.lab.approvals_scene import Desk, Scene, Where
from counterfoil.lab.processes import READY_WORD


def _stand() -> None:
    print(READY_WORD, flush=True)
    sys.stdin.read()


def _live(desk: Desk, *, approves: bool, before: int) -> None:
    if not before:
        desk.call()
        _stand()
        return
    if approves:
        desk.approve(desk.call().id)
    with desk.interposed(before, _stand):
        desk.call()


def main(arguments: Sequence[str] | None = None) -> int:
    """Live once."""
    parser = argparse.ArgumentParser(prog="counterfoil.lab.approvals_hand", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="holds the receipts file")
    parser.add_argument("--port", type=int, required=True, help="where the provider listens")
    parser.add_argument("--before", type=int, default=0, metavar="N", help="stand before the nth effect of the call")
    parser.add_argument("--approve", action="store_true", help="ask, and let a person approve, before the call")
    asked = parser.parse_args(arguments)
    with contextlib.ExitStack() as house:
        scene = Scene(Where(asked.folder, asked.port, None), house)
        _live(scene.desk(opened={"live": True}), approves=asked.approve, before=asked.before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
