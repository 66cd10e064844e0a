"""Changing any line: what can be changed is listed in one order, each change is one, and equivalents are named."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "mutate.py"

SOURCE = '''
"""Of no consequence."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import nothing

LIMIT = 3


class Box:
    """A box."""

    open: bool = True

    def fits(self, n: int) -> bool:
        """Whether it fits."""
        if not self.open or n > LIMIT:
            raise ValueError
        self.last = n
        return n + 1 == LIMIT


def named(box):
    return "a" + "b" if box is None else [box]
'''
CHANGES = [
    (": 3 in `LIMIT = 3`", "4"),
    ("Box: True in `open: bool = True`", "False"),
    ("Box.fits: if not self.open or n > LIMIT", "if True"),
    ("Box.fits: if not self.open or n > LIMIT", "if False"),
    ("Box.fits: not self.open or n > LIMIT", "not self.open and n > LIMIT"),
    ("Box.fits: not self.open", "bool(self.open)"),
    ("Box.fits: n > LIMIT", "n >= LIMIT"),
    ("Box.fits: raise ValueError", "pass"),
    ("Box.fits: self.last = n", "pass"),
    ("Box.fits: return n + 1 == LIMIT", "return True"),
    ("Box.fits: return n + 1 == LIMIT", "return False"),
    ("Box.fits: n + 1 == LIMIT", "n + 1 != LIMIT"),
    ("Box.fits: n + 1", "n - 1"),
    ("Box.fits: 1 in `return n + 1 == LIMIT`", "2"),
    ("named: return 'a' + 'b' if box is None else [box]", "return None"),
    ("named: 'a' + 'b' if box is None else [box]", "[box] if box is None else 'a' + 'b'"),
    ("named: box is None", "box is not None"),
]


@pytest.fixture(scope="module")
def mutate():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("mutate", SCRIPT)
    made = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    yield made
    del sys.modules["mutate"]


def test_everything_that_can_be_changed_is_listed(mutate, tmp_path):
    """Operators, numbers, branches, returned values and statements; no docstring, annotation, import or text."""
    path = tmp_path / "box.py"
    path.write_text(SOURCE)
    found = mutate.changes_of(path, "domain/box")
    assert [
        (change.named().removeprefix("domain/box ").rpartition(" -> ")[0], change.after) for change in found
    ] == CHANGES


def test_each_change_is_one_and_can_be_run(mutate, tmp_path):
    """The changed text compiles, is not the unchanged one, and no two are alike."""
    path = tmp_path / "box.py"
    path.write_text(SOURCE)
    plain = ast.unparse(ast.parse(SOURCE)) + "\n"
    texts = [mutate.changed(path, change) for change in mutate.changes_of(path, "domain/box")]
    for text in texts:
        compile(text, "box", "exec")
    assert plain not in texts
    assert len(set(texts)) == len(texts)


def test_what_is_called_equivalent_is_still_there(mutate):
    """What nothing can notice is named as it is found, with its reason below; what is gone is taken out."""
    lines = [line for line in mutate.EQUIVALENT.read_text("utf-8").splitlines() if not line.startswith("#")]
    named, reasons = lines[::2], lines[1::2]
    assert all(reason.startswith("  ") and len(reason.split()) > 3 for reason in reasons)
    assert len(named) == len(reasons)
    there = {change.named() for name, path in mutate.modules().items() for change in mutate.changes_of(path, name)}
    assert sorted(set(named) - there) == []
    assert mutate.known() == set(named)


def test_tests_that_matter_are_found(mutate):
    """Its own first, then those that name it, and all of the units in the end."""
    own, named, every = mutate.that_matter("domain/retry")
    assert own == ["tests/unit/test_retry.py"]
    assert "tests/unit/test_retry.py" not in named
    assert every == ["tests/unit"]
