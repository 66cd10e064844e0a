"""Commands as they are printed to be copied: with the store and the actions that this command was given itself."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

import msgspec

from counterfoil.cli.opening import DEFAULT_STORE
from counterfoil.cli.parser import ACTIONS, STORE

WHO = "--as NAME --reason TEXT"
"""What every decision needs where no terminal is there to ask."""


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """The options that lead a copied command to the same receipts."""

    store: str = ""
    """` --store PATH`, or empty where the command finds the file by itself."""
    actions: str = f' --actions "${ACTIONS}"'
    """` --actions SPEC`, or empty where the environment names it."""

    def read(self, verb: str, *words: str) -> str:
        """A command that only reads."""
        return " ".join(("counterfoil", verb, *words)) + self.store

    def act(self, verb: str, *words: str) -> str:
        """A command that needs the actions."""
        return self.read(verb, *words) + self.actions


def hints(asked: argparse.Namespace, store: Path | None, *, actions: str = "") -> Hints:
    """What a command copied from this one's output must be given.

    Args:
        asked: has `actions` where the verb knows it.
        store: the receipts file in use; None: a database, by a URL that may hold a password.
        actions: what was used where neither the option nor the environment named any.
    """
    where = _store(store)
    if getattr(asked, "actions", None) or (actions and not os.environ.get(ACTIONS)):
        return Hints(store=where, actions=f" --actions {shlex.quote(asked.actions or actions)}")
    return Hints(store=where, actions="") if os.environ.get(ACTIONS) else Hints(store=where)


def _store(store: Path | None) -> str:
    found = os.environ.get(STORE)
    if store is None:
        return "" if found else f' --store "${STORE}"'
    same = Path(found or DEFAULT_STORE).absolute() == store.absolute()
    return "" if same else f" --store {shlex.quote(_shown(store))}"


def _shown(path: Path) -> str:
    """A path as it is shortest to type from here."""
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)
