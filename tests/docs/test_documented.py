"""Every documented command and example is run: a page that lies fails here."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")])
_CONSOLE_CODES = {"worker": {0, 1}, "attempt": {2}, "show": {0, 1}, "list": {0, 1}}
"""Verbs that answer with something else than 0 where the page has an unresolved operation, or shows a refusal."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page, with their languages."""
    return [(m.group(1), m.group(2)) for m in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


class Page:
    """A page that is read by running it: one namespace, one folder."""

    def __init__(self, folder: Path, given: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page", **(given or {})}
        self.printed = ""
        self.source = ""

    def python(self, text: str) -> None:
        """Run a Python block in the folder."""
        out = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out):
            exec(compile(text, "page", "exec"), self.names)  # noqa: S102 - the documentation itself
        self.printed = out.getvalue()

    def console(self, text: str) -> None:
        """Run each `$` line with the installed command and the page's own variables."""
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
        environment |= {k: v for k, v in self.names.items() if k.isupper() and isinstance(v, str)}
        for line in text.splitlines():
            if not line.startswith("$ "):
                continue
            words = [w.replace("$ID", environment.get("ID", "")) for w in shlex.split(line[2:])]
            run = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60)
            allowed = _CONSOLE_CODES.get(words[1], {0})
            assert run.returncode in allowed, (line, run.returncode, run.stdout, run.stderr)


def test_the_tutorial_runs_as_printed(tmp_path: Path) -> None:
    """Every block of the tutorial runs, prints what the page says, and its commands work on its store."""
    page = Page(tmp_path)
    (tmp_path / "tutorial.py").write_text(_module(ROOT / "docs/tutorial.md"), encoding="utf-8")
    for language, text in blocks(ROOT / "docs/tutorial.md"):
        if language == "python":
            page.python(text)
        elif language == "text":
            assert page.printed == text
        elif language == "console":
            page.console(text)
    page.names["ledger"].close()


def _module(page: Path) -> str:
    """The tutorial's first two sections as the module that `--actions tutorial:ledger` names."""
    python = [text for language, text in blocks(page) if language == "python"]
    return python[0] + python[1].split("receipt = refund")[0]


def test_the_how_to_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of the how-to pages declares what it says, and their commands work."""
    monkeypatch.setenv("CALENDAR_AUTH", "Basic ZGVtbzpkZW1v")
    monkeypatch.setenv("LAB_AUTH", "Bearer lab-secret")
    tutorial = Page(tmp_path)
    (tmp_path / "tutorial.py").write_text(_module(ROOT / "docs/tutorial.md"), encoding="utf-8")
    python = [text for language, text in blocks(ROOT / "docs/tutorial.md") if language == "python"]
    for text in python[:2]:
        tutorial.python(text)
    tutorial.python("receipt = refund('order-3001', 100, lose_the_answer=True)")
    receipt = tutorial.names["receipt"]
    page = Page(tmp_path, {**tutorial.names, "ID": receipt.id, "notify": lambda order_id, trace_id: {}})
    page.names["notify"].__name__ = "notify"
    for language, text in blocks(ROOT / "docs/how-to.md"):
        if language == "python":
            page.python(text)
        elif language == "console":
            page.console(text)
        elif language == "yaml":
            (tmp_path / "appointments.yaml").write_text(text, encoding="utf-8")
            from counterfoil.runtime import actions

            actions.load(tmp_path / "appointments.yaml").close()
    assert (tmp_path / "receipt.json").stat().st_mode & 0o777 == 0o600
    page.names["ledger"].close()


def test_the_readme_guards_a_function_as_printed(tmp_path: Path) -> None:
    """The README's five lines run as they stand, with the reader's own provider call."""
    (source,) = [text for language, text in blocks(ROOT / "README.md") if language == "python"]

    def send_refund(order_id: str, amount: int, *, idempotency_key: str) -> dict[str, Any]:
        return {"id": f"re_{order_id}", "amount": amount, "key": idempotency_key}

    page = Page(tmp_path, {"send_refund": send_refund})
    page.python(source)
    assert page.printed.split()[0] == "succeeded"
    assert page.names["refund_id"] == "re_order-1042"
    page.names["ledger"].close()


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that exists."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_verb_and_exit_code_is_documented() -> None:
    """The reference names every verb and every exit code the command line has."""
    from counterfoil.cli import exits, parser

    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    assert {name for name, _ in parser.VERBS} <= words
    assert {str(code) for code, _ in exits.EXITS} <= words


def test_everything_that_may_be_declared_is_documented() -> None:
    """The reference names every declaration an action takes."""
    from counterfoil.runtime.guarded import Declared

    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    assert set(Declared.__struct_fields__) <= set(re.findall(r"\w+", text))
