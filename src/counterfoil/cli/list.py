"""`counterfoil list`: what stands in the book, and of what is unresolved: how much, how long, why and what is next.

Every sentence is built from the columns, never from prose by a provider or an agent.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from counterfoil.cli import exits, parser
from counterfoil.cli.named import SHORT_CHARS
from counterfoil.cli.stands import next_step, why
from counterfoil.domain.approval import is_stale
from counterfoil.domain.decision import authority
from counterfoil.domain.event import attempts_of
from counterfoil.domain.lifecycle import CALL_AGAIN, lifecycle, permission_now, permitted
from counterfoil.domain.operation import Operation
from counterfoil.domain.patience import IN_A_ROW_MAX, never_reached
from counterfoil.domain.payload import gone_said
from counterfoil.domain.schedule import REVIEW, WAITING
from counterfoil.domain.words import Dispatch, Lifecycle, Outcome, Permission

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType
    from rich.text import Text

    from counterfoil.cli.hint import Hints
    from counterfoil.runtime.ledger import Ledger

LIMIT, LIMIT_MAX = 50, 1_000_000
"""Settled operations are many; what is unresolved is never cut unless that is asked for."""
PAGE = 256
KEY_COLUMNS = 40
WIDE_COLUMNS, TABLE_COLUMNS = 150, 120
"""From here on a table says what is next, or leaves it to `show`; below, each operation is a card."""
OWNER_COLUMNS, ACTION_COLUMNS_MIN = 10, 12
ACTION, WHY = 3, 5
"""The columns that give way to the others."""
WHY_COLUMNS_MIN = 16
"""Narrower, a sentence is a tower of words."""
GAP_COLUMNS = 3
"""Between two columns, where a plain terminal draws a line there."""
NOTHING = "·"
STALE_WHY = "asked under an earlier policy, which counts no longer"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One operation as it reads now."""

    operation: Operation
    outcome: Outcome
    lifecycle: Lifecycle
    now: float
    gone: tuple[str, ...] = ()
    """Why nothing of it can be sent any more, where it might have been otherwise."""
    stale: bool = False
    """Another policy is in force than the one people were asked under: no answer of theirs counts."""
    unreached: str = ""
    """Why no worker repeats it any more, where the provider could not be reached."""

    @property
    def permission(self) -> Permission:
        """As it reads now."""
        return permission_now(self.operation, self.now)

    @property
    def age(self) -> float:
        """Seconds since it was asked for."""
        return max(self.now - self.operation.created_at, 0.0)

    @property
    def exposed(self) -> float:
        """The value at risk; an open discrepancy exposes it even where every attempt has been settled."""
        return self.operation.value * max(self.operation.exposure, 1) if self.operation.unresolved else 0.0

    @property
    def why(self) -> str:
        """Why it stands where it stands."""
        if self.stale:
            return STALE_WHY
        return "; ".join(self.gone) or self.unreached or why(self.operation, self.outcome, self.permission)

    @property
    def next(self) -> str:
        """What happens next, and when; empty where nothing is owed."""
        if self.stale:
            return "the same call asks people anew"
        return "" if self.gone else next_step(self.operation, self.now)

    @property
    def permitted(self) -> tuple[str, ...]:
        """The steps an agent may take next."""
        steps = permitted(self.operation, self.outcome, self.permission)
        return tuple(step for step in steps if step != CALL_AGAIN or not self.gone)


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.store_option(verb)
    parser.actions_option(verb)
    verb.add_argument("--unresolved", action="store_true", help="only what may have happened, by exposure x age")
    verb.add_argument(
        "--limit", metavar="N", type=parser.count(1, LIMIT_MAX),
        help=f"how many at most (default {LIMIT}; with --unresolved or --json: all)",
    )  # fmt: skip


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    from counterfoil.cli.opening import for_reading
    from counterfoil.cli.terminal import console, note, print_json

    with for_reading(asked) as ledger:
        total, found = _found(asked, ledger)
        if asked.json:
            shown = 0
            for entry in found:
                print_json(as_json(entry))
                shown += 1
            if shown < total:
                note(f"and {total - shown} more")
            return exits.DONE
        from counterfoil.cli.hint import hints
        from counterfoil.cli.marks import Legible

        out = console()
        to = hints(asked, ledger.store.path)
        out.print(Legible(_page(list(found), total, to, unresolved=asked.unresolved, width=out.width)))
    return exits.DONE


def read(ledger: Ledger, operation: Operation) -> Entry:
    """Read one operation as it stands: started, unobserved and not provably in hand is already unknown."""
    operation, outcome = ledger.as_held_now(operation), operation.outcome
    if operation.dispatch is Dispatch.STARTED and outcome is Outcome.UNOBSERVED:
        receipt = ledger.get(operation.id)
        operation, outcome = receipt.operation, receipt.outcome
    entry = Entry(operation=operation, outcome=outcome, lifecycle=lifecycle(operation, outcome), now=ledger.store.now())
    if operation.step in WAITING and operation.due_at >= entry.now:
        stale = is_stale(authority(ledger.history(operation.id)), ledger.governance.digest)
        entry = msgspec.structs.replace(entry, stale=stale)
    if operation.step == REVIEW and operation.attempts > IN_A_ROW_MAX:
        attempts, _ = attempts_of(ledger.history(operation.id).events)
        entry = msgspec.structs.replace(entry, unreached=never_reached(operation.step, attempts))
    if CALL_AGAIN not in entry.permitted:
        return entry
    return msgspec.structs.replace(entry, gone=gone_said(ledger.history(operation.id)))  # no column says that


def _found(asked: argparse.Namespace, ledger: Ledger) -> tuple[int, Iterator[Entry]]:
    """How many there are, and those that were asked for."""
    if asked.unresolved:
        entries = [read(ledger, operation) for operation in ledger.store.unresolved()]
        entries.sort(key=lambda e: (e.exposed * e.age, e.age), reverse=True)
        return len(entries), iter(entries[: asked.limit])
    total = int(str(ledger.store.query("SELECT count(*) FROM operation")[0][0]))
    limit = asked.limit or (total if asked.json else LIMIT)
    return total, _newest(ledger, limit)


def _newest(ledger: Ledger, limit: int) -> Iterator[Entry]:
    before: int | None = None
    while limit > 0:
        page = ledger.store.operations(limit=min(limit, PAGE), before=before)
        yield from (read(ledger, operation) for operation in page)
        if not page:
            return
        before, limit = page[-1].n, limit - len(page)


def as_json(entry: Entry) -> dict[str, Any]:
    """Every column, `outcome` as it reads now, and what follows from them."""
    columns: dict[str, Any] = msgspec.to_builtins(entry.operation)
    return {
        **columns,
        "outcome": entry.outcome.value,
        "outcome_recorded": columns["outcome"],
        "unresolved": bool(entry.operation.unresolved),
        "lifecycle": entry.lifecycle.value,
        "age_seconds": round(entry.age, 3),
        "exposed_value": entry.exposed,
        "permission": entry.permission.value,
        "permission_recorded": columns["permission"],
        "why": entry.why,
        "next": entry.next,
        "permitted": list(entry.permitted),
    }


# -- the page ----------------------------------------------------------------------------------------------------------


def _page(entries: list[Entry], total: int, to: Hints, *, unresolved: bool, width: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from counterfoil.cli.marks import QUIET

    if not entries:
        said = "nothing is unresolved" if unresolved else "no operation is on record"
        return Text(said, style=QUIET)
    body = _table(entries, width) if width >= TABLE_COLUMNS else _cards(entries)
    more = total - len(entries)
    tail = [f"and {more} more; --limit {total} shows all"] if more else []
    if width >= TABLE_COLUMNS and not all(entry.exposed for entry in entries):
        tail.append(f"{NOTHING} nothing is exposed")
    if any(entry.lifecycle is Lifecycle.MANUAL_REVIEW for entry in entries):
        tail.append(f"manual_review: a person is next; {to.read('show', 'ID')} says what may be done")
    below = [Text(line, style=QUIET) for line in tail]
    return Group(_strip(entries, total, unresolved=unresolved), Text(""), body, *([Text(""), *below] if below else []))


def _strip(entries: list[Entry], total: int, *, unresolved: bool) -> Text:
    """The counts, in one line."""
    from rich.text import Text

    from counterfoil.cli.marks import OUTCOMES, QUIET, STRONG, figure, marked, moment

    open_ones = [e for e in entries if e.operation.unresolved]
    said = Text()
    if open_ones:
        exposed = figure(sum(e.exposed for e in open_ones))
        said += Text.assemble(marked(OUTCOMES[Outcome.UNKNOWN], f"{len(open_ones)} unresolved"), f"  {exposed} exposed")
    if not unresolved:
        of = f"{len(entries)} of {total}" if len(entries) < total else str(total)
        noun = "operation" if total == 1 else "operations"
        said += Text.assemble("   " if open_ones else "", (of, STRONG), f" {noun}")
    return said + Text(f"   {moment(entries[0].now)[11:]} UTC", style=QUIET)


def _table(entries: list[Entry], width: int) -> RenderableType:
    """One line an operation; an id as its beginning that fits no other, which every verb takes."""
    from rich import box
    from rich.table import Table

    from counterfoil.cli.marks import QUIET

    wide = width >= WIDE_COLUMNS
    names = ("exposure", "age", "operation", "action and key", "lifecycle", "why", *(["next"] if wide else []), "owner")
    rows = []
    for entry in entries:
        *cells, after, owner = _cells(entry)
        owner.truncate(OWNER_COLUMNS, overflow="ellipsis")
        rows.append([*cells, *([after] if wide else []), owner])
    table = Table(box=box.SIMPLE_HEAD, header_style=QUIET, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    widths = [max(len(name), *(row[at].cell_len for row in rows)) for at, name in enumerate(names)]
    others = sum(widths) - widths[ACTION] + GAP_COLUMNS * (len(names) - 1)
    # What is broken is still read, and what is cut is not: why gives way first, then the action and key.
    spare = max(others + widths[ACTION] - width, 0)
    widths[WHY] -= (kept := min(spare, max(widths[WHY] - WHY_COLUMNS_MIN, 0)))
    widths[ACTION] = min(widths[ACTION], max(width - others + kept, ACTION_COLUMNS_MIN))
    for at, name in enumerate(names):
        justify: JustifyMethod = "right" if name in ("exposure", "age") else "left"
        gives_way = at in (ACTION, WHY)
        table.add_column(
            name, justify=justify, width=widths[at] if gives_way else None, overflow="fold", no_wrap=not gives_way
        )
    for row in rows:
        table.add_row(*row)
    return table


def _cells(entry: Entry) -> tuple[Text, ...]:
    from rich.text import Text

    from counterfoil.cli.marks import AMBER, QUIET, STRONG, duration, figure
    from counterfoil.cli.terminal import clipped

    operation = entry.operation
    after = entry.next
    mark = standing_mark(entry)
    return (
        Text(figure(entry.exposed), style=STRONG) if entry.exposed else Text(NOTHING, style=QUIET),
        Text(duration(entry.age)),
        Text(operation.id[:SHORT_CHARS]),
        Text.assemble((clipped(operation.action, KEY_COLUMNS), STRONG), "  ", clipped(operation.key, KEY_COLUMNS)),
        mark if mark.plain.startswith(" ") else Text(" ") + mark,  # in line with the solid ones
        Text(entry.why.replace(operation.held_by or "\0", operation.held_by[:SHORT_CHARS])),
        Text(f"→ {after}", style="" if operation.unresolved else QUIET) if after else Text(""),
        Text(clipped(operation.owner, KEY_COLUMNS))
        if operation.owner
        else Text("nobody", style=AMBER if operation.unresolved or operation.step else QUIET),
    )


def standing_mark(entry: Entry) -> Text:
    """The word an operation is listed under: what was not sent for want of permission, by its permission."""
    from counterfoil.cli.marks import lifecycle_mark, word

    unsent = entry.operation.dispatch is Dispatch.NOT_STARTED and not entry.operation.unresolved
    if unsent and entry.permission is not Permission.AUTHORIZED:
        return word(entry.permission)
    return lifecycle_mark(entry.lifecycle, entry.outcome)


def _cards(entries: list[Entry]) -> RenderableType:
    """One card each where the terminal is narrow: what it is, how it stands, why and what is next."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from counterfoil.cli.marks import QUIET

    cards: list[RenderableType] = []
    for entry in entries:
        exposure, age, _, action, mark, because, after, owner = _cells(entry)
        exposed = Text.assemble(exposure, " exposed  ") if entry.exposed else Text("")
        head = Text.assemble(mark, " " * (not mark.plain.endswith(" ")), " ", exposed, age, " old")
        lines = [
            action,
            Text(entry.operation.id),
            Text.assemble(because, "  ", after),
            Text.assemble(("owner ", QUIET), owner),
        ]
        cards += [head, *(Padding(line, (0, 0, 0, 2)) for line in lines), Text("")]
    return Group(*cards[:-1])
