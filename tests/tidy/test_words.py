"""The project speaks of itself: no workplace, no machine, no registry, no promise it does not keep."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

# Put together from halves, so that this page does not contain what it looks for.
BANNED: Mapping[str, Sequence[str]] = {
    "who wrote it is not the project's subject": ["sub" + "agent", "sub-" + "agent"],
    "a folder of one machine": ["/wo" + "rk/", "/ro" + "ot/"],
    "a page that does not come with the project": [
        "../sha" + "red",
        "design" + ".md",
        "perf" + ".md",
        "reliability" + ".md",
    ],
    "a package registry's host": [
        "pypi" + ".org",
        "python" + "hosted.org",
        "registry.npm" + "js.org",
        "deb.debian" + ".org",
    ],
}
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def offences(text: str) -> list[str]:
    """Each banned word in the text, with what it gives away."""
    lowered = text.lower()
    found = [f"{word!r}: {why}" for why, words in BANNED.items() for word in words if word in lowered]
    return found + [f"{match[0]}: work left lying needs an issue" for match in UNFINISHED.finditer(text)]


def links(text: str) -> list[str]:
    """The relative targets a Markdown page links to, outside fenced code."""
    return LINK.findall(FENCED.sub("", text))


def test_no_file_says_a_banned_word(files):
    """Code, comments, tests and pages name no workplace, no machine path, no registry host and no unfinished work."""
    assert [f"{file}: {found}" for file in files for found in offences(file.text)] == []


@pytest.mark.parametrize("word", [word for words in BANNED.values() for word in words])
def test_each_banned_word_is_seen(word):
    """A planted word is found, in whatever case it is written."""
    assert offences(f"see {word.upper()} for more")


def test_unfinished_work_is_seen():
    """The usual marks are found as words; a VTODO of a calendar is none."""
    assert len(offences("# TO" + "DO: later, FIX" + "ME")) == 2
    assert offences("BEGIN:VTODO") == []


def test_links_lead_somewhere(files):
    """Every relative link of every page leads to a file that exists."""
    pages = [file for file in files if file.path.suffix == ".md"]
    targets = [(page, target) for page in pages for target in links(page.text)]
    assert [f"{page}: {target}" for page, target in targets if not (page.path.parent / target).exists()] == []


def test_a_link_is_recognised():
    """Relative targets are found; anchors, web addresses and code are left alone."""
    page = "[a](docs/a.md#x) [b](https://example.org) [c](#here)\n```\n[d](nowhere.md)\n```\n"
    assert links(page) == ["docs/a.md"]
