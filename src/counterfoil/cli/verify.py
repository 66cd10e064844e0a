"""`counterfoil verify`: whether every receipt is whole, and the file still has what guards it.

It finds accidents and any edit that was not made with recomputation. A receipt removed together with all its events,
or rewritten with every hash after it, is found only against chain heads that are kept somewhere else.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from counterfoil.cli import exits, heads, parser
from counterfoil.domain.audit import audit
from counterfoil.domain.gone import audit_bodies
from counterfoil.domain.identifier import row_number
from counterfoil.domain.laws import Laws
from counterfoil.domain.policy_chain import audit_citations, audit_policies, cited
from counterfoil.domain.rejudge import rejudge
from counterfoil.domain.violation import Law, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.text import Text

    from counterfoil.domain.event import History
    from counterfoil.ports.store import Row
    from counterfoil.runtime.ledger import Ledger

SAID_MAX = 20
"""Violations on a terminal; the JSON has more."""
VIOLATIONS_MAX = 1_000
"""Violations in the JSON; a store with more is not mended one by one."""
DAMAGE_MAX = 10
"""Problems of the file itself that SQLite names."""

_STRAYS = (
    (
        "event",
        """SELECT id / 32768, id % 32768 FROM event
        WHERE NOT EXISTS (SELECT 1 FROM operation WHERE n = event.id / 32768) ORDER BY id LIMIT ?""",
    ),
    (
        "body",
        """SELECT id / 32768, id % 32768 FROM body
        WHERE NOT EXISTS (SELECT 1 FROM event WHERE event.id = body.id) ORDER BY id LIMIT ?""",
    ),
    (
        "second body",
        """SELECT id / 32768, id % 32768 FROM body
        WHERE EXISTS (SELECT 1 FROM event WHERE event.id = body.id AND event.body IS NOT NULL) ORDER BY id LIMIT ?""",
    ),
    (
        "refusal",
        """SELECT n, 0 FROM refusal WHERE times < 1 OR last_at <= 0
        OR NOT EXISTS (SELECT 1 FROM operation WHERE operation.n = refusal.n) ORDER BY n LIMIT ?""",
    ),
)
"""Rows that belong to nothing."""


class Found(msgspec.Struct, kw_only=True):
    """What one verification came to."""

    operations: int = 0
    events: int = 0
    violations: list[Violation] = []
    unjudged: int = 0
    """Findings that were to be judged anew and were not, although they could be: their contract was not at hand."""

    @property
    def whole(self) -> bool:
        """Nothing is wrong, and whatever was to be judged and could be was."""
        return not self.violations and not self.unjudged

    def add(self, violations: tuple[Violation, ...]) -> None:
        """Keep as many as anybody would read."""
        self.violations.extend(violations[: VIOLATIONS_MAX - len(self.violations)])


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verb.add_argument(
        "--deep", action="store_true",
        help="also judge every finding anew by the contracts of --actions, and count how often each law was asked",
    )  # fmt: skip
    verb.add_argument(
        "--write-heads", metavar="FILE",
        help="where nothing is wrong, write the last event of every operation into FILE, to be kept somewhere else",
    )  # fmt: skip
    verb.add_argument(
        "--heads", metavar="FILE", help="also ask that every operation named in FILE stands, with that very event"
    )
    parser.store_option(verb)
    parser.actions_option(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 only where nothing is wrong."""
    from counterfoil.cli.terminal import print_json

    laws = Laws() if asked.deep else None
    kept = heads.read(asked.heads) if asked.heads else {}
    watch = heads.Watch(kept)
    with _opened(asked) as ledger:
        total = int(str(ledger.store.query("SELECT count(*) FROM operation")[0][0]))
        with _progress(total) as advance:
            found = verify(ledger, advance, laws, watch.saw)
        found.add(tuple(_ahead(ledger, time.time())))
        lost = watch.against()
        found.add(lost)
        if laws:
            laws.elsewhere(Law.CHAIN, len(kept), lost)
            found.unjudged = laws.unjudged
        if asked.write_heads and not found.violations:
            heads.write(asked.write_heads, ledger)
    if asked.json:
        counted = {"laws": laws.rows(), "not_rejudged": laws.not_rejudged} if laws else {}
        print_json({**msgspec.to_builtins({**msgspec.structs.asdict(found), **counted}), "ok": found.whole})
    else:
        _say(found)
        if laws:
            _say_laws(laws)
    return exits.UNSETTLED if found.violations else exits.DEPLOYMENT if found.unjudged else exits.DONE


def _opened(asked: argparse.Namespace) -> Ledger:
    """The receipts, and for judging anew the actions, where some are named."""
    from counterfoil.cli.opening import for_acting, for_reading

    named = asked.actions or os.environ.get(parser.ACTIONS)
    return for_acting(asked) if asked.deep and named else for_reading(asked)


def verify(
    ledger: Ledger,
    advance: Callable[[], None],
    laws: Laws | None = None,
    watch: Callable[[Row], None] = lambda _: None,
) -> Found:
    """Check every operation, then what belongs to none, then the policies, then the file.

    Args:
        ledger: whose store; nothing is written.
        advance: told after each operation.
        laws: counts every law, and has every finding judged anew; None: neither.
        watch: told each operation as it was read.
    """
    found, counts, rests_on = Found(), laws or Laws(), dict[str, tuple[str, int]]()
    for row in ledger.store.walk():
        found.operations += 1
        history, violations = _checked(row)
        watch(row)
        found.add(violations)
        if history:
            found.events += len(history.events)
            found.add(_deeply(ledger, history, violations, laws) if laws else ())
            for seq, digest in cited(history):
                rests_on.setdefault(digest, (row.id, seq))
        else:
            counts.unreadable(violations)
        advance()
    policies = ledger.store.policies()
    chained = (*audit_policies(policies), *audit_citations(rests_on, policies))
    about = ((Law.IDENTITY, 0, _strays(ledger)), (Law.CHAIN, len(policies) + len(rests_on), chained))
    for law, questions, wrong in (*about, (Law.FILE, 1, (*_file(ledger), *_around(ledger)))):
        listed = tuple(wrong)
        counts.elsewhere(law, questions, listed)
        found.add(listed)
    return found


def _deeply(
    ledger: Ledger, history: History, violations: tuple[Violation, ...], laws: Laws
) -> tuple[Violation, ...]:  # fmt: skip
    """Count the laws of one operation, and judge its findings by the contract of its action, if that is at hand."""
    laws.operation(history, violations)
    operation = history.operation
    registered = ledger.registry.get(operation.action)
    action = registered.action if registered and registered.action.tenant == operation.tenant else None
    return laws.judged(operation, rejudge(history, action))


def _checked(row: Row) -> tuple[History | None, tuple[Violation, ...]]:
    """One operation and its violations; its row and events were read as they stood at one moment."""
    history = row.history
    if row_number(row.id) != row.n:
        return None, (_of_row(row.id, Law.IDENTITY, f"row {row.n} is not the row its id names"),)
    if isinstance(history, ValueError):
        return None, (_of_row(row.id, Law.RECORD, f"a word stands there that is none of the house's: {history}"),)
    return history, (*audit(history), *audit_bodies(history))


def _of_row(name: str, law: Law, problem: str) -> Violation:
    return Violation(operation=name, seq=0, law=law, problem=problem)


def _strays(ledger: Ledger) -> Iterator[Violation]:
    for kind, statement in _STRAYS:
        for n, seq in ledger.store.query(statement, (VIOLATIONS_MAX,)):
            said = f"the {kind} row of operation row {n}, number {seq}, belongs to nothing"
            yield Violation(operation="", seq=int(str(seq)), law=Law.IDENTITY, problem=said)


_WORKERS = """
SELECT id FROM worker WHERE id NOT LIKE 'w\\_%' ESCAPE '\\' OR host = '' OR pid < 1 OR lock_path = ''
OR started_at <= 0 OR marked_at < started_at ORDER BY id LIMIT ?"""
"""Workers of which nothing could ever prove that they are dead."""
AHEAD_SECONDS_MAX = 24 * 3600.0
"""How far the time that is kept may be ahead: further, and every deadline and approval would have ended long ago."""


def _around(ledger: Ledger) -> Iterator[Violation]:
    """What stands beside the receipts and is not chained: the workers."""
    for (name,) in ledger.store.query(_WORKERS, (VIOLATIONS_MAX,)):
        said = f"the row of worker {name} is not as a worker writes it, so its death could not be proven"
        yield Violation(operation="", seq=0, law=Law.FILE, problem=said)


def _ahead(ledger: Ledger, now: float) -> Iterator[Violation]:
    """The time that is kept, where it is ahead of this host's clock and of every event."""
    statement = "SELECT at FROM clock WHERE at > ? AND at > (SELECT coalesce(max(at), 0) FROM event) + ?"
    for (at,) in ledger.store.query(statement, (now + AHEAD_SECONDS_MAX, AHEAD_SECONDS_MAX)):
        said = f"the time that is kept, {at!r}, is more than a day ahead of this host's clock and of every event"
        yield Violation(operation="", seq=0, law=Law.FILE, problem=said)


def _file(ledger: Ledger) -> Iterator[Violation]:
    """The file's own pages and indexes, and the tables, indexes and triggers this version's migrations make."""
    if ledger.store.path is None:
        yield from _database(ledger)
        return
    for (said,) in ledger.store.query(f"PRAGMA integrity_check({DAMAGE_MAX})"):
        if said != "ok":
            yield Violation(operation="", seq=0, law=Law.FILE, problem=f"the file is damaged: {said}")
    wanted, standing = _schema(), dict(_objects(ledger.store.query))
    for name, statement in wanted.items():
        if name not in standing:
            yield Violation(operation="", seq=0, law=Law.FILE, problem=f"{name} is missing: it guards the receipts")
        elif standing[name] != statement:
            yield Violation(operation="", seq=0, law=Law.FILE, problem=f"{name} is not what this version makes it")
    for name in sorted(standing.keys() - wanted.keys()):
        yield Violation(operation="", seq=0, law=Law.FILE, problem=f"{name} is none of ours")


def _database(ledger: Ledger) -> Iterator[Violation]:
    """What guards the receipts in a database; its pages are the server's own matter."""
    from counterfoil.store import guards

    for problem in guards.wrong(ledger.store.query):
        yield Violation(operation="", seq=0, law=Law.FILE, problem=problem)


def _schema() -> dict[str, str]:
    """What the migrations make, read from an empty database in memory."""
    import sqlite3

    from counterfoil.store import opening

    db = sqlite3.connect(":memory:")
    with contextlib.closing(db):
        for name in opening.MIGRATIONS:
            for statement in opening.migration(name):
                db.execute(statement)
        return dict(_objects(lambda statement: db.execute(statement).fetchall()))


def _objects(query: Callable[[str], list[tuple[object, ...]]]) -> Iterator[tuple[str, str]]:
    # `sqlite_%` are SQLite's own: statistics, and the indexes of primary keys.
    rows = query("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return ((f"{kind} {name}", str(statement)) for kind, name, statement in rows)


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from counterfoil.cli.terminal import console

    columns = (TextColumn("verifying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task("verifying", total=total)
        yield lambda: progress.advance(task)


def _say(found: Found) -> None:
    from rich.text import Text

    from counterfoil.cli import marks
    from counterfoil.cli.terminal import console, counted, safe

    out = console()
    count = f"{counted(found.operations, 'operations')}, {counted(found.events, 'events')}"
    if not found.violations and found.unjudged:
        told = f"not judged anew, although it could be: {counted(found.unjudged, 'findings')}; nothing else is wrong"
        out.print(marks.Legible(Text.assemble(marks.marked(marks.BROKEN, "not judged"), f"  {count}; {told}")))
        return
    if not found.violations:
        out.print(marks.Legible(Text.assemble(marks.marked(marks.INTACT, "whole"), f"  {count}")))
        return
    first = found.violations[0]
    head = marks.marked(marks.BROKEN, f"{len(found.violations)} wrong")
    lines = [
        Text.assemble(head, f"  {count}; the first: {safe(_where(first))}"),
        *(_line(violation) for violation in found.violations[:SAID_MAX]),
    ]
    if len(found.violations) > SAID_MAX:
        lines.append(Text(f"  and {len(found.violations) - SAID_MAX} more; --json names them", style=marks.QUIET))
    for line in lines:
        out.print(marks.Legible(line))


def _line(violation: Violation) -> Text:
    from rich.text import Text

    from counterfoil.cli.marks import RED
    from counterfoil.cli.terminal import safe

    return Text.assemble(f"  {safe(_where(violation))}  ", (violation.law.value, RED), f"  {safe(violation.problem)}")


def _where(violation: Violation) -> str:
    if not violation.operation:
        return "the file"
    if violation.operation.startswith("policy "):
        return violation.operation
    return f"{violation.operation} {f'event {violation.seq}' if violation.seq else 'its row'}"


def _say_laws(laws: Laws) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from counterfoil.cli import marks
    from counterfoil.cli.terminal import console

    table = Table(box=SIMPLE_HEAD, header_style=marks.QUIET, pad_edge=False, show_edge=False)
    for name in ("law", "asked", "broken", "not asked"):
        table.add_column(name, justify="left" if name == "law" else "right")
    for row in laws.rows():
        broken = Text(f"{row.broken:,}", style=marks.RED if row.broken else "")
        table.add_row(row.law.value, f"{row.asked:,}", broken, Text(f"{row.not_asked:,}", style=marks.QUIET))
    out = console()
    out.print(table)
    for reason, count in laws.not_rejudged.most_common():
        out.print(marks.Legible(Text(f"not judged anew: {count:,}, {reason}", style=marks.QUIET)))
