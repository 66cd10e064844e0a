"""The spool: private, whole or not there, given out until taken, and never thrown away unread."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.runtime import spool as spooling
from counterfoil.runtime.spool import Spool, write_private

ROOT = Path(__file__).parents[2]
OPERATION = "op_" + "0" * 32


@pytest.fixture
def folder(tmp_path):
    """Where a spool will be."""
    return tmp_path / "receipts.db.spool"


@pytest.fixture
def spool(folder):
    """A spool of this test."""
    return Spool(folder)


@pytest.mark.parametrize("body", [None, b"", b"\x00\xff body", b"b" * 100_000])
def test_what_is_put_is_given_out_as_it_was(spool, body):
    """Record and body come back byte for byte, and no body stays none."""
    assert spool.put(OPERATION, b'{"record": 1}', body)
    ((_, operation, record, again),) = spool.waiting()
    assert (operation, record, again) == (OPERATION, b'{"record": 1}', body)


def test_it_is_given_out_until_it_is_taken(spool, folder):
    """Reading loses nothing; what the store has is gone, once, and taking it again is no error."""
    spool.put(OPERATION, b"a", None)
    spool.put(OPERATION, b"b", None)
    first, second = list(spool.waiting())
    assert len(list(spool.waiting())) == 2
    spool.taken(first[0])
    spool.taken(first[0])
    assert list(spool.waiting()) == [second]
    spool.taken(second[0])
    assert list(spool.waiting()) == []
    assert list(folder.iterdir()) == []


def test_nothing_is_made_before_it_is_needed(spool, folder):
    """A ledger that never failed leaves no folder behind."""
    assert list(spool.waiting()) == []
    assert not folder.exists()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_it_is_private(spool, folder, mask):
    """Provider bodies are read by their owner alone, whatever the process's mask."""
    old = os.umask(mask)
    try:
        spool.put(OPERATION, b"a", b"secret")
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]


UNREADABLE = {
    f"{OPERATION}.1.json": b"",
    f"{OPERATION}.2.json": b"{",
    f"{OPERATION}.3.json": b"[]",
    f"{OPERATION}.4.json": b'"text"',
    f"{OPERATION}.5.json": b'{"operation": "op_1", "record": 7, "body": null}',
    f"{OPERATION}.6.json": b'{"operation": "op_1", "record": "!", "body": null}',
    f"{OPERATION}.7.json": b'{"operation": "op_1"}',
    f"{OPERATION}.8.json": b"\xff\xfe",
    ".half.tmp": b'{"operation": "op_1", "record": "YQ==", "body": null}',
    "notes.json": b'{"operation": "op_1", "record": "YQ==", "body": null}',
}


def test_what_cannot_be_read_is_left_alone(spool, folder):
    """Damaged, half written or a stranger's: it keeps its place for a person, and hides nothing that is whole."""
    spool.put(OPERATION, b"whole", None)
    for name, content in UNREADABLE.items():
        (folder / name).write_bytes(content)
    (folder / f"{OPERATION}.9.json").mkdir()
    assert [record for _, _, record, _ in spool.waiting()] == [b"whole"]
    assert {name: (folder / name).read_bytes() for name in UNREADABLE} == UNREADABLE


def test_where_nothing_can_be_kept_it_says_so(folder):
    """No folder, or no room: the caller is told, and decides."""
    folder.write_text("in the way")
    assert Spool(folder).put(OPERATION, b"a", None) is False


@pytest.mark.parametrize("error", [OSError(28, "no space"), KeyboardInterrupt()])
def test_what_was_not_kept_leaves_nothing_behind(spool, folder, monkeypatch, error):
    """A disk that is full, or Ctrl+C: no half file, under any name; an interruption goes on."""
    spool.put(OPERATION, b"before", None)
    before = list(folder.iterdir())
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(error))
    if isinstance(error, OSError):
        assert spool.put(OPERATION, b"a", None) is False
    else:
        with pytest.raises(KeyboardInterrupt):
            spool.put(OPERATION, b"a", None)
    assert list(folder.iterdir()) == before


def test_what_was_kept_is_on_the_disk(spool, folder, monkeypatch):
    """The file is synced before it gets its name, then the name; the folder's own name too, when it is new."""
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())), real(fd)))
    spool.put(OPERATION, b"a", None)
    assert synced[0] == str(folder.parent)
    assert Path(synced[1]).suffix == ".tmp"
    assert synced[2:] == [str(folder)]


def test_there_is_an_end_of_files(spool, folder, monkeypatch):
    """A spool nobody drains is read in part, not whole."""
    monkeypatch.setattr(spooling, "FILES_MAX", 3)
    for i in range(5):
        spool.put(OPERATION, b"%d" % i, None)
    assert len(list(spool.waiting())) == 3


def test_a_private_file_is_replaced_whole(tmp_path):
    """Its readers see the old content or the new one."""
    path = tmp_path / "out.json"
    write_private(path, b"old")
    with path.open("rb") as reader:
        write_private(path, b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_kept(tmp_path, spool, folder):
    """A process that spools is killed again and again: what it was told is kept is there, whole."""
    kept = []
    for _ in range(5):
        command = [sys.executable, "-m", "tests.integration.store.child", "keep", str(folder)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            kept += [process.stdout.readline().strip() for _ in range(1 + os.urandom(1)[0] // 8)]
            process.send_signal(signal.SIGKILL)
            kept += process.stdout.read().split()
    given = {operation: (record, body) for _, operation, record, body in spool.waiting()}
    assert set(kept) <= set(given)
    assert set(given.values()) == {(b"r" * 5000, b"b" * 5000)}
    assert all(json.loads(file.read_bytes()) for file in folder.glob("op_*.json"))
