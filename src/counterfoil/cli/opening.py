"""Which ledger a command works on: from `--store`, `--actions`, the environment, or the current folder."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.cli.parser import ACTIONS, STORE
from counterfoil.domain.errors import BadValue, StoreUnsafe

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

DEFAULT_STORE = "receipts.db"


def for_reading(asked: argparse.Namespace) -> Ledger:
    """Open a receipts file that exists, with no action registered; nothing is created and nothing can be sent.

    Args:
        asked: has `store`, and `actions` where the verb knows it.

    Raises:
        StoreUnsafe: there is no such file, or it cannot be trusted.
    """
    from counterfoil.bootstrap import open_ledger

    path = _store(asked) or _store_of_actions(asked) or Path(DEFAULT_STORE)
    must_exist(path)
    return open_ledger(path)


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
        raise BadValue("--actions", "", wanted=f"name an actions file or MODULE:LEDGER, here or in ${ACTIONS}")
    return actions.load(spec, store=_store(asked), new=new)


def must_exist(path: Path) -> None:
    """Refuse a receipts file that is not there: a command that only reads must not make one."""
    if not path.exists():
        raise StoreUnsafe(str(path), f"does not exist; name the receipts file with --store or ${STORE}")


def _store(asked: argparse.Namespace) -> Path | None:
    named = asked.store if asked.store is not None else os.environ.get(STORE)
    if named is None:
        return None
    if not named or "\0" in named:
        raise BadValue("--store", named, wanted="the path of a receipts file")
    return Path(named)


def _store_of_actions(asked: argparse.Namespace) -> Path | None:
    """Where the actions file keeps its receipts; a module is not imported only to be asked."""
    spec = getattr(asked, "actions", None) or os.environ.get(ACTIONS) or ""
    if not spec.endswith((".yaml", ".yml")):
        return None
    from counterfoil.runtime import actions

    return actions.store_of(Path(spec))
