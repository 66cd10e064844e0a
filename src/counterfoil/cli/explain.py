"""`counterfoil explain ID`: the receipt replayed event by event, with the rule that allowed each, from it alone."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from counterfoil.domain.event import History
    from counterfoil.domain.violation import Violation
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.replay import Columns, Happened

INSET = 6
"""Columns before what belongs to an event: its number stands there."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.operation_argument(verb)
    parser.store_option(verb)
    parser.actions_option(verb)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 only where the columns are what the events say."""
    from counterfoil.cli.opening import for_reading
    from counterfoil.domain.audit import audit
    from counterfoil.runtime.replay import replay

    with for_reading(asked) as ledger:
        history = _history(ledger, asked.operation)
    found, told = audit(history), replay(history)
    if asked.json:
        from counterfoil.cli.terminal import print_json

        print_json(as_json(history, told, found))
    else:
        from counterfoil.cli.marks import Legible
        from counterfoil.cli.terminal import console

        console().print(Legible(page(history, told, found)))
    return exits.UNSETTLED if found else exits.DONE


def _history(ledger: Ledger, named: str) -> History:
    """Read one operation; a record that cannot be read is shown as that, a row that cannot be read is refused."""
    from counterfoil.cli.named import whole
    from counterfoil.domain.errors import InvariantBroken

    operation = whole(ledger, named)
    try:
        return ledger.history(operation)
    except ValueError as error:  # a word that is none of the house's
        raise InvariantBroken(f"{operation}: {error}") from error


def as_json(history: History, told: Sequence[Happened], found: Sequence[Violation]) -> dict[str, Any]:
    """Every event with its sentences, the row's columns, and what is wrong."""
    from counterfoil.runtime.replay import columns_of

    operation = history.operation
    return {
        "operation_id": operation.id,
        "action": operation.action,
        "key": operation.key,
        "actor": operation.actor,
        "account": operation.account,
        "events": [_event(happened, history) for happened in told],
        "columns": msgspec.to_builtins(columns_of(operation)),
        "violations": msgspec.to_builtins(found),
        "ok": not found,
    }


def _event(happened: Happened, history: History) -> dict[str, Any]:
    from counterfoil.cli import retold
    from counterfoil.runtime.export import iso

    return {
        "seq": happened.event.seq,
        "at": iso(happened.event.at),
        "kind": happened.event.kind.value,
        "what": retold.what(happened),
        "by": retold.by(happened, history.operation) or None,
        "rules": [{"name": name, "says": says} for name, says in retold.rules(happened)],
        "columns": None if happened.after is None else msgspec.to_builtins(happened.after),
    }


# -- the page ----------------------------------------------------------------------------------------------------------


def page(history: History, told: Sequence[Happened], found: Sequence[Violation]) -> RenderableType:
    """The whole page: each event with how things stood after it, and at the end whether the row says the same."""
    from rich.console import Group
    from rich.text import Text

    from counterfoil.cli.marks import QUIET, STRONG
    from counterfoil.cli.terminal import safe

    operation = history.operation
    head = Text.assemble((safe(operation.action), STRONG), "  ", safe(operation.key))
    account = Text(f"{safe(operation.actor)} for {safe(operation.tenant)} at {safe(operation.account)}", style=QUIET)
    parts: list[RenderableType] = [head, Text(operation.id, style=QUIET), account, Text("")]
    for happened in told:
        parts += [*_told(happened, history), Text("")]
    return Group(*parts, *_end(history, found))


def _told(happened: Happened, history: History) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    from counterfoil.cli import retold
    from counterfoil.cli.leaf import Flow, facts
    from counterfoil.cli.marks import QUIET, STRONG, moment

    event = happened.event
    yield Text.assemble(
        (f"{event.seq:>4}  ", STRONG), (event.kind.value, STRONG), (f"  {moment(event.at, fine=True)} UTC", QUIET)
    )
    by = retold.by(happened, history.operation)
    pairs = [("what", retold.what(happened)), *([("by", by)] if by else []), *retold.rules(happened)]
    yield facts(pairs, inset=INSET)
    if happened.after is not None:
        yield Padding(Flow(list(_stood(happened.before, happened.after))), (0, 0, 0, INSET))


def _stood(before: Columns | None, after: Columns) -> Iterator[Text]:
    """The five columns; those that moved in full, the others quiet."""
    from rich.text import Text

    from counterfoil.cli.marks import QUIET, mark_of, word

    for name in after.__struct_fields__:
        value = getattr(after, name)
        moved = before is None or getattr(before, name) is not value
        yield word(value) if moved else Text(f"{mark_of(value).glyph} {value.value}", style=QUIET)


def _end(history: History, found: Sequence[Violation]) -> Iterator[RenderableType]:
    from rich.text import Text

    from counterfoil.cli import marks
    from counterfoil.cli.terminal import safe

    if not found:
        said = f"  {len(history.events)} events on record"
        yield Text.assemble(marks.marked(marks.INTACT, "the columns are what the events say"), (said, marks.QUIET))
        return
    yield marks.marked(marks.BROKEN, f"{len(found)} wrong: the record does not hold")
    for violation in found:
        where = f"event {violation.seq}" if violation.seq else "the row"
        yield Text.assemble(f"  {where}  ", (violation.law.value, marks.RED), f"  {safe(violation.problem)}")
