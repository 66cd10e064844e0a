"""The pictures say what was measured: each bar as long as its figure, in the figure's own words."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from counterfoil.lab import commands
from counterfoil.lab.bench import plot

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = {
    "store": "sqlite",
    "beside": {"thin_ratio": 1.3, "per_second": {"raw": 1000, "threads": 2500, "tasks": 4000}},
    "peers": {
        "dbos": {
            "version": "3", "way": "tasks", "on": "sqlite", "thin_ratio": 13.0, "per_second": 80.0, "over": 50.0,
            "fsyncs_per_call": 12.0,
        },
        "idemkit": {
            "version": "1 & <2>", "way": "tasks", "on": "redis", "thin_ratio": 2.6, "per_second": 2000.0, "over": 2.0,
            "fsyncs_per_call": None,
        },
    },
}  # fmt: skip


def test_a_bar_is_as_long_as_its_figure(tmp_path):
    """All bars of a picture start from nought: one that is ten times as long is ten times as much."""
    one, many = (ET.parse(path).getroot() for path in plot.draw(FIGURES, tmp_path / "new"))
    assert widths(one) == [1.0, 1.3, 2.6, 13.0]
    assert widths(many) == [1000.0, 2500.0, 4000.0, 2000.0, 80.0]


def test_every_figure_is_said_in_words(tmp_path):
    """Whoever cannot see it is read the same; whatever stands in a version is text."""
    one, many = (ET.parse(path).getroot() for path in plot.draw(FIGURES, tmp_path))
    assert "counterfoil: 1.30" in one.findtext(f"{SVG}desc")
    assert "idemkit 1 & <2> on Redis: 2.60" in one.findtext(f"{SVG}desc")
    assert "dbos 3: 13.00, 12 syncs" in one.findtext(f"{SVG}desc")
    assert "dbos 3, tasks: 80, ours 50 times" in many.findtext(f"{SVG}desc")


def test_nothing_is_drawn_outside(tmp_path):
    """The longest bar leaves room for what is written beside it."""
    for path in plot.draw(FIGURES, tmp_path):
        right = [
            float(bar.get("x", 0)) + float(bar.get("width")) for bar in ET.parse(path).getroot().iter(f"{SVG}rect")
        ]
        assert max(right) <= plot.WIDTH


def test_there_is_no_picture_without_peers(tmp_path, capsys):
    """Alone, there would be nothing beside which it is drawn; nothing is measured then."""
    assert commands.run(["bench", "--plots", str(tmp_path)]) == 3
    assert "--peers" in capsys.readouterr().err


def widths(page):
    """Lengths of the bars, in units of the first one's figure."""
    found = [float(bar.get("width")) for bar in page.findall(f"{SVG}rect")[1:]]
    first = 1.0 if "one" in page.findtext(f"{SVG}title").lower()[:3] else 1000.0
    return [round(width / found[0] * first, 1) for width in found]
