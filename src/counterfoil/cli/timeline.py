"""The timeline of one operation, drawn: times on the axis, breaks where long gaps are cut short.

Distances are not to scale: what happened within milliseconds and what happened hours later must both be read. Each
long gap is cut and says how long it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby

import msgspec
from rich.text import Text

from counterfoil.cli.marks import QUIET, SOLID, STRONG, duration
from counterfoil.cli.story import Lane, Point, Span, Story

GUTTER = 12
"""Columns for a lane's name: `permission`, `dispatch 2`."""
PLOT_MAX = 96
"""Wider bars say nothing more."""
INSTANTS_PER_COLUMN = 5
"""Columns an instant needs at least; where there are more instants, neighbouring evidence shares a mark."""
BREAK_FACTOR = 8
"""Gaps this many times longer than all shorter ones together are cut."""
BREAKS_MAX = 3
"""More cuts than this hide the line they cut."""
BREAK_COLUMNS_MIN = 7
GAP_MAX = 40
"""Columns one gap is stretched to at most: two events do not need the whole width."""
NOW = "now"
GHOST = 3
"""Columns after `now`: it goes on until evidence or a decision."""
TAIL = 18
"""Columns after the last event of what is over, where there is room."""


class _Scale:
    """Which column each instant has.

    Args:
        story: what is drawn.
        columns: how many there are for bars.
    """

    def __init__(self, story: Story, columns: int) -> None:
        times = {story.end, *(p.at for p in story.points)}
        for lane in story.lanes:
            times |= {t for span in lane.spans for t in (span.start, span.end)}
        self.times = sorted(times)
        self._story, self._columns = story, columns
        for labelled in (True, False):
            self._gaps = self._needed(labelled=labelled)
            if sum(self._gaps) <= columns:
                break
        else:
            self._gaps = [max(columns // len(self._gaps), 1)] * len(self._gaps)
        self._stretch(columns - sum(self._gaps))

    @property
    def columns(self) -> int:
        """How many columns all of it takes."""
        return sum(self._gaps)

    def column(self, at: float) -> int:
        """The column of an instant."""
        return sum(self._gaps[: self.times.index(at)])

    def until(self, lane: Lane, span: Span) -> int:
        """The column at which a stretch ends: the last of what is over goes on to the edge."""
        last = span is lane.spans[-1] and not self._story.ongoing
        return self.columns if last else self.column(span.end)

    def breaks(self) -> list[tuple[int, int, float]]:
        """The gaps that are cut: first column, columns and seconds."""
        lengths = self._lengths()
        ordered = sorted(lengths)
        cuts = (i for i in range(1, len(ordered)) if ordered[i] > BREAK_FACTOR * sum(ordered[:i]))
        long = next((ordered[i] for i in cuts if len(ordered) - i <= BREAKS_MAX), math.inf)
        return [
            (sum(self._gaps[:index]), self._gaps[index], length)
            for index, length in enumerate(lengths)
            if length >= long and self._gaps[index] >= BREAK_COLUMNS_MIN
        ]

    def _lengths(self) -> list[float]:
        return [b - a for a, b in zip(self.times, self.times[1:], strict=False)]

    def _needed(self, *, labelled: bool) -> list[int]:
        """Columns per gap, the edge after the last instant included, so that every label has its room."""
        gaps = [1] * (len(self.times) - 1) + [GHOST if self._story.ongoing else 1]
        for first, last, columns in sorted(self._wants(labelled=labelled), key=lambda want: want[1] - want[0]):
            lengths = [*self._lengths(), 0.0]
            widest = max(range(first, last), key=lambda index: lengths[index])
            gaps[widest] += max(columns - sum(gaps[first:last]), 0)
        return gaps

    def _wants(self, *, labelled: bool) -> Iterator[tuple[int, int, int]]:
        edge = len(self.times)
        for lane in self._story.lanes:
            for span in lane.spans:
                first = self.times.index(span.start)
                over = span is lane.spans[-1] and not self._story.ongoing
                last = edge if over else self.times.index(span.end)
                if last > first:
                    yield first, last, len(span.label) + 3 if labelled else 2
        starts = [*(self.times.index(p.at) for p in self._story.points), edge]
        for point, first, last in zip(self._story.points, starts, starts[1:], strict=False):
            if last > first:
                yield first, last, (max(len(point.label), len(point.word)) if labelled else len(point.name)) + 2

    def _stretch(self, spare: int) -> None:
        """Share what is left among the gaps by the logarithm of their length."""
        lengths = self._lengths()
        if spare <= 0 or not lengths:
            return
        least = min(length for length in lengths)
        weights = [math.log1p(length / max(least, 1e-3)) for length in lengths]
        total = sum(weights)
        for index, weight in enumerate(weights):
            room = max(GAP_MAX - self._gaps[index], 0)
            self._gaps[index] += min(int(spare * weight / total), room)
        if not self._story.ongoing:
            self._gaps[-1] += max(min(TAIL - self._gaps[-1], self._columns - self.columns), 0)


# -- the drawing -------------------------------------------------------------------------------------------------------


class _Row:
    """One line of cells."""

    def __init__(self, name: str, columns: int) -> None:
        self._name = name
        self._cells = [(" ", "")] * columns

    def put(self, column: int, text: str, style: str) -> None:
        """Write text from a column on; what does not fit is cut."""
        for offset, char in enumerate(text):
            if 0 <= column + offset < len(self._cells):
                self._cells[column + offset] = (char, style)

    def text(self) -> Text:
        """The line, with its name in the gutter."""
        runs = groupby(self._cells, key=lambda cell: cell[1])
        said = (("".join(char for char, _ in run), style) for style, run in runs)
        line = Text.assemble((self._name.ljust(GUTTER), QUIET), *said)
        line.rstrip()
        line.no_wrap = True
        return line


def draw(told: Story, width: int) -> list[Text]:
    """Draw a story within a number of columns.

    Args:
        told: what happened.
        width: columns, the gutter included.
    """
    columns = min(max(width - GUTTER, 2 * INSTANTS_PER_COLUMN), PLOT_MAX)
    told = msgspec.structs.replace(told, points=_shared(told.points, columns // INSTANTS_PER_COLUMN))
    scale = _Scale(told, columns)
    rows = [_lane(lane, told, scale) for lane in told.lanes]
    rows += _evidence(told.points, scale) if told.points else []
    return [row.text() for row in [*rows, *_axis(told, scale)]]


def _shared(points: tuple[Point, ...], most: int) -> tuple[Point, ...]:
    """Let neighbouring evidence share a mark where there is more of it than room."""
    if len(points) <= most:
        return points
    size = math.ceil(len(points) / most)
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return tuple(
        msgspec.structs.replace(g[0], name=f"{g[0].name}-{g[-1].name[1:]}" if len(g) > 1 else g[0].name) for g in groups
    )


def _lane(lane: Lane, told: Story, scale: _Scale) -> _Row:
    row = _Row(lane.name, scale.columns)
    for span in lane.spans:
        last = scale.until(lane, span)
        # A column of air before the next stretch; a solid one needs none.
        air = 0 if span is lane.spans[-1] or span.mark.style == SOLID else 1
        _bar(row, span, scale.column(span.start), last - air, scale.breaks())
    if told.ongoing and lane.name == "outcome":
        mark = lane.spans[-1].mark
        row.put(scale.column(told.end), "┄" * GHOST, mark.bar or mark.style)
    return row


def _bar(row: _Row, span: Span, first: int, last: int, breaks: Iterable[tuple[int, int, float]]) -> None:
    mark, room = span.mark, last - first
    solid = mark.style == SOLID
    row.put(first, mark.fill * room, mark.bar or mark.style)
    label = f" {span.label} " if solid else f"{span.label} "
    label = label if len(label) <= room else mark.glyph
    for at, columns, _ in breaks:
        middle = at + columns // 2 - 1
        if first + len(label) < middle < last - 1 and mark.fill != " ":
            row.put(middle, "//", QUIET)
    if len(label) <= room:
        row.put(first, label, mark.style)


def _evidence(points: tuple[Point, ...], scale: _Scale) -> list[_Row]:
    marks, words = _Row("evidence", scale.columns), _Row("", scale.columns)
    ends = [*(scale.column(p.at) for p in points[1:]), scale.columns]
    for point, end in zip(points, ends, strict=True):
        first = scale.column(point.at)
        room = end - first
        marks.put(first, point.label if len(point.label) < room else point.name[:room], STRONG)
        if len(point.word) < room:
            words.put(first, point.word, QUIET)
    return [marks, words]


def _axis(told: Story, scale: _Scale) -> list[_Row]:
    line = _Row("UTC", scale.columns)
    line.put(0, "─" * scale.columns, QUIET)
    for first, columns, length in scale.breaks():
        said = f"// {duration(length)} //"
        said = said if len(said) + 2 < columns else "//"
        line.put(first + (columns - len(said)) // 2, said, QUIET)
    for at in scale.times:
        line.put(scale.column(at), "┴", QUIET)
    return [line, _times(told, scale)]


def _times(told: Story, scale: _Scale) -> _Row:
    """As many times as have room, the first and `now` before all others."""
    row = _Row("", scale.columns)
    edge = scale.columns + 1
    if told.ongoing:
        edge = min(scale.column(told.end), scale.columns - len(NOW))
        row.put(edge, NOW, STRONG)
    free = 0
    for at in scale.times[: -1 if told.ongoing else None]:
        column, said = scale.column(at), _clock(at, told, first=free == 0)
        if free <= column and column + len(said) < edge:
            row.put(column, said, QUIET)
            free = column + len(said) + 2
    return row


def _clock(at: float, told: Story, *, first: bool) -> str:
    start = told.lanes[0].spans[0].start
    moment = datetime.fromtimestamp(at, UTC)
    if first:
        return moment.strftime("%H:%M:%S")
    if at - start < 60:  # noqa: PLR2004 - within the first minute the distance says more than the clock
        return f"+{duration(at - start)}"
    same_day = moment.date() == datetime.fromtimestamp(start, UTC).date()
    return moment.strftime("%H:%M:%S" if same_day else "%b %d %H:%M")
