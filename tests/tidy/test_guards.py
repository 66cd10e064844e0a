"""The guards of tests/conftest.py hold: loopback only, nothing skipped in CI, nothing left running."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest

SKIPS = "import pytest\n\ndef test_skipped():\n    pytest.skip('not today')\n"
LEAVES = (
    "import subprocess, sys\nfrom subprocess import PIPE\nleft = []\n\n"
    "def test_leaves():\n"
    "    said = 'print(1, flush=True); input()'\n"
    "    left.append(subprocess.Popen([sys.executable, '-c', said], stdin=PIPE, stdout=PIPE))\n"
    "    left[0].stdout.readline()\n"  # it runs under its own name: until then it has no command line
)
PASSES = "def test_passes():\n    pass\n"


def run(folder, root, source, *, ci):
    """One test module under the project's own conftest, in a process of its own."""
    shutil.copy(root / "tests" / "conftest.py", folder)
    (folder / "test_it.py").write_text(source, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "test_it.py",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | ({"CI": "true"} if ci else {})
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "ci", "exit_code", "said"),
    [
        (SKIPS, True, 1, "CI skips nothing"),
        (SKIPS, False, 0, "1 skipped"),
        (PASSES, True, 0, "1 passed"),
        (LEAVES, False, 1, "still running"),
    ],
    ids=["skipped in CI", "skipped elsewhere", "clean", "process left"],
)
def test_a_run_is_judged_by_more_than_its_tests(tmp_path, root, source, ci, exit_code, said):
    """A skip fails the run in CI, a process left behind fails it anywhere, and a clean run passes."""
    result = run(tmp_path, root, source, ci=ci)
    assert said in result.stdout
    assert result.returncode == exit_code


@pytest.mark.parametrize("address", [("192.0.2.1", 9), ("2001:db8::1", 9, 0, 0)])
def test_only_the_loopback_is_reached(address):
    """A connection to any other address is refused before a packet leaves."""
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    with socket.socket(family) as client, pytest.raises(pytest.fail.Exception, match="only the loopback"):
        client.connect(address)


def test_no_foreign_name_is_looked_up():
    """A name that may be somebody's is refused before the resolver is asked."""
    with pytest.raises(pytest.fail.Exception, match="only the loopback"):
        socket.create_connection(("example.org", 80), timeout=5)


def test_the_loopback_is_reached():
    """A listener on this machine can be talked to, by address or by name."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), timeout=5):
        pass
