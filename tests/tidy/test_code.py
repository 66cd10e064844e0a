"""The shape of the code: what each module opens with, what it may keep, what it may catch and how it waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

BLANKET: dict[str, str] = {
    "src/counterfoil/cli/parser.py:_carry_out": "a defect: shown with its place, without its text",
    "src/counterfoil/lab/bench/floors.py:load.run": "raised in the measuring thread",
    "src/counterfoil/lab/commands.py:_told": "a defect of the laboratory exits 3: 1 would blame a rule; it is printed",
    "src/counterfoil/lab/images/faults.py:_played": "an error that is not ours is what is looked for; it is reported",
    "src/counterfoil/lab/interleaving.py:Actor._carry": "what an act raises is its answer, for others to judge",
    "src/counterfoil/lab/mutants/answers.py:exception_only.sent": "a mutant; it is handed on",
    "src/counterfoil/lab/world/stage.py:Stage.start.run": "an error inside a virtual process is the world's to tell",
    "src/counterfoil/providers/function.py:FunctionProvider.asend": "silence becomes unknown, and nothing else",
    "src/counterfoil/providers/function.py:FunctionProvider.look": "a look that fails is inconclusive",
    "src/counterfoil/providers/function.py:FunctionProvider.send": "silence becomes unknown, and nothing else",
    "src/counterfoil/providers/http.py:HttpProvider._missing": "a vault's error may hold it: named by its place",
    "src/counterfoil/providers/http.py:HttpProvider._resolved": "the same; without a value nothing is sent",
    "src/counterfoil/providers/process.py:ProcessProvider._value": "the same; without a value nothing is run",
    "src/counterfoil/providers/s3.py:S3Provider._opened": "a vault's error may hold it; without keys nothing is sent",
    "src/counterfoil/providers/smtp.py:SmtpProvider._login": "a vault's error may hold it; without it nothing is sent",
    "src/counterfoil/providers/sql.py:SqlProvider._reached": "the same; without it nothing is reached",
    "src/counterfoil/runtime/drive.py:adrive": "the plan records what is known and raises it again",
    "src/counterfoil/runtime/drive.py:drive": "the plan records what is known and raises it again",
    "src/counterfoil/runtime/secrets.py:_from_call": "a vault's own message may hold what it was asked for",
    "src/counterfoil/runtime/worker.py:Worker._step": "one operation's defect does not end the sweep; it is reported",
    "src/counterfoil/store/commit.py:GroupCommit._finish": "one interruption is raised already; others wait for nobody",
    "src/counterfoil/store/postgresql.py:PostgresStore._slowly": "whatever a rule raises fails its own command alone",
    "src/counterfoil/store/sqlite.py:SqliteStore._write_batch": "the batch is rolled back and run again one by one",
}
"""Every handler of everything in the product, as `path:function`, with the reason it stands there.

The only good reasons: silence is translated into unknown, or what is known is recorded and the exception goes on.
"""

POLLING: dict[str, str] = {}
"""Every test function that may sleep, as `path:function`, with the condition it watches meanwhile."""

CHANGES = frozenset({"add", "append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"})
MUTABLE_CALLS = frozenset({"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict"})
MUTABLE_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def scoped(tree: ast.AST, scope: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every node with the dotted name of the function or class it stands in."""
    for child in ast.iter_child_nodes(tree):
        yield scope, child
        inner = f"{scope}.{child.name}".lstrip(".") if isinstance(child, SCOPES) else scope
        yield from scoped(child, inner)


def last_name(node: ast.AST | None) -> str:
    """`deque` for both `deque` and `collections.deque`, and for a subscript of either; empty for anything else."""
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def opens_well(tree: ast.Module) -> bool:
    """A docstring, and the future import wherever there is code it can matter to."""
    if not ast.get_docstring(tree):
        return False
    rest = tree.body[1:]
    first = rest[0] if rest else None
    return not rest or (isinstance(first, ast.ImportFrom) and first.module == "__future__")


def module_state(tree: ast.Module) -> Iterator[str]:
    """Module-level containers that are kept to be changed: lower-case, empty at first, or changed further down."""
    changed = set(_changed(tree))
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        called = isinstance(node.value, ast.Call) and last_name(node.value.func) in MUTABLE_CALLS
        if not called and not isinstance(node.value, MUTABLE_DISPLAYS):
            continue
        name = last_name(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if name != "__all__" and (name in changed or not name.isupper() or _empty(node.value)):
            yield name


def _empty(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return not value.args and not value.keywords
    return not (getattr(value, "elts", None) or getattr(value, "keys", None) or hasattr(value, "generators"))


def _changed(tree: ast.AST) -> Iterator[str]:
    """Names that are stored into, deleted from, or told to change."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            yield last_name(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            yield last_name(node.func.value)


def blanket_handlers(tree: ast.AST) -> Iterator[str]:
    """The functions that catch everything and may keep it: bare, Exception, BaseException, or suppress of either.

    A handler that cleans up and ends in a bare `raise` keeps nothing.
    """
    for scope, node in scoped(tree):
        caught: list[ast.expr | None] = []
        if isinstance(node, ast.ExceptHandler) and not _raises_again(node):
            caught = list(node.type.elts) if isinstance(node.type, ast.Tuple) else [node.type]
        elif isinstance(node, ast.Call) and last_name(node.func) == "suppress":
            caught = list(node.args)
        if any(kind is None or last_name(kind) in {"Exception", "BaseException"} for kind in caught):
            yield scope


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    leaves = any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in ast.walk(handler))
    return isinstance(last, ast.Raise) and last.exc is None and not leaves


def sleeps(tree: ast.AST) -> Iterator[str]:
    """The functions that wait by the clock; `asyncio.sleep(0)` only yields."""
    for scope, node in scoped(tree):
        if isinstance(node, ast.Call) and last_name(node.func) == "sleep":
            yields = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            if not yields:
                yield scope


def test_every_module_opens_well(python):
    """Each module says what it is for and postpones its annotations."""
    assert [file for file in python if not opens_well(file.tree)] == []


def test_no_module_keeps_state(product):
    """A container at module level is a table: a constant's name, filled where it stands, never changed."""
    assert [f"{file}: {name}" for file in product for name in module_state(file.tree)] == []


def test_every_blanket_handler_is_listed(product):
    """Whoever catches everything and may keep it is on the list with a reason, and the list names nobody else."""
    found = {f"{file}:{scope}" for file in product for scope in blanket_handlers(file.tree)}
    assert found == set(BLANKET)
    assert all(BLANKET.values())


def test_no_test_waits_by_the_clock(tests):
    """A test watches a condition; whoever sleeps between two looks at it is on the list."""
    found = {f"{file}:{scope}" for file in tests for scope in sleeps(file.tree)}
    assert found == set(POLLING)
    assert all(POLLING.values())


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n try: g()\n except: pass",
        "def f():\n try: g()\n except Exception: pass",
        "def f():\n try: g()\n except (OSError, builtins.BaseException): pass",
        "def f():\n with contextlib.suppress(Exception): g()",
    ],
)
def test_each_blanket_form_is_seen(source):
    """Bare, named, in a tuple or suppressed: the handler is attributed to its function."""
    assert list(blanket_handlers(ast.parse(source))) == ["f"]


@pytest.mark.parametrize(
    "source",
    [
        "A = []",
        "A: dict[str, int] = {}",
        "A = collections.deque()",
        "a = {1: 2}",
        "A = {1: 2}\ndef f(): A[3] = 4",
        "A = [1]\ndef f(): A.append(2)",
        "A = {1: 2}\ndef f(): del A[1]",
    ],
)
def test_each_form_of_state_is_seen(source):
    """Empty, lower-case or changed further down: each is a container kept to be changed."""
    assert [name.upper() for name in module_state(ast.parse(source))] == ["A"]


@pytest.mark.parametrize("line", ["A = {1: 2}", "A = (1,)", "A = {x: 1 for x in y}", "__all__ = ['f']", "A = set(B)"])
def test_tables_pass(line):
    """What is filled where it stands and never changed is no state."""
    assert list(module_state(ast.parse(line))) == []


@pytest.mark.parametrize(
    ("body", "kept"),
    [("close(); raise", False), ("return", True), ("raise X from None", True), ("if a: return\n  raise", True)],
)
def test_a_handler_that_raises_again_keeps_nothing(body, kept):
    """Only a bare raise at the end, with no way round it, lets the exception go on."""
    source = f"def f():\n try: g()\n except BaseException:\n  {body}"
    assert bool(list(blanket_handlers(ast.parse(source)))) is kept


def test_a_sleep_is_seen_and_a_yield_is_not():
    """Both clocks count; asyncio.sleep(0) does not."""
    source = "def f(): time.sleep(1)\nasync def g(): await asyncio.sleep(0.1)\nasync def h(): await asyncio.sleep(0)"
    assert list(sleeps(ast.parse(source))) == ["f", "g"]


@pytest.mark.parametrize("source", ["import os", '"""Doc."""\nimport os', "from __future__ import annotations"])
def test_a_bad_opening_is_seen(source):
    """No docstring, or code without the future import, is found."""
    assert not opens_well(ast.parse(source))
