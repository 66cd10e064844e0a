"""Policies as a terminal shows them: a table where it is wide, one card a rule where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

import msgspec
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil.cli import leaf, marks, rulebook
from counterfoil.cli.marks import AMBER, QUIET, RED, STRONG, Legible, duration, marked, moment
from counterfoil.cli.rulebook import Change, Fall
from counterfoil.cli.terminal import clipped, console, safe
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import Decided
from counterfoil.domain.policy import OnRecord, Policy, Rule, digest
from counterfoil.domain.terms import OneShot
from counterfoil.runtime.policies import read

TABLE_COLUMNS = 110
"""From here on the rules are a table."""
WIDTH_MAX = 140
"""Wider lines are hard to follow from one end to the other."""
NAME_COLUMNS, TEXT_COLUMNS = 40, 400
NONE = "no policy was ever adopted: every registered action goes without approval"


def show(page: RenderableType, *, stream: TextIO | None = None) -> None:
    """Print a page.

    Args:
        page: what to print.
        stream: default: standard output.
    """
    out = console(stream)
    out.print(Legible(page))


def _page(*parts: RenderableType) -> RenderableType:
    return Constrain(Group(*parts), WIDTH_MAX)


def checked(policy: Policy, falls: list[Fall] | None) -> RenderableType:
    """A policy that may be adopted, and under which rule each action falls."""
    head = Text.assemble((safe(policy.name), STRONG), ("  may be adopted", QUIET))
    named = Text(digest(policy), style=QUIET)
    parts: list[RenderableType] = [head, named, *_whole(policy)]
    if falls is not None:
        parts += [Text(""), Text("Actions", style=STRONG), _Falls(falls)]
    return _page(*parts)


def in_force(kept: OnRecord | None, now: float) -> RenderableType:
    """The policy in force, who put it there, when and why."""
    if kept is None:
        return _page(Text(NONE, style=QUIET))
    policy, decided = read(kept.n, kept.policy), decided_of(kept)
    since = f"{moment(kept.at)} UTC, {duration(max(now - kept.at, 0.0))} ago"
    facts: list[leaf.Fact] = [
        ("in force since", since),
        ("adopted by", clipped(decided.by, TEXT_COLUMNS)),
        ("because", clipped(decided.reason, TEXT_COLUMNS)),
        ("known as", clipped(decided.how, TEXT_COLUMNS)),
        ("digest", kept.digest),
    ]
    head = Text.assemble((f"policy {kept.n}", STRONG), f"  {safe(policy.name)}")
    return _page(head, leaf.facts(facts), *_whole(policy))


def history(every: Sequence[OnRecord]) -> RenderableType:
    """Every policy that was ever in force, newest first."""
    return _page(_History(every)) if every else _page(Text(NONE, style=QUIET))


def changed(changes: Sequence[Change], n: int) -> RenderableType:
    """What goes and what comes, against the policy in force."""
    against = f"against policy {n}, which is in force" if n else "the first policy"
    rows = Table.grid(padding=(0, 1, 0, 0))
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for change in changes:
        style = marks.SUCCEEDED if change.sign == "+" else marks.REJECTED
        rows.add_row(Text(change.sign, style=style), Text(safe(change.line), style=style))
    return _page(Text.assemble(("What changes", STRONG), (f"  {against}", QUIET)), rows, Text(""))


def decided_of(kept: OnRecord) -> Decided:
    """Who put a policy in force, and why.

    Raises:
        InvariantBroken: its record cannot be read.
    """
    try:
        return msgspec.json.decode(kept.record, type=Decided)
    except msgspec.MsgspecError:
        raise InvariantBroken(f"the record of policy {kept.n} cannot be read: `counterfoil verify` says more") from None


def _whole(policy: Policy) -> Iterator[RenderableType]:
    yield Text("")
    if policy.rules:
        yield _Rules(policy.rules)
        yield Text("")
    yield leaf.facts([(safe(name), safe(text)) for name, text in rulebook.besides(policy)])


class _Rules:
    """The rules in the order in which they are asked."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._drawn(options.max_width)

    def _drawn(self, width: int) -> RenderableType:
        if width < TABLE_COLUMNS:
            return _cards([_card(i, rule) for i, rule in enumerate(self._rules, start=1)])
        rows = [[Text(str(i)), *_cells(rule)] for i, rule in enumerate(self._rules, start=1)]
        names = ("", "rule", "speaks of", "people", "whose approval", "within", "for attempts", "one-shot")
        return _table(names, rows, fold=("speaks of", "whose approval", "for attempts"))


def _cells(rule: Rule) -> tuple[Text, ...]:
    asked = rule.approval
    name, of = Text(clipped(rule.name, NAME_COLUMNS), style=STRONG), Text(safe(rulebook.speaks_of(rule.when)))
    if rule.refuse:
        return name, of, Text(""), _refused(rule), Text(""), Text(""), Text("")
    if asked is None:
        whose = Text("nobody", style=QUIET)
        return name, of, Text(""), whose, Text(""), Text(""), _one_shot(rule)
    return (
        name, of, Text(str(asked.people)), Text(safe(rulebook.whose(asked))), Text(duration(asked.seconds)),
        Text(rulebook.allows(asked)), _one_shot(rule),
    )  # fmt: skip


def _card(number: int, rule: Rule) -> tuple[Text, list[leaf.Fact]]:
    head = Text.assemble(f"{number}  ", (clipped(rule.name, NAME_COLUMNS), STRONG))
    facts: list[leaf.Fact] = [("speaks of", safe(rulebook.speaks_of(rule.when)))]
    asked = rule.approval
    if rule.refuse:
        facts.append(("approval", _refused(rule)))
        return head, facts
    facts.append(("approval", Text("nobody's", style=QUIET)))
    if asked is not None:
        within = f"{asked.people} of {safe(rulebook.whose(asked))}" if asked.approvers else rulebook.approval(asked)
        facts[-1] = ("approval", f"{within}, within {duration(asked.seconds)}")
        facts.append(("for attempts", rulebook.allows(asked)))
    facts.append(("one-shot", _one_shot(rule)))
    return head, facts


def _refused(rule: Rule) -> Text:
    return Text(f"refused: {safe(rule.refuse)}", style=AMBER)


def _one_shot(rule: Rule) -> Text:
    return Text(rule.one_shot.value, style=QUIET if rule.one_shot is OneShot.NO else "")


class _Falls:
    """Under which rule each action falls."""

    def __init__(self, falls: Sequence[Fall]) -> None:
        self._falls = falls

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._drawn(options.max_width)

    def _drawn(self, width: int) -> RenderableType:
        if not self._falls:
            return Text("none is registered", style=QUIET)
        if width < TABLE_COLUMNS:
            return _cards([_fall_card(fall) for fall in self._falls])
        rows = [
            [_action(fall), Text(safe(fall.account)), Text(fall.value), _ruled(fall), _asks(fall)]
            for fall in self._falls
        ]
        return _table(("action", "account", "value at risk", "rule", "what it asks"), rows, fold=("what it asks",))


def _fall_card(fall: Fall) -> tuple[Text, list[leaf.Fact]]:
    head = Text.assemble(_action(fall), f"  account {safe(fall.account)}")
    return head, [("value at risk", fall.value), ("rule", _ruled(fall)), ("asks", _asks(fall))]


def _action(fall: Fall) -> Text:
    return Text.assemble((clipped(fall.action, NAME_COLUMNS), STRONG))


def _ruled(fall: Fall) -> Text:
    if fall.wrong:
        return marked(marks.BROKEN, "none can decide")
    if fall.unmatched:
        return marked(marks.MISSING, "no rule: otherwise")
    return Text(clipped(fall.rule, NAME_COLUMNS) or "none is asked")


def _asks(fall: Fall) -> Text:
    return Text(safe(fall.asks), style=RED if fall.wrong else "")


class _History:
    """Every policy by number, newest first."""

    def __init__(self, every: Sequence[OnRecord]) -> None:
        self._every = list(reversed(every))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._drawn(options.max_width)

    def _drawn(self, width: int) -> RenderableType:
        if width < TABLE_COLUMNS:
            return _cards([_kept_card(kept) for kept in self._every])
        rows = []
        for kept in self._every:
            decided = decided_of(kept)
            rows.append([
                Text(str(kept.n), style=STRONG), Text(f"{moment(kept.at)} UTC"), _called(kept),
                Text(leaf.short(kept.digest), style=QUIET), Text(clipped(decided.by, TEXT_COLUMNS)),
                Text(clipped(decided.reason, TEXT_COLUMNS)),
            ])  # fmt: skip
        return _table(("policy", "in force from", "name", "digest", "by", "because"), rows, fold=("by", "because"))


def _kept_card(kept: OnRecord) -> tuple[Text, list[leaf.Fact]]:
    decided = decided_of(kept)
    head = Text.assemble((f"policy {kept.n}", STRONG), "  ", _called(kept))
    return head, [
        ("in force from", f"{moment(kept.at)} UTC"),
        ("by", clipped(decided.by, TEXT_COLUMNS)),
        ("because", clipped(decided.reason, TEXT_COLUMNS)),
        ("digest", Text(leaf.short(kept.digest), style=QUIET)),
    ]


def _called(kept: OnRecord) -> Text:
    return Text(clipped(read(kept.n, kept.policy).name, NAME_COLUMNS))


def _table(names: Sequence[str], rows: Sequence[Sequence[Text]], *, fold: Sequence[str]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, header_style=QUIET, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    for name in names:
        if name in fold:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, no_wrap=True, justify="right" if name == "people" else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _cards(cards: Sequence[tuple[Text, list[leaf.Fact]]]) -> RenderableType:
    parts: list[RenderableType] = []
    for head, facts in cards:
        parts += [head, Padding(leaf.facts(facts), (0, 0, 0, 3)), Text("")]
    return Group(*parts[:-1])
