"""The clock that nobody can set, of this very machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from counterfoil.store import uptime as module
from counterfoil.store.uptime import uptime

SAY = "from counterfoil.store.uptime import uptime; print(uptime().boot)"
LINUX = pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="the kernel names no boot")


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """Every test looks for the clock itself."""
    monkeypatch.setattr(module, "_clock", None)


def test_it_goes_on_within_one_boot():
    """Two readings of one process are comparable, and the second is not earlier."""
    first, second = uptime(), uptime()
    assert (second.since(first) or 0.0) >= 0.0
    assert second.boot == first.boot


@LINUX
def test_every_process_of_a_machine_has_the_same():
    """Another process, and a forked child, read the same clock."""
    mine = uptime()
    told = subprocess.run([sys.executable, "-c", SAY], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == mine.boot
    assert mine.seconds == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=5.0)


def test_a_wall_clock_that_steps_moves_nothing(monkeypatch):
    """The reading is the same, whatever time it is said to be."""
    before = uptime()
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert (uptime().since(before) or 0.0) < 5.0


@LINUX
def test_another_time_namespace_is_another_clock(monkeypatch, tmp_path):
    """Its offset shifts the readings, so they are not compared; nor where a later namespace took its number."""
    mine = uptime().boot
    monkeypatch.setattr(module, "_clock", None)
    (tmp_path / "offsets").write_text("monotonic 3600 0\nboottime 3600 0\n", encoding="ascii")
    monkeypatch.setattr(module, "OFFSETS", str(tmp_path / "offsets"))
    assert uptime().boot != mine


@LINUX
def test_another_boot_is_another_clock(monkeypatch, tmp_path):
    """The kernel draws its name anew."""
    mine = uptime().boot
    monkeypatch.setattr(module, "_clock", None)
    (tmp_path / "boot_id").write_text("0f9a\n", encoding="ascii")
    monkeypatch.setattr(module, "BOOT_ID", str(tmp_path / "boot_id"))
    assert uptime().boot != mine


@LINUX
def test_a_kernel_without_time_namespaces_has_one_clock_for_all(monkeypatch):
    """The boot alone names it."""
    monkeypatch.setattr(module, "NAMESPACE", "/nowhere")
    found = module.of_this_machine()
    assert found is not None
    assert found.boot == module.of_this_machine().boot


@pytest.mark.parametrize("without", ["BOOT_ID", "CLOCK_BOOTTIME"])
def test_elsewhere_each_process_has_a_clock_of_its_own(monkeypatch, without):
    """What no kernel vouches for is compared with nothing of another process."""
    if without == "BOOT_ID":
        monkeypatch.setattr(module, "BOOT_ID", "/nowhere")
    else:
        monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert module.of_this_machine() is None
    first, second = uptime(), uptime()
    assert (second.since(first) or 0.0) >= 0.0
    assert module.of_this_process().boot != first.boot


def test_a_forked_child_looks_again():
    """It may have been put into another namespace."""
    uptime()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, b"anew" if module._clock is None else b"kept")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(ours, 16) == b"anew"
    os.close(ours)
    os.close(theirs)
