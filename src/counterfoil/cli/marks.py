"""The marks of the terminal: always a glyph and its word; colour comes third and is never alone.

Unknown is the loudest thing and not an error: the only solid ground, violet, and a half-filled diamond, because half is
on the stub and half is not seen. Red is kept for the guard's own faults, amber for "a person should look".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.segment import Segment
from rich.text import Text

from counterfoil.domain.words import Discrepancy, Dispatch, Disposition, Lifecycle, Outcome, Permission, Source
from counterfoil.runtime.export import LATEST

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

# Each hue reads at least 4:1 on white and on black alike: a terminal does not say which it has.
ACCEPTED, SUCCEEDED, REJECTED = "#2f7fb8", "#218a4e", "#a8577e"
VIOLET, SOLID = "#8a63d2", "bold #ffffff on #5b2bb0"
AMBER, RED = "#a66f00", "#d03b3b"
QUIET = "#767676"
STRONG = "bold"


class Mark(NamedTuple):
    """One glyph, how its word is set, and what a bar of it is drawn with."""

    glyph: str
    style: str = ""
    fill: str = "─"
    bar: str = ""
    """The style of the fill; empty: that of the word."""


OUTCOMES = {
    Outcome.UNOBSERVED: Mark("◌", QUIET, "┄"),
    Outcome.ACCEPTED: Mark("◉", ACCEPTED),
    Outcome.SUCCEEDED: Mark("✓", SUCCEEDED, "━"),
    Outcome.REJECTED: Mark("☒", REJECTED, "━"),
    Outcome.UNKNOWN: Mark("⬖", SOLID, "█", "#5b2bb0"),
}
PERMISSIONS = {
    Permission.PENDING: Mark("⊙", "", "┄"),
    Permission.AUTHORIZED: Mark("⊛"),
    Permission.EXPIRED: Mark("⊖"),
    Permission.REVOKED: Mark("⊝"),
    Permission.DENIED: Mark("⊗"),
}
DISPATCHES = {
    Dispatch.NOT_STARTED: Mark("⇢", "", "┄", QUIET),
    Dispatch.STARTED: Mark("⇸"),
    Dispatch.COMPLETED: Mark("⇄", "", " "),
}
DISPOSITIONS = {Disposition.OPEN: Mark("⊔"), Disposition.CLOSED: Mark("⊟"), Disposition.ABANDONED: Mark("⊡")}
DISCREPANCIES = {
    Discrepancy.NONE: Mark("·", QUIET),
    Discrepancy.OPEN: Mark("≠", f"bold {AMBER}"),
    Discrepancy.SETTLED: Mark("="),
}
SOURCES = {
    Source.TRANSPORT: Mark("⊸"),
    Source.ANSWER: Mark("←"),
    Source.LATE_ANSWER: Mark("⇠"),
    Source.LOOK: Mark("⌕"),
    Source.WEBHOOK: Mark("↯"),
    Source.STATEMENT: Mark("☰"),
    Source.OPERATOR: Mark("✎"),
    Source.SENDER: Mark("⊳"),
}
_TABLES: Mapping[type[StrEnum], Mapping[Any, Mark]] = {
    Outcome: OUTCOMES,
    Permission: PERMISSIONS,
    Dispatch: DISPATCHES,
    Disposition: DISPOSITIONS,
    Discrepancy: DISCREPANCIES,
    Source: SOURCES,
}
"""By type, not by value: an open disposition and an open discrepancy are one string and two words."""

SAME, DIFFERS, NOT_REPORTED = Mark("=", SUCCEEDED), Mark("≠", AMBER), Mark("·", QUIET)
MET, MISSING = Mark("☑", SUCCEEDED), Mark("☐", AMBER)
GO, BLOCKED = Mark("→", STRONG), Mark("⊘", QUIET)
REMOVED = Mark("·", QUIET, "┄")
INTACT, BROKEN = Mark("≡", QUIET), Mark("✗", f"bold {RED}")

_ACTING = {Lifecycle.SUBMITTED: Mark("⇸")}
_WAITING = Mark("≠", f"bold {AMBER}")

ASCII = str.maketrans(
    "◌◉✓☒⬖⊙⊛⊖⊝⊗⇢⇸⇄⊔⊟⊡·≠⊸←⇠⌕↯✎⊳☑☐→⊘≡✗┄─━█┊┴…",
    ".o+x?(@--x>>>u=o.!~<<?<*>+!>x=X.-=#:+~",
)
"""What each glyph of ours becomes where the terminal's encoding has no room for it; the words stay."""


class Legible:
    """What it holds, in the glyphs that its stream can carry, and without blanks at the ends of lines."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        plain = not console.encoding.lower().replace("-", "").startswith("utf")
        for line in console.render_lines(self._inner, options, pad=False):
            for segment in _without_blanks(line):
                yield Segment(segment.text.translate(ASCII), segment.style, segment.control) if plain else segment
            yield Segment.line()


def _without_blanks(line: list[Segment]) -> list[Segment]:
    """A line up to its last character, or the last cell of a solid ground; equal styles side by side are one."""
    kept = list(Segment.simplify(line))
    while kept and not (kept[-1].style and kept[-1].style.bgcolor):
        last = kept.pop()
        if last.control or last.text.rstrip():
            return [*kept, Segment(last.text.rstrip(), last.style, last.control)]
    return kept


def mark_of(value: StrEnum) -> Mark:
    """The mark of a word."""
    return _TABLES[type(value)][value]


def marked(mark: Mark, word: str) -> Text:
    """Set a mark: glyph and word together; a solid ground reaches one cell beyond both."""
    solid = mark.style == SOLID
    # A span, not the text's own style: that would colour the padding of a table's cell too.
    return Text.assemble((f" {mark.glyph} {word} " if solid else f"{mark.glyph} {word}", mark.style))


def word(value: StrEnum) -> Text:
    """Set a word of the house that has a mark."""
    return marked(mark_of(value), value.value)


def lifecycle_mark(lifecycle: Lifecycle, outcome: Outcome) -> Text:
    """Set the derived name under the outcome's mark: a person's turn on a settled outcome is amber."""
    if lifecycle is Lifecycle.MANUAL_REVIEW and outcome is not Outcome.UNKNOWN:
        return marked(_WAITING, lifecycle.value)
    return marked(_ACTING.get(lifecycle, OUTCOMES[outcome]), lifecycle.value)


def figure(value: float) -> str:
    """A value at risk in even digits: whole, or with two decimals."""
    return f"{value:,.0f}" if value == math.floor(value) and abs(value) < 1e15 else f"{value:,.2f}"  # noqa: PLR2004 - floats are whole above


def moment(at: float, *, fine: bool = False) -> str:
    """A time for people, UTC; fine: with milliseconds. What is no time is shown as the number it is."""
    if not 0 <= at < LATEST:
        return f"{at!r} s"
    return datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="milliseconds" if fine else "seconds")[
        : 23 if fine else 19
    ]


def duration(seconds: float) -> str:
    """A duration for people in its two largest units, down to milliseconds."""
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"  # noqa: PLR2004
    if seconds < 10:  # noqa: PLR2004 - one decimal says more than "9 s" here, and less from here on
        return f"{seconds:.1f} s"
    left = round(seconds)
    parts = [(left // 86_400, "d"), (left // 3_600 % 24, "h"), (left // 60 % 60, "m"), (left % 60, "s")]
    first = next(i for i, (n, _) in enumerate(parts) if n)
    return " ".join(f"{n} {unit}" for n, unit in parts[first : first + 2] if n)
