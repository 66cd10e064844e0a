"""Pictures of a benchmark: bars with their figures, as SVG that any browser shows and nobody needs a library for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

WIDTH, LABEL, ROW, TOP, BAR = 800, 270, 26, 62, 16
VALUE = 170
"""What stands right of a bar: its figure, and a remark."""
OURS, FLOOR, OTHERS, INK, QUIET = "#0b6e4f", "#8a8f98", "#b9bfc9", "#1c2026", "#5b626d"
STORES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


class Bar(NamedTuple):
    """One bar: what it is of, how long, what is written beside it, and in which colour."""

    label: str
    value: float
    said: str
    colour: str = OTHERS


def draw(figures: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write two pictures of a run that measured peers, and return their paths.

    Args:
        figures: of the run.
        folder: made where it is missing; pictures of an earlier run are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store = STORES[figures["store"]]
    pages = {
        "one": (f"One caller, {store}: time of a call over two bare commits", "shorter is faster", _one(figures)),
        "many": (f"64 callers, {store}: calls a second", "longer is faster", _many(figures)),
    }
    made = []
    for name, (title, remark, bars) in pages.items():
        made.append(folder / f"{figures['store']}-{name}.svg")
        made[-1].write_text(chart(title, remark, list(bars)), encoding="utf-8")
    return made


def _one(figures: Mapping[str, Any]) -> Iterator[Bar]:
    yield Bar("two bare commits", 1.0, "1", FLOOR)
    ours = figures["beside"]["thin_ratio"]
    yield Bar("counterfoil", ours, f"{ours:.2f}", OURS)
    for name, found in _peers(figures, "thin_ratio", reverse=False):
        syncs = found["fsyncs_per_call"]
        said = "" if syncs is None else f", {syncs:g} syncs"
        yield Bar(_label(name, found), found["thin_ratio"], f"{found['thin_ratio']:.2f}{said}")


def _many(figures: Mapping[str, Any]) -> Iterator[Bar]:
    rates = figures["beside"]["per_second"]
    yield Bar("bare connections", rates["raw"], f"{rates['raw']:,}", FLOOR)
    for way in ("threads", "tasks"):
        yield Bar(f"counterfoil, {way}", rates[way], f"{rates[way]:,}", OURS)
    for name, found in _peers(figures, "per_second", reverse=True):
        said = f"{found['per_second']:,.0f}, ours {found['over']:.3g} times"
        yield Bar(f"{_label(name, found)}, {found['way']}", found["per_second"], said)


def _peers(figures: Mapping[str, Any], by: str, *, reverse: bool) -> list[tuple[str, Any]]:
    return sorted(figures["peers"].items(), key=lambda item: item[1][by], reverse=reverse)


def _label(name: str, found: Mapping[str, Any]) -> str:
    on = {"redis": " on Redis"}.get(found["on"], "")
    return f"{name} {found['version']}{on}"


def chart(title: str, remark: str, bars: Sequence[Bar]) -> str:
    """Draw horizontal bars from one zero.

    Args:
        title: also what is read out where nobody looks.
        remark: which end is the better one.
        bars: from top to bottom.
    """
    height = TOP + ROW * len(bars) + 10
    longest = max(bar.value for bar in bars)
    scale = (WIDTH - LABEL - VALUE - 20) / longest
    said = "; ".join(f"{bar.label}: {bar.said}" for bar in bars)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(said)}</desc>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="15" font-weight="600" fill="{INK}">{escape(title)}</text>',
        f'<text x="16" y="45" fill="{QUIET}">{escape(remark)}</text>',
    ]
    for number, bar in enumerate(bars):
        y = TOP + ROW * number
        width = max(bar.value * scale, 1.0)
        lines += [
            f'<text x="{LABEL - 10}" y="{y + 13}" text-anchor="end" fill="{INK}">{escape(bar.label)}</text>',
            f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{bar.colour}"/>',
            f'<text x="{LABEL + width + 8:.1f}" y="{y + 13}" fill="{QUIET}">{escape(bar.said)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
