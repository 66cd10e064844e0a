"""Which ledger a command works on: from `--store`, `--actions`, the environment, or the current folder."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.cli.exits import Missing
from counterfoil.cli.parser import ACTIONS, STORE
from counterfoil.cli.terminal import clipped
from counterfoil.domain.errors import BadValue, StoreUnsafe

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

DEFAULT_STORE = "receipts.db"
PATH_BYTES_MAX, PART_BYTES_MAX = 4_000, 240
"""What every file system takes, with room for the log beside the file."""
AT_HAND_MAX = 10
"""Files that are named in an error: a folder with more is no place to guess in."""
PATH_COLUMNS = 80


def for_reading(asked: argparse.Namespace, *, new: bool = False, made_by: str = "") -> Ledger:
    """Open a receipts file that exists, with no action registered; nothing is created and nothing can be sent.

    Args:
        asked: has `store`, and `actions` where the verb knows it.
        new: it may be created after all.
        made_by: the option by which it would be.

    Raises:
        StoreUnsafe: there is no such file, or it cannot be trusted.
    """
    from counterfoil.bootstrap import open_ledger

    store = _store(asked) or _store_of_actions(asked) or Path(DEFAULT_STORE)
    if isinstance(store, Path) and not new:
        must_exist(store, made_by=made_by)
    return open_ledger(store, new=new)


def for_acting(asked: argparse.Namespace, *, default_actions: Path | None = None, new: bool = False) -> Ledger:
    """Open the ledger whose actions may be looked at and sent.

    Args:
        asked: has `store` and `actions`.
        default_actions: used where neither the option nor the environment names any.
        new: the receipts file may be created.

    Raises:
        BadValue: no actions are named.
        ActionsInvalid: they are wrong.
        StoreUnsafe: the receipts file is missing or cannot be trusted.
    """
    from counterfoil.runtime import actions

    spec = asked.actions or os.environ.get(ACTIONS) or (default_actions and str(default_actions))
    if not spec:
        said = f"no actions file is named: pass --actions FILE.yaml or MODULE:LEDGER, or set {ACTIONS}"
        raise Missing("--actions", said)
    return actions.load(spec, store=_store(asked), new=new)


def must_exist(path: Path, *, made_by: str = "") -> None:
    """Refuse a receipts file that is not there: a command that only reads must not make one."""
    if not path.exists():
        here = at_hand()
        found = f"; in this folder there is {', '.join(here)}" if here else ""
        or_made = f", or let {made_by} make it" if made_by else ""
        raise StoreUnsafe(str(path), f"does not exist{found}; name the receipts file with --store or ${STORE}{or_made}")


def at_hand() -> list[str]:
    """The receipts files this folder has, or an actions file in it names; none of them is opened for it."""
    from counterfoil.domain.errors import CounterfoilError
    from counterfoil.runtime import actions

    found = {str(path): "" for path in sorted(Path().glob("*.db"))[:AT_HAND_MAX]}
    for file in sorted(Path().glob("*.yaml"))[:AT_HAND_MAX]:
        try:
            store = actions.store_of(file)
        except CounterfoilError:
            continue  # another program's file
        if isinstance(store, Path) and store.exists():
            found[str(store)] = f" (the store of {file})"
    return [clipped(name, PATH_COLUMNS) + said for name, said in found.items()][:AT_HAND_MAX]


def _store(asked: argparse.Namespace) -> str | Path | None:
    named = asked.store if asked.store is not None else os.environ.get(STORE)
    if named is None:
        return None
    if not named or "\0" in named:
        raise BadValue("--store", named, wanted="the path of a receipts file, or the URL of a database")
    from counterfoil.store import choosing

    store = choosing.named(named)
    if isinstance(store, Path):
        _fits(named, store)
    return store


def _fits(named: str, path: Path) -> None:
    if len(os.fsencode(named)) > PATH_BYTES_MAX:
        raise BadValue("--store", named, wanted=f"the path of a receipts file, of at most {PATH_BYTES_MAX} bytes")
    if any(len(os.fsencode(part)) > PART_BYTES_MAX for part in path.parts):
        raise BadValue("--store", named, wanted=f"a path of parts of at most {PART_BYTES_MAX} bytes each")


def _store_of_actions(asked: argparse.Namespace) -> str | Path | None:
    """Where the actions file keeps its receipts; a module is not imported only to be asked."""
    spec = getattr(asked, "actions", None) or os.environ.get(ACTIONS) or ""
    if not spec.endswith((".yaml", ".yml")):
        return None
    from counterfoil.runtime import actions

    return actions.store_of(Path(spec))
