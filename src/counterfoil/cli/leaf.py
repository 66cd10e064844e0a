"""The pieces of a receipt's leaf: what one attempt, one piece of evidence, one condition and one step look like."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rich.box import Box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil.cli import marks, sentences, stands
from counterfoil.cli.marks import AMBER, QUIET, STRONG, Mark, duration, marked, moment, word
from counterfoil.cli.step import Step
from counterfoil.cli.steps import CONDITIONS, Negative
from counterfoil.cli.story import heard
from counterfoil.cli.terminal import clipped, safe
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.event import Begun, Event, EventKind, Noted, begun_of, evidence_of, removed_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Coverage, Discrepancy, Finding, Outcome
from counterfoil.runtime.export import body_of

STUB_COLUMNS = 18
BANDS_COLUMNS = 90
"""From here on the stub stands beside the leaf; below, above it."""
INSET = 2
TEXT_COLUMNS = 400
"""Of one text from outside; the JSON has all of it."""
PERFORATED = Box("    \n  ┊ \n    \n  ┊ \n    \n    \n  ┊ \n    \n")
"""The line along which a receipt is torn off."""

Fact = tuple[str, str | RenderableType]

_COMPARED: dict[str, Mark] = {"equal": marks.SAME, "different": marks.DIFFERS, "missing": marks.NOT_REPORTED}
_SHOWN_APART = frozenset({"compared", "missing", "earliest", "evidence"})
"""Facts with a place of their own."""
_COVERS = {
    Coverage.PROVIDER_KEY: "every attempt with this provider key",
    Coverage.OPERATION: "the operation",
}
_FINDINGS = {
    Finding.NOT_SENT: "",
    Finding.ACCEPTED: marks.ACCEPTED,
    Finding.SUCCEEDED: marks.SUCCEEDED,
    Finding.REJECTED: marks.REJECTED,
    Finding.ABSENT: marks.REJECTED,
    Finding.UNKNOWN: marks.VIOLET,
}


# -- the form ----------------------------------------------------------------------------------------------------------


def band(title: str, mark: Text, leaf: Sequence[RenderableType], width: int) -> RenderableType:
    """Set one band: the stub says in a word what the leaf shows in detail.

    Args:
        title: the question it answers.
        mark: the word that answers it.
        leaf: the detail.
        width: columns for both.
    """
    if width < BANDS_COLUMNS:
        inside = Table.grid(padding=0)
        inside.add_column(width=2)
        inside.add_column(overflow="fold")
        inside.add_row("", Group(*leaf))
        return Group(Text.assemble((title, STRONG), "  ", mark), inside)
    sheet = Table(
        box=PERFORATED,
        show_header=False,
        show_edge=False,
        padding=(0, 1),
        pad_edge=False,
        border_style=QUIET,
        width=width,
    )
    sheet.add_column(width=STUB_COLUMNS)
    sheet.add_column(overflow="fold", ratio=1)
    sheet.add_row(Group(Text(title, style=STRONG), mark), Group(*leaf))
    return sheet


def facts(pairs: Iterable[Fact], *, inset: int = 0) -> RenderableType:
    """Set names beside their values, a little further in where they belong to a line above."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style=QUIET, no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(value) if isinstance(value, str) else value)
    return Padding(table, (0, 0, 0, inset))


class Flow:
    """Short texts side by side, as many on a line as fit; none is broken that fits a line alone.

    Args:
        parts: what stands side by side.
        gap: columns between two.
    """

    def __init__(self, parts: Sequence[Text], *, gap: int = 2) -> None:
        self._parts, self._gap = parts, gap

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        line: list[Text] = []
        used = 0
        for part in self._parts:
            needed = part.cell_len + (self._gap if line else 0)
            if line and used + needed > options.max_width:
                yield Text(" " * self._gap).join(line)
                line, used, needed = [], 0, part.cell_len
            line.append(part)
            used += needed
        if line:
            yield Text(" " * self._gap).join(line)

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        widest = sum(part.cell_len + self._gap for part in self._parts) - self._gap
        longest = max((part.cell_len for part in self._parts), default=0)
        return Measurement(min(longest, options.max_width), max(min(widest, options.max_width), 0))


def columns(pairs: Sequence[tuple[str, Text]], *, across: int) -> RenderableType:
    """Set names above their values, so many side by side."""
    table = Table.grid(padding=(0, 4, 0, 0))
    for start in range(0, len(pairs), across):
        row = pairs[start : start + across]
        table.add_row(*(Text.assemble((name, QUIET), "\n", value) for name, value in row))
    return table


def short(digest: str) -> str:
    """A digest as people compare it: its kind, its beginning and its end."""
    kind, _, rest = digest.rpartition(":")
    cut = rest if len(rest) <= 14 else f"{rest[:8]}…{rest[-4:]}"  # noqa: PLR2004 - shorter is not shorter
    return f"{kind}:{cut}" if kind else cut


SHOWN_FIRST, SHOWN_LAST = 3, 4
"""Of many alike: how it began and how it stands; the export has all of them."""

One = TypeVar("One")


def ends(many: Sequence[One]) -> tuple[Sequence[One], int, Sequence[One]]:
    """The first few, how many stand between, and the last few; all of them are first where they are few."""
    between = len(many) - SHOWN_FIRST - SHOWN_LAST
    if between <= 1:  # a line that says "1 between" is no shorter than that one
        return many, 0, ()
    return many[:SHOWN_FIRST], between, many[-SHOWN_LAST:]


def between(count: int, noun: str) -> Text:
    """How many are left out in the middle."""
    return Text(f"and {count} {noun} between; export has all", style=QUIET)


# -- authorized and attempted ------------------------------------------------------------------------------------------


def pinned(begun: Begun, *, at_hand: bool) -> Iterator[Fact]:
    """What the receipt pins and rests on.

    Args:
        begun: the first claim.
        at_hand: the very contract is known here.
    """
    known = "" if at_hand else ", not at hand here"
    yield "contract", f"{safe(begun.contract_id)}, {short(begun.contract)}{known}"
    if begun.code:
        yield "action code", short(begun.code)
    scope = "" if begun.key_scope in ("", "unknown") else f", unique within {safe(begun.key_scope)}"
    lasts = "" if begun.key_valid_seconds is None else f", protects for {duration(begun.key_valid_seconds)}"
    yield "provider key", f"{safe(begun.provider_key)}{scope}{lasts}"
    for name, assumed in begun.assumptions.items():
        yield "rests on", Text.assemble(_assumption(name, assumed), style=AMBER)
    if begun.mentioned:
        yield "mentioned", _plain(begun.mentioned)


def _assumption(name: str, assumed: object) -> str:
    if not isinstance(assumed, dict) or not isinstance(assumed.get("seconds"), int | float):
        return f"{safe(name)}: {_plain(assumed)}"
    said = f"{safe(name)} {duration(assumed['seconds'])}, assumed by {safe(assumed.get('by', ''))}"
    return f"{said}: {clipped(assumed.get('why', ''), TEXT_COLUMNS)}"


def tried(attempt: Attempt, begun: Begun | None, *, now: float) -> Iterator[RenderableType]:
    """One attempt: when, on which basis, and how it ended.

    Args:
        attempt: as the evidence leaves it.
        begun: as it was claimed; None where retention removed that.
        now: seconds since the epoch.
    """
    yield Text.assemble(
        (f"attempt {attempt.number}", STRONG), f"  {moment(attempt.started_at, fine=True)} UTC",
        ("  on record before the first byte", QUIET),
    )  # fmt: skip
    basis = "removed" if begun is None else stands.basis(begun, otherwise="the first")
    yield facts(
        [("basis", basis), ("send deadline", f"{moment(attempt.deadline)} UTC"), ("ended", _ended(attempt, now))],
        inset=INSET,
    )


def _ended(attempt: Attempt, now: float) -> Text:
    said = Text(attempt.finding.value, style=_FINDINGS[attempt.finding]) if attempt.finding else Text("not recorded")
    if attempt.quiesced:
        return said + Text("; its worker cannot write any more", style=QUIET)
    late = "its send deadline has passed, and " if now > attempt.deadline else ""
    return said + Text(f"; {late}its worker may still write", style=AMBER)


# -- observed ----------------------------------------------------------------------------------------------------------


def evidence(number: int, event: Event, *, payload: bool) -> Iterator[RenderableType]:
    """One piece of evidence: its source, what it says of what, by which rule, and the fields it compared.

    Args:
        number: its place, from 1.
        event: its row.
        payload: with what it returns to callers.
    """
    said = evidence_of(event)
    yield Text.assemble(
        (f"e{number} ", STRONG), word(said.source), "  ", heard(said), (f"  {moment(event.at, fine=True)[11:]}", QUIET)
    )
    body = body_of(event)
    pairs: list[Fact] = [("says", _says(said))]
    pairs.append(("by", f"{safe(said.rule) or 'the house'}{f', {safe(said.reason)}' if said.reason else ''}"))
    named = [safe(part) for part in (said.effect, said.external_id) if part]
    pairs += [("names", ", ".join(named))] if named else []
    pairs += list(_looked_at(body.get("facts") or {}))
    if said.body_digest and event.body is None:
        pairs.append(("facts", Text("erased", style=QUIET)))
    if payload and body.get("result") is not None:
        pairs.append(("returns", _plain(body["result"])))
    yield facts(pairs, inset=INSET)


def speaks_of(said: Evidence) -> str:
    """What a finding is about: one attempt, every attempt with its key, or the operation."""
    # What one sender or one look does not know says nothing of another attempt, whatever it might have covered.
    alone = said.finding in (Finding.UNKNOWN, Finding.NOT_SENT)
    return f"attempt {said.attempt}" if alone else _COVERS.get(said.coverage, f"attempt {said.attempt}")


def _says(said: Evidence) -> Text:
    text = Text.assemble((said.finding.value, _FINDINGS[said.finding]), f" of {speaks_of(said)}")
    return text + Text("; it contradicts what was known", style=AMBER) if said.contradicts else text


def _looked_at(found: dict[str, Any]) -> Iterator[Fact]:
    compared = found.get("compared")
    if isinstance(compared, dict):
        each = (
            marked(_COMPARED.get(str(how), marks.NOT_REPORTED), safe(field) or "payload")
            for field, how in compared.items()
        )
        yield "compared", Flow(list(each))
    seen = found.get("evidence")
    if isinstance(seen, dict):
        yield "seen", _listed(f"{safe(name)} = {_plain(value)}" for name, value in seen.items())
    rest = {name: value for name, value in found.items() if name not in _SHOWN_APART and value not in ("", None)}
    if rest:
        yield "facts", _listed(f"{safe(name)} {_plain(value)}" for name, value in rest.items())


def _listed(said: Iterable[str]) -> Flow:
    """A list whose members are kept whole at the end of a line."""
    *first, last = said
    return Flow([*(Text(f"{one},") for one in first), Text(last)], gap=1)


def _plain(value: object) -> str:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return clipped(said, TEXT_COLUMNS)


# -- unknown, and next -------------------------------------------------------------------------------------------------


def conditions(found: Negative, now: float) -> Iterator[RenderableType]:
    """What is missing before "not found" counts, and the earliest time it may."""
    yield Text("")
    met = found.met
    yield Text(f"Absence: {len(met)} of {len(CONDITIONS)} conditions met", style=STRONG)
    for missing in found.missing:
        yield _hung(Text(marks.MISSING.glyph, style=AMBER), Text(f"missing: {safe(missing)}", style=AMBER))
    if met:
        yield _hung(Text(marks.MET.glyph, style=marks.SUCCEEDED), Text(f"met: {'; '.join(met)}", style=QUIET))
    if found.not_asked:
        yield _hung(Text(" "), Text(f"not asked: {'; '.join(found.not_asked)}", style=QUIET))
    if found.earliest is None:
        yield Text("A negative never counts, as things are.")
        return
    left = f", in {duration(found.earliest - now)}" if found.earliest > now else ", which has passed"
    yield Text(f"Earliest a negative may count: {moment(found.earliest)} UTC{left}", style=STRONG)


def step(found: Step) -> RenderableType:
    """One step: what it is, and the rule that allows or blocks it."""
    mark, said = (marks.GO, "permitted") if found.allowed else (marks.BLOCKED, "blocked")
    name = Text.assemble((found.name, STRONG if found.allowed else ""), (f"  {said}", QUIET))
    lines = [name, Text(found.because, style=QUIET)]
    return _hung(Text(mark.glyph, style=mark.style), Text("\n").join(lines))


def command(text: str, width: int) -> Text:
    """A command that may be copied as it stands: where it is too long, the shell reads on in the next line.

    Args:
        text: the command.
        width: columns.
    """
    words, *options = text.split(" --")
    first, *rest = words.split(" ")  # a verb and an id: nothing that is quoted
    lines = [first]
    for said in (*rest, *(f"--{option}" for option in options)):
        if len(lines[-1]) + 1 + len(said) <= width - 2:
            lines[-1] += f" {said}"
        else:
            lines.append(f"  {said}")
    return Text(" \\\n".join(lines), no_wrap=True)


def _hung(glyph: Text, text: Text) -> RenderableType:
    """A glyph, and its text indented beside it."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(glyph, text)
    return table


# -- history -----------------------------------------------------------------------------------------------------------


def happening(event: Event, nth: int = 0) -> str:
    """What one event records, on one line.

    Args:
        event: the event.
        nth: of a decision, which of the people it takes made it.
    """
    import msgspec

    match event.kind:
        case EventKind.BEGUN:
            return f"attempt {begun_of(event).attempt.number} claimed"
        case EventKind.OBSERVED:
            said = evidence_of(event)
            return f"{said.source.value}: {heard(said)}"
        case EventKind.DECIDED:
            return sentences.decision(event, nth)
        case EventKind.PROPOSED:
            return sentences.question(event)
        case EventKind.LOOKING:
            noted = msgspec.json.decode(event.record, type=Noted)
            return f"look {noted.facts.get('used', '?')} of {noted.facts.get('of', '?')} paid for"
        case EventKind.REMOVED:
            return removed_line(event)
        case _:
            return clipped(msgspec.json.decode(event.record, type=Noted).note, TEXT_COLUMNS)


def removed_line(event: Event) -> str:
    """What retention removed, and by which rule."""
    left = removed_of((event,))
    assert left is not None  # noqa: S101 - it is one
    events = f"{left.events} event{'' if left.events == 1 else 's'}"
    return f"{events} removed by the retention of {clipped(left.rule, TEXT_COLUMNS)!r}, policy {short(left.policy)}"


def still_unknown(outcome: Outcome, discrepancy: Discrepancy, attempts: Sequence[Attempt]) -> Iterator[str]:
    """What nobody can say yet, in fixed sentences."""
    if discrepancy is Discrepancy.OPEN:
        yield "Which of the evidence that disagrees is right."
    if any(a.open for a in attempts):
        which = ", ".join(str(a.number) for a in attempts if a.open)
        yield f"Whether attempt {which} took effect." if len(attempts) > 1 else "Whether the effect took place."
    if any(not a.quiesced and a.open for a in attempts):
        yield "Whether a worker can still write."
    if outcome is Outcome.ACCEPTED:
        yield "How what was accepted ends."
