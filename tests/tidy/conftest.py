"""The tree as the tidy tests see it: every file of ours, read and parsed once."""

from __future__ import annotations

import ast
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "scripts", "bench", "examples", "docs", ".ci")
CODE = frozenset({"", ".css", ".html", ".js", ".py", ".sh", ".sql"})
DATA = frozenset({".in", ".jsonl", ".toml", ".txt", ".yaml", ".yml"})
FILE_BYTES_MAX = 1_000_000  # a larger text file is data, and its words are not ours


class SourceFile:
    """One text file of the project, with its path as the project says it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.name)


def _ours(path: Path) -> bool:
    inside = path.relative_to(ROOT).parts
    if any(part == "__pycache__" or part.endswith(".egg-info") for part in inside):
        return False
    return path.is_file() and path.suffix in CODE | DATA | {".md"} and path.stat().st_size <= FILE_BYTES_MAX


@pytest.fixture(scope="session")
def files() -> list[SourceFile]:
    """Every text file of ours; requirement files, licence text, environments and caches are not."""
    top = [path for path in ROOT.iterdir() if path.suffix in {".md", ".toml"} or path.name == "Makefile"]
    below = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return [SourceFile(path) for path in sorted(top + below) if _ours(path)]


@pytest.fixture(scope="session")
def python(files: list[SourceFile]) -> list[SourceFile]:
    """Every Python module of ours."""
    return [file for file in files if file.path.suffix == ".py"]


@pytest.fixture(scope="session")
def product(python: list[SourceFile]) -> list[SourceFile]:
    """Every module that ships."""
    return [file for file in python if file.name.startswith("src/")]


@pytest.fixture(scope="session")
def tests(python: list[SourceFile]) -> list[SourceFile]:
    """Every module under tests/."""
    return [file for file in python if file.name.startswith("tests/")]


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT
