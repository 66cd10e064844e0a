"""Change one thing in a module of domain or plans and see whether a test notices; over and over.

``python scripts/mutate.py --mutations 300 --seed 1 --seconds 3600`` draws places at which one operator, constant,
branch, returned value or statement can be another, writes each change into a copy of the source, and runs the tests
that matter until one fails: those of the module's own name, those that name the module, then all of ``tests/unit``. A
change that no test notices survives. It is either equivalent, and ``scripts/equivalent.txt`` says why,
or a test is missing. The last line printed is one JSON object.

Exit codes: 0 every change was noticed or is known to be equivalent; 1 one survived; 2 the tests fail without any.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("domain", "plans")
EQUIVALENT = ROOT / "scripts" / "equivalent.txt"
TESTS = ("tests/unit", "tests/property")
RUN_SECONDS_MAX = 240.0
"""A change after which a test does not end was noticed."""

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that can be another."""

    module: str
    """Below the package: `domain/retry`."""
    place: str
    """The function it stands in, with its class; empty at the top."""
    before: str
    after: str
    line: int
    number: int
    """Which of its module's changes, in the order they are found."""

    def named(self) -> str:
        """The same wherever it moves to: how it is known to be equivalent."""
        return f"{self.module} {self.place}: {self.before} -> {self.after}"


class Mutator(ast.NodeVisitor):
    """Walks a module in its order, lists what can be changed, and changes one of it.

    Args:
        module: as `Change.module`.
        source: its text.
        number: which change is made; None: none of them.
    """

    def __init__(self, module: str, source: str, number: int | None = None) -> None:
        self.changes: list[Change] = []
        self._module, self._source, self._number = module, source.splitlines(), number
        self._place: list[str] = []
        self._returns_bool = False

    def _may(self, node: ast.AST, after: str, before: str = "") -> bool:
        """Note one change and say whether it is the one to make."""
        place, line = ".".join(self._place), getattr(node, "lineno", 0)
        change = Change(
            module=self._module, place=place, before=before or shown(node), after=after, line=line,
            number=len(self.changes),
        )  # fmt: skip
        self.changes.append(change)
        return self._number == len(self.changes) - 1

    # -- what is walked ------------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Of a class only its body: its options are declarations."""
        self._within(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Of a function only its body and its defaults: what it is annotated with changes nothing."""
        outer, self._returns_bool = self._returns_bool, isinstance(node.returns, ast.Name) and node.returns.id == "bool"
        self._within(node.name, node.body)
        self._returns_bool = outer

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Of an annotated name only its value."""
        if node.value is not None:
            self.visit(node.value)

    def _within(self, name: str, body: list[ast.stmt]) -> None:
        self._place.append(name)
        self._statements(body)
        self._place.pop()

    def _statements(self, body: list[ast.stmt]) -> None:
        for at, statement in enumerate(body):
            if is_silent(statement):
                continue
            if can_be_dropped(statement) and self._may(statement, "pass"):
                body[at] = ast.copy_location(ast.Pass(), statement)
                continue
            self.visit(statement)

    def generic_visit(self, node: ast.AST) -> None:
        """Statements may be dropped, wherever they stand."""
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self._statements(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(value, ast.AST):
                self.visit(value)

    # -- what can be changed -------------------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        """One comparison is another."""
        for at, op in enumerate(node.ops):
            other = COMPARED[type(op)]()
            after = ast.Compare(
                left=node.left, ops=[*node.ops[:at], other, *node.ops[at + 1 :]], comparators=node.comparators
            )
            if self._may(node, shown(after)):
                node.ops[at] = other
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`and` is `or`, and the other way round."""
        other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        if self._may(node, shown(ast.BoolOp(op=other, values=node.values))):
            node.op = other
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """A `not` is gone."""
        if isinstance(node.op, ast.Not) and self._may(node, f"bool({shown(node.operand)})"):
            node.operand = ast.UnaryOp(op=ast.Not(), operand=node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """One operator is another."""
        other = COUNTED.get(type(node.op))
        able = other is not None and not is_text(node.left) and not is_text(node.right)
        if able and other and self._may(node, shown(ast.BinOp(left=node.left, op=other(), right=node.right))):
            node.op = other()
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A number is the next one, true is false."""
        if isinstance(node.value, bool):
            other: object = not node.value
        elif isinstance(node.value, int | float):
            other = node.value + 1
        else:
            return
        where = self._source[node.lineno - 1].strip()  # a number alone could be any
        if self._may(node, repr(other), f"{node.value!r} in `{where}`"):
            node.value = other  # type: ignore[assignment]

    def visit_If(self, node: ast.If) -> None:
        """A branch is always taken, or never."""
        if shown(node.test) == "TYPE_CHECKING":
            return
        for word in ("True", "False"):
            if self._may(node.test, f"if {word}", f"if {shown(node.test)}"):
                node.test = ast.copy_location(ast.Constant(value=word == "True"), node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The other of two values."""
        if self._may(node, shown(ast.IfExp(test=node.test, body=node.orelse, orelse=node.body))):
            node.body, node.orelse = node.orelse, node.body
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Nothing is returned, or always the same truth."""
        if node.value is None or isinstance(node.value, ast.Constant):
            return self.generic_visit(node)
        for other in ("True", "False") if self._returns_bool else ("None",):
            if self._may(node, f"return {other}"):
                node.value = ast.copy_location(ast.Constant(value=ast.literal_eval(other)), node.value)
        return self.generic_visit(node)


def shown(node: ast.AST) -> str:
    """The source of a node, on one line."""
    return " ".join(ast.unparse(node).split())


def is_text(node: ast.AST) -> bool:
    """A text, to which only a text can be added."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def is_silent(statement: ast.stmt) -> bool:
    """What does nothing when it runs: a docstring, an import, the proof that a match is total."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if not isinstance(statement, ast.Expr):
        return False
    return isinstance(statement.value, ast.Constant) or shown(statement).startswith("assert_never(")


def can_be_dropped(statement: ast.stmt) -> bool:
    """A call for its effect, a change of what is kept, or a refusal."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Attribute) for target in statement.targets)
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return is_call or isinstance(statement, ast.AugAssign | ast.Raise | ast.Continue | ast.Break)


def changes_of(path: Path, module: str) -> list[Change]:
    """Everything that can be changed in one module."""
    source = path.read_text("utf-8")
    mutator = Mutator(module, source)
    mutator.visit(ast.parse(source))
    return mutator.changes


def changed(path: Path, change: Change) -> str:
    """The module's source with one change."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    Mutator(change.module, source, change.number).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


# -- running -----------------------------------------------------------------------------------------------------------


def modules() -> dict[str, Path]:
    """Every module that is changed, by its name below the package."""
    source = ROOT / "src" / "counterfoil"
    paths = [path for package in PACKAGES for path in sorted((source / package).glob("*.py"))]
    return {path.relative_to(source).with_suffix("").as_posix(): path for path in paths}


def that_matter(module: str) -> Iterator[list[str]]:
    """Tests to run one after the other: those of its own name, those that name it, and then all of the units."""
    package, _, name = module.partition("/")
    own = [f"tests/unit/test_{name}.py"] if (ROOT / f"tests/unit/test_{name}.py").exists() else []
    if own:
        yield own
    naming = re.compile(rf"counterfoil\.{package}\.{name}\b|from counterfoil\.{package} import [^\n]*\b{name}\b")
    files = [path for folder in TESTS for path in sorted((ROOT / folder).glob("test_*.py"))]
    named = [path.relative_to(ROOT).as_posix() for path in files if naming.search(path.read_text("utf-8"))]
    if set(named) - set(own):
        yield [name for name in named if name not in own]
    yield ["tests/unit"]


def is_noticed(copy: Path, change: Change) -> bool:
    """Write one change into a copy of the source and say whether a test fails; the copy is as it was afterwards."""
    place = copy / "counterfoil" / f"{change.module}.py"
    original = ROOT / "src" / "counterfoil" / f"{change.module}.py"
    place.write_text(changed(original, change), encoding="utf-8")
    try:
        return any(fails(copy, tests) for tests in that_matter(change.module))
    finally:
        shutil.copy(original, place)


def fails(copy: Path, tests: Sequence[str]) -> bool:
    """Run tests against a copy of the source, up to the first that fails."""
    argv = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-o", f"cache_dir={copy}/.cache"]
    argv += ["-p", "no:randomly"]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(  # noqa: S603 - our own tests
            [*argv, *tests], cwd=ROOT, env=environment, capture_output=True, timeout=RUN_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return run.returncode != 0


def run(drawn: Sequence[Change], seconds: float, processes: int) -> list[tuple[Change, bool]]:
    """Try one change after the other, as many at once as there are copies, until the time is over."""
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="counterfoil-mutate-") as top:
        copies: Queue[Path] = Queue()
        for number in range(processes):
            shutil.copytree(ROOT / "src", Path(top) / str(number), ignore=shutil.ignore_patterns("__pycache__"))
            copies.put(Path(top) / str(number))

        def tried(change: Change) -> tuple[Change, bool] | None:
            if time.monotonic() > until:
                return None
            copy = copies.get()
            try:
                noticed = is_noticed(copy, change)
            finally:
                copies.put(copy)
            print(f"  {'noticed' if noticed else 'SURVIVED'}  {change.named()[:150]}", file=sys.stderr, flush=True)
            return change, noticed

        if fails(Path(top) / "0", ["tests/unit"]):
            print("the unit tests fail without any change", file=sys.stderr)
            raise SystemExit(2)
        with ThreadPoolExecutor(max_workers=processes) as pool:
            return [one for one in pool.map(tried, drawn) if one is not None]


def known() -> set[str]:
    """The changes that are known to be equivalent, each with its reason on the line after it."""
    return {line for line in EQUIVALENT.read_text("utf-8").splitlines() if line and not line.startswith(("#", " "))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, try, and tell what survived."""
    parser = argparse.ArgumentParser(prog="mutate.py", description=__doc__)
    parser.add_argument("--mutations", type=int, default=100, help="how many places are drawn (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="draws them (default 1)")
    parser.add_argument("--seconds", type=float, default=3_600.0, help="no other is begun after so long (default 3600)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--only", default="", help="modules whose name begins so, e.g. domain/retry")
    asked = parser.parse_args(arguments)
    started = time.monotonic()
    listed = [
        change for name, path in modules().items() if name.startswith(asked.only) for change in changes_of(path, name)
    ]
    random.Random(asked.seed).shuffle(listed)  # noqa: S311 - a sample is no secret
    tried = run(listed[: asked.mutations], asked.seconds, asked.processes)
    equivalent = known()
    survivors = [change for change, noticed in tried if not noticed and change.named() not in equivalent]
    told = {
        "seed": asked.seed, "places": len(listed), "mutations": len(tried),
        "noticed": sum(noticed for _, noticed in tried),
        "equivalent": sum(not noticed for _, noticed in tried) - len(survivors),
        "survivors": [{"named": change.named(), **asdict(change)} for change in survivors],
        "seconds": round(time.monotonic() - started, 1), "ok": not survivors,
    }  # fmt: skip
    print(json.dumps(told))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
