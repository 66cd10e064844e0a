"""One noun per module, and decisions are numbered without gaps."""

from __future__ import annotations

import ast
import re

import pytest

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# The field reports are numbered in sections by those who keep them: the tests say which they survive.
NO_NOUN = re.compile(
    r"^_?(?!test_section_)(utils?|helpers?|common|base|misc|managers?|.*_(utils?|helpers?|manager)|.*_\d+)$"
)
DECISION = re.compile(r"^(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md$")
DECISION_HEADINGS = ["## Context", "## Decision", "## Consequence"]
DECISION_LINES_MAX = 60  # half a page


def test_every_module_is_named_for_a_noun(python):
    """No module is called utils, helpers, common, base or manager, nor numbered as a second part."""
    parts = {(file, part.removesuffix(".py")) for file in python for part in file.name.split("/")}
    assert sorted(f"{file}: {part}" for file, part in parts if NO_NOUN.match(part)) == []


@pytest.mark.parametrize("name", ["utils", "_helpers", "common", "base", "sql_utils", "lock_manager", "commit_2"])
def test_a_name_that_says_nothing_is_seen(name):
    """Each banned form is recognised."""
    assert NO_NOUN.match(name)


@pytest.mark.parametrize("name", ["sqlite", "effect", "utilisation", "baseline", "commit", "sha256"])
def test_a_noun_passes(name):
    """A word that only begins like a banned one is left alone."""
    assert not NO_NOUN.match(name)


def test_no_test_is_left_uncollected(tests):
    """A test stands in a module that pytest collects: one called test_*.py."""
    lost = [file for file in tests if not file.path.name.startswith("test_")]
    named = [(file, node) for file in lost for node in file.tree.body if isinstance(node, FUNCTIONS)]
    assert [f"{file}: {node.name}" for file, node in named if node.name.startswith("test_")] == []


def test_decisions_are_numbered_without_gaps(root):
    """docs/adr holds NNNN-title.md only, numbered from 0001 upwards, each number once."""
    found = sorted(path.name for path in (root / "docs" / "adr").iterdir())
    assert [name for name in found if not DECISION.match(name)] == []
    assert [int(name[:4]) for name in found] == list(range(1, len(found) + 1))


def test_a_decision_is_half_a_page(root):
    """Each ADR says context, decision and consequence, in this order, in half a page."""
    for path in sorted((root / "docs" / "adr").iterdir()):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line.startswith("## ")] == DECISION_HEADINGS, path.name
        assert len(lines) <= DECISION_LINES_MAX, path.name
