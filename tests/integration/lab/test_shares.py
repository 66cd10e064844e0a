"""Processes that share a run: they outlive nobody, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.lab.contract_copy import write_copy
from counterfoil.lab.deployment import action, write_actions
from counterfoil.lab.kill_window import is_made
from counterfoil.lab.shares import told_by, told_by_all
from counterfoil.lab.watch import reached

SECONDS = 60
SHARE = """
import json, os, threading
from counterfoil.lab.world import run
with run.folder() as folder:
    print(json.dumps({"pid": os.getpid(), "folder": str(folder)}), flush=True)
    threading.Event().wait()
"""
"""A share of a run that never ends, with a folder in memory as each virtual world has one."""
PARENT = """
import json
from counterfoil.lab.shares import told_by
for line in told_by(None, "share"):
    print(json.dumps(line), flush=True)
"""
STARTS_A_WORKER = """
import sys, threading
from counterfoil.lab.lifetime import start
print(start(("worker", "--actions", sys.argv[1], "--interval", "0.1"), mutant=None).pid, flush=True)
threading.Event().wait()
"""


def gone(pid):
    """Whether a process has ended; an orphan may wait for ever for somebody to ask how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.fixture(autouse=True)
def _importable(tmp_path, monkeypatch):
    """The share is a module like any other."""
    (tmp_path / "share.py").write_text(SHARE)
    (tmp_path / "shout.py").write_text("import json, sys\nprint(json.dumps({'said': sys.argv[1]}))")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))


def told_of(line):
    """Whose it is: the process and its folder."""
    return line["pid"], Path(line["folder"])


def test_a_share_tidies_up_when_nobody_reads_it_any_more():
    """Whoever stops reading ends it, and its folder in memory goes with it."""
    lines = told_by(None, "share")
    pid, folder = told_of(next(lines))
    assert folder.is_dir()
    lines.close()
    assert gone(pid)
    assert not folder.exists()


def test_a_share_ends_with_its_parent_however_that_ends():
    """Killed in the middle, the command leaves no process and no folder behind."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        pid, folder = told_of(json.loads(parent.stdout.readline()))
        assert not gone(pid)
        parent.kill()
    assert reached(lambda: gone(pid) and not folder.exists(), SECONDS)


def test_so_many_shares_run_at_once():
    """Each is told of, whatever was waited for; one that did not end says nothing of the others."""
    said = [line["said"] for line in told_by_all(None, "shout", [["a"], ["b"], ["c"]], most=1)]
    assert said == ["a", "b", "c"]
    assert sorted(line["said"] for line in told_by_all(None, "shout", [["a"], ["b"]])) == ["a", "b"]


def test_a_real_run_ends_with_the_loop_that_kills_it(tmp_path):
    """`counterfoil run` and `counterfoil worker` would go on in an empty house: their pipe ends with their parent."""
    write_copy(tmp_path, "lab.key", {})
    write_actions(tmp_path / "actions.yaml", {"refund": action("lab.key", 1)}, store="receipts.db")
    argv = [sys.executable, "-c", STARTS_A_WORKER, tmp_path / "actions.yaml"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent, contextlib.ExitStack() as house:
        worker = int(parent.stdout.readline())
        house.callback(lambda: gone(worker) or os.kill(worker, signal.SIGKILL))
        assert reached(lambda: is_made(tmp_path / "receipts.db"), SECONDS)
        assert not gone(worker)
        parent.kill()
        assert reached(lambda: gone(worker), SECONDS)
