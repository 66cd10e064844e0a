"""`counterfoil store check | migrate | copy | grants`: where receipts stand, and whether that can be trusted."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from counterfoil.cli import exits, parser
from counterfoil.domain.errors import BadValue, StoreUnsafe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from counterfoil.ports.store import Store

_POSTGRESQL = """
SELECT current_setting('server_version'), (SELECT schema FROM book), current_setting('fsync'),
    current_setting('synchronous_commit'), (SELECT count(*) FROM operation),
    (SELECT count(*) FROM operation WHERE unresolved > 0)
"""
_TOTAL = "SELECT (SELECT count(*) FROM operation) + (SELECT count(*) FROM event)"


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    acts = verb.add_subparsers(metavar="WHAT", required=True, title="what")
    check = parser.act(acts, "check", "open the store, and say what its durability rests on", _check)
    parser.store_option(check)
    parser.actions_option(check)
    migrate = parser.act(acts, "migrate", "make the tables of a database, or bring them to this version's", _migrate)
    parser.store_option(migrate)
    copy = parser.act(
        acts, "copy", "move a receipts file into an empty database; the file is refused afterwards", _copy
    )
    copy.add_argument("--from", dest="source", metavar="PATH", required=True, help="the receipts file")
    copy.add_argument("--to", dest="target", metavar="URL", required=True, help="the database")
    grants = parser.act(
        acts, "grants", "print the SQL that gives a database's roles what they need, and no more", _grants
    )
    grants.add_argument("--application", metavar="ROLE", required=True, help="of whatever calls, works or decides")
    grants.add_argument("--eraser", metavar="ROLE", required=True, help="of `counterfoil retain` and `erase`")


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    return int(asked.act(asked))


# -- check -------------------------------------------------------------------------------------------------------------


def _check(asked: argparse.Namespace) -> int:
    """Whatever cannot be trusted was refused when it was opened; what is said is what stands."""
    from counterfoil.cli.opening import for_reading

    with for_reading(asked) as ledger:
        facts = {"store": ledger.store.name, **_facts(ledger.store)}
    return _said(asked, facts, [f"{name.replace('_', ' '):20} {value}" for name, value in facts.items()])


def _facts(store: Store) -> dict[str, Any]:
    names = ("server", "schema", "fsync", "synchronous_commit", "operations", "unresolved")
    if store.path is None:
        return dict(zip(names, store.query(_POSTGRESQL)[0], strict=True))

    def one(statement: str) -> Any:  # noqa: ANN401 - a pragma answers with anything
        return store.query(statement)[0][0]

    import sqlite3

    found = ("SQLite " + sqlite3.sqlite_version, one("PRAGMA user_version"), one("PRAGMA journal_mode"))
    counts = (one("SELECT count(*) FROM operation"), one("SELECT count(*) FROM operation WHERE unresolved > 0"))
    return dict(zip(("server", "schema", "journal", "operations", "unresolved"), (*found, *counts), strict=True))


# -- migrate -----------------------------------------------------------------------------------------------------------


def _migrate(asked: argparse.Namespace) -> int:
    from counterfoil.store import choosing

    named = asked.store or os.environ.get(parser.STORE) or ""
    if not choosing.is_url(named):
        raise BadValue("--store", named, wanted="the URL of a database: a file is brought up to date when it is opened")
    with _psycopg(named):
        from counterfoil.store import migrating
        from counterfoil.store.connecting import address, reach

        to = address(named)
    with contextlib.closing(reach(to, writes=True)) as session:
        before = migrating.migrate(session, to.name)
    fact = {"store": to.name, "before": before, "schema": migrating.SCHEMA}
    done = "is as this version makes it" if before == migrating.SCHEMA else f"went from {before} to {migrating.SCHEMA}"
    return _said(asked, fact, [f"{to.name}: the schema {done}"])


# -- copy --------------------------------------------------------------------------------------------------------------


def _copy(asked: argparse.Namespace) -> int:
    from pathlib import Path

    from counterfoil.cli.opening import must_exist
    from counterfoil.store import choosing
    from counterfoil.store.sqlite import SqliteStore

    if not choosing.is_url(asked.target):
        raise BadValue("--to", asked.target, wanted="the URL of a database")
    must_exist(Path(asked.source))
    with _psycopg(asked.target):
        from counterfoil.store.copying import copy
        from counterfoil.store.postgresql import PostgresStore
    with contextlib.closing(SqliteStore(asked.source)) as source:
        _refuse_broken(source, "nothing was copied")
        _refuse_in_use(source)
        with contextlib.closing(PostgresStore(asked.target)) as target:
            total = int(str(source.query(_TOTAL)[0][0]))
            with _progress(2 * total) as advance:
                rows = copy(source, target, advance)
            _refuse_broken(target, "do not use it")
            name = target.name
    fact = {"from": str(asked.source), "to": name, "rows": rows}
    said = f"{rows:,} rows stand in {name}, each compared and every chain verified; the file is refused from now on"
    return _said(asked, fact, [said])


def _refuse_broken(store: Store, then: str) -> None:
    """A chain that is broken is not to be carried on unnoticed."""
    from counterfoil.cli.verify import verify
    from counterfoil.runtime.ledger import Ledger

    found = verify(Ledger(store), lambda: None)
    if found.violations:
        first = found.violations[0]
        raise StoreUnsafe(store.name, f"does not verify ({first.law.value}: {first.problem}); {then}")


def _refuse_in_use(source: Store) -> None:
    """A process that goes on with the file would send what another, on the database, sends as well."""
    from counterfoil.runtime.quiescence import ALIVE, Roster

    roster = Roster(source, source.beside(".workers"))
    for worker, pid in source.query("SELECT id, pid FROM worker"):
        if roster.hand(str(worker), "") == ALIVE:
            raise StoreUnsafe(source.name, f"is in use by process {pid}: stop every worker and caller first")


# -- grants ------------------------------------------------------------------------------------------------------------


def _grants(asked: argparse.Namespace) -> int:
    from counterfoil.store.grants import grants

    made = grants(asked.application, asked.eraser)
    return _said(asked, {"sql": made}, made.splitlines())


# -- saying it ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _psycopg(url: str) -> Iterator[None]:
    """Say what is missing where the driver is."""
    from counterfoil.store.choosing import missing

    try:
        yield
    except ImportError as error:
        raise missing(url) from error


def _said(asked: argparse.Namespace, fact: dict[str, Any], lines: list[str]) -> int:
    from counterfoil.cli.terminal import print_json, safe

    if asked.json:
        print_json(fact)
    else:
        print("\n".join(map(safe, lines)), flush=True)
    return exits.DONE


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from counterfoil.cli.terminal import console

    columns = (TextColumn("copying and comparing"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task("copying", total=total)
        yield lambda rows: progress.advance(task, rows)
