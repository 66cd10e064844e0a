"""No module and no function grows past what one reading holds."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator

import pytest

MODULE_LINES_MAX = 400
TEST_MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
FUNCTION_LINES_P90_MAX = 30
FUNCTIONS_FOR_P90 = 50  # below this a tenth is a handful, and the percentile says nothing


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Name and length of each function, from its `def` to its last line, docstring included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def too_long(tree: ast.AST) -> list[str]:
    """The functions above the limit."""
    return [f"{name}: {lines} lines" for name, lines in functions(tree) if lines > FUNCTION_LINES_MAX]


def test_modules_fit(python):
    """A module of the product has at most 400 lines, any other at most 600."""
    limits = {file: MODULE_LINES_MAX if file.name.startswith("src/") else TEST_MODULE_LINES_MAX for file in python}
    lengths = {file: len(file.text.splitlines()) for file in python}
    assert [f"{file}: {lengths[file]} lines" for file in python if lengths[file] > limits[file]] == []


def test_functions_fit(python):
    """No function has more than 60 lines."""
    assert [f"{file}: {long}" for file in python for long in too_long(file.tree)] == []


def test_nine_functions_of_ten_are_short(product):
    """Nine of ten functions of the product have at most 30 lines."""
    lengths = [lines for file in product for _, lines in functions(file.tree)]
    if len(lengths) < FUNCTIONS_FOR_P90:
        return
    assert statistics.quantiles(lengths, n=10)[-1] <= FUNCTION_LINES_P90_MAX


@pytest.mark.parametrize(("lines", "offends"), [(60, False), (61, True)])
def test_the_limit_is_where_it_says(lines, offends):
    """Sixty lines pass and sixty-one do not, counted with the `def` line."""
    source = "def f():\n" + "    x = 1\n" * (lines - 1)
    assert bool(too_long(ast.parse(source))) is offends
