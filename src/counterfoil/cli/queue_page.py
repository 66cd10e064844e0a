"""The queue as a terminal shows it: two lines an operation where it is wide, a card each where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil.cli import marks
from counterfoil.cli.hint import Hints
from counterfoil.cli.leaf import Flow
from counterfoil.cli.list import NOTHING
from counterfoil.cli.marks import AMBER, QUIET, STRONG, duration, figure, lifecycle_mark, moment
from counterfoil.cli.named import SHORT_CHARS
from counterfoil.cli.queue import NAME_COLUMNS, next_step, why
from counterfoil.cli.terminal import clipped
from counterfoil.domain.lifecycle import lifecycle, permission_now
from counterfoil.runtime.queue import Fill, Queue, Waiting

TABLE_COLUMNS = 110
"""From here on a table; below, each operation is a card."""
KEY_COLUMNS = 48
NAMES = ("exposure", "age", "operation", "why, and what is next", "owner", "escalation")
NOBODY_OWNS = "nobody"
EMPTY = "nothing waits for anybody"


def page(
    found: Queue, fills: Sequence[Fill], to: Hints, *, width: int, now: float, adopted: bool
) -> RenderableType:  # fmt: skip
    """The whole page.

    Args:
        found: what is shown, and what is counted.
        fills: the breakers of the policy in force.
        to: makes the commands.
        width: columns.
        now: seconds since the epoch.
        adopted: a policy is in force.
    """
    parts: list[RenderableType] = [_strip(found, now), Text("")]
    if found.shown:
        parts += [_table(found.shown) if width >= TABLE_COLUMNS else _cards(found.shown), Text("")]
    if found.cut or found.others:
        parts += [*_left_out(found), Text("")]
    return Group(*parts, _below(found, fills, to, adopted=adopted))


# -- one operation -----------------------------------------------------------------------------------------------------


def _exposure(entry: Waiting) -> Text:
    if entry.exposed:
        return Text(figure(entry.exposed), style=STRONG)
    return Text(NOTHING, style=QUIET)


def _name(entry: Waiting) -> Text:
    operation = entry.operation
    return Text.assemble((clipped(operation.action, KEY_COLUMNS), STRONG), "  ", clipped(operation.key, KEY_COLUMNS))


def _mark(entry: Waiting) -> Text:
    """Where it stands: what was not sent has its permission's mark, everything else its outcome's."""
    operation = entry.operation
    if operation.unresolved:
        return lifecycle_mark(lifecycle(operation, entry.outcome), entry.outcome)
    return marks.word(permission_now(operation, entry.now))


def _owner(entry: Waiting) -> Text:
    if entry.unowned:
        return Text(NOBODY_OWNS, style=f"bold {AMBER}")
    return Text(clipped(entry.operation.owner, NAME_COLUMNS))


def _escalation(entry: Waiting) -> tuple[Text, Text]:
    """When, and to whom."""
    if entry.escalates_at is None:
        return Text("not passed up" if entry.abandoned else "unknown", style=QUIET), Text("")
    left = entry.escalates_at - entry.now
    when = Text(f"in {duration(left)}") if left > 0 else Text(f"overdue by {duration(-left)}", style=f"bold {AMBER}")
    before = f"; {entry.escalated} before" if entry.escalated else ""
    last = f", last to {clipped(entry.passed_to, NAME_COLUMNS)}" if entry.passed_to else ""
    return when, Text.assemble(("to ", QUIET), clipped(entry.escalates_to, NAME_COLUMNS), (before + last, QUIET))


# -- the page ----------------------------------------------------------------------------------------------------------


def _strip(found: Queue, now: float) -> Text:
    if not found.every:
        said = Text(EMPTY, style=QUIET)
    else:
        waits = "waits" if found.waiting == 1 else "wait"
        said = Text.assemble((f"{found.waiting} {waits}", STRONG))
        resting = sum(entry.abandoned for entry in found.shown)
        if resting:
            said += Text(f"  {resting} abandoned, shown")
        said += Text(f"  {figure(found.exposed)} exposed")
    return said + Text(f"   {moment(now)[11:]} UTC", style=QUIET)


def _table(shown: Sequence[Waiting]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, header_style=QUIET, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    for name in NAMES:
        right = name in ("exposure", "age")
        table.add_column(name, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for entry in shown:
        when, whom = _escalation(entry)
        business = Text.assemble(("for ", QUIET), clipped(entry.business_owner, NAME_COLUMNS))
        table.add_row(
            _exposure(entry),
            Text(duration(entry.age)),
            Group(_name(entry), Text(entry.operation.id[:SHORT_CHARS], style=QUIET)),
            Group(Text.assemble(_mark(entry), "  ", why(entry)), Text(f"→ {next_step(entry)}")),
            Group(_owner(entry), business if entry.business_owner else Text("")),
            Group(when, whom),
        )
    return table


def _cards(shown: Sequence[Waiting]) -> RenderableType:
    """What it is, how it stands, why, what is next and whose it is; short facts share a line where they fit."""
    cards: list[RenderableType] = []
    for entry in shown:
        when, whom = _escalation(entry)
        exposed = Text.assemble(_exposure(entry), " exposed") if entry.exposed else Text("")
        owner = Text.assemble(("owner ", QUIET), _owner(entry))
        business = Text.assemble(("for ", QUIET), clipped(entry.business_owner, NAME_COLUMNS))
        lines: list[RenderableType] = [
            _name(entry),
            Text(entry.operation.id[:SHORT_CHARS], style=QUIET),
            _flow(Text(why(entry)), Text(f"→ {next_step(entry)}")),
            _flow(owner, business if entry.business_owner else Text("")),
            _flow(Text.assemble(("escalation ", QUIET), when), whom),
        ]
        cards += [_flow(_mark(entry), exposed, Text(f"{duration(entry.age)} old"))]
        cards += [*(Padding(line, (0, 0, 0, 2)) for line in lines), Text("")]
    return Group(*cards[:-1])


def _flow(*parts: Text) -> Flow:
    return Flow([part for part in parts if part.plain])


# -- below -------------------------------------------------------------------------------------------------------------


def _left_out(found: Queue) -> list[RenderableType]:
    """Exactly what is not shown; nothing where everything is."""
    said = []
    if found.cut:
        said.append(f"and {found.cut} more; --limit {len(found.shown) + found.cut} shows all")
    if found.others:
        said.append(f"and {found.others} of other owners; without --owner they are shown")
    return [Text(line, style=STRONG) for line in said]


def _below(found: Queue, fills: Sequence[Fill], to: Hints, *, adopted: bool) -> RenderableType:
    """The counts that no filter and no limit changes, and the breakers."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True, min_width=4)
    table.add_column(overflow="fold")
    for figured, said in (*_counts(found, to), *_breakers(fills, adopted=adopted)):
        table.add_row(figured, said)
    return table


def _counts(found: Queue, to: Hints) -> Iterator[tuple[Text, Text]]:
    abandoned, oldest = found.abandoned
    where = f"; {to.read('queue', '--abandoned')}" if found.resting else ""
    age = f", the oldest {duration(oldest)} old{where}" if abandoned else ""
    for count, said in (
        (found.unowned, "owned by nobody"),
        (found.overdue, "overdue for escalation"),
        (abandoned, f"abandoned and still unresolved{age}"),
    ):
        style = AMBER if count else QUIET
        yield Text(str(count), style=style), Text(said, style=style)


def _breakers(fills: Sequence[Fill], *, adopted: bool) -> Iterator[tuple[Text, Text]]:
    if not fills:
        said = "the policy in force has no breaker" if adopted else "no policy was ever adopted, so there is no breaker"
        yield Text(NOTHING, style=QUIET), Text(said, style=QUIET)
    for fill in fills:
        said = f"breaker {clipped(fill.breaker, NAME_COLUMNS)}: {figure(fill.exposure)} of {figure(fill.limit)} unknown"
        if fill.open:
            style = f"bold {AMBER}"
            yield Text(marks.BLOCKED.glyph, style=style), Text(f"{said}; nothing new is dispatched", style=style)
        else:
            style = AMBER if fill.exposure else QUIET
            yield Text(marks.GO.glyph, style=style), Text(said, style=style)
