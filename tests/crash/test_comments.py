"""Every crash window has a name: the comment that marks it names a test, and that test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"^\s*# Crash here: ", re.MULTILINE)
NAMED = re.compile(r"\((test_[a-z0-9_]+)\)\.?$")


def marks(text: str) -> list[str]:
    """Each comment that marks a crash window, its further lines included."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        comment = line.strip().startswith("# ")
        if MARK.match(line):
            found.append(line.strip())
        elif inside and comment:
            found[-1] += " " + line.strip().removeprefix("# ")
        inside = bool(found) and comment and (inside or bool(MARK.match(line)))
    return found


def every_test() -> set[str]:
    """The name of every test there is."""
    modules = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py")]
    nodes = [node for module in modules for node in ast.walk(module)]
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_crash_window_has_a_test():
    """In the plans each mark ends in the name of a test in brackets, and a test of that name is collected."""
    plans = sorted((ROOT / "src" / "counterfoil" / "plans").glob("*.py"))
    found = [mark for path in plans for mark in marks(path.read_text(encoding="utf-8"))]
    names = [NAMED.search(mark) for mark in found]
    assert [mark for mark, name in zip(found, names, strict=True) if name is None] == []
    assert {name[1] for name in names if name} <= every_test()
    assert len(found) >= 4


def test_a_mark_of_two_lines_is_one():
    """The name may stand on the second line; a comment further down is not part of it."""
    text = "    # Crash here: nothing\n    # left (test_it).\n    x = 1\n    # another\n"
    assert marks(text) == ["# Crash here: nothing left (test_it)."]
    assert NAMED.search("# Crash here: nothing left (test_it)") is not None
