"""What SQLite does: the facts our store is built on, shown on SQLite alone and then on the store."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.store.commands import claim

from counterfoil.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12: of threads and forks

FORK_WITH_AN_OPEN_CONNECTION = """
import os, sys
parent = connect(sys.argv[1])
written, closed = os.pipe(), os.pipe()
if os.fork() == 0:
    child = connect(sys.argv[1])  # a new connection, in a process that inherited an open one
    child.execute("INSERT INTO t VALUES ('child')")
    os.write(written[1], b"x"), os.read(closed[0], 1)
    for _ in range(5):
        child.execute("INSERT INTO t VALUES ('acknowledged')")
    os._exit(0)
os.read(written[0], 1)
parent.close()  # the parent's last close, as far as it knows
os.write(closed[1], b"x"), os.wait()
"""

A_SECOND_DESCRIPTOR = """
import os, subprocess, sys
one = connect(sys.argv[1])
one.execute("INSERT INTO t VALUES ('first')")
if len(sys.argv) > 2:
    os.close(os.open(sys.argv[1], os.O_RDONLY))  # a backup, a checksum, a look at the size
other = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT * FROM t').fetchall(); db.close()"
subprocess.run([sys.executable, "-c", other, sys.argv[1]], check=True)
for _ in range(5):
    one.execute("INSERT INTO t VALUES ('acknowledged')")
os._exit(0)  # killed, say: nobody closes
"""

CONNECT = """
import sqlite3
def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL"), db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS t (x)")
    return db
"""


@pytest.fixture
def path(tmp_path):
    """A database of this test."""
    return tmp_path / "t.db"


def run(script, *arguments):
    """The script in a process of its own."""
    subprocess.run([sys.executable, "-c", CONNECT + script, *map(str, arguments)], check=True, timeout=30)


def acknowledged(path):
    """How many of the acknowledged rows stand there."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT count(*) FROM t WHERE x = 'acknowledged'").fetchone()[0]


def test_fork_with_open_connection_loses_commits(path):
    """A connection opened in a child that inherited one has no locks: the parent's close deletes its log."""
    run(FORK_WITH_AN_OPEN_CONNECTION, path)
    assert acknowledged(path) == 0


def test_second_descriptor_drops_locks(path):
    """Closing any other descriptor of the file drops the locks: another process's close deletes the log in use."""
    run(A_SECOND_DESCRIPTOR, path, "and look")
    assert acknowledged(path) == 0


def test_without_a_second_descriptor_nothing_is_lost(path):
    """The same without the look: all five are there."""
    run(A_SECOND_DESCRIPTOR, path)
    assert acknowledged(path) == 5


@pytest.mark.slow
def test_nothing_of_ours_opens_the_file_a_second_time(path):
    """Through a ledger's whole life, forks included, Python opens the file once: to make it, before it is in use."""
    command = [sys.executable, "-m", "tests.integration.store.child", "watch", str(path)]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout
    opened = [name for name in json.loads(said) if name.startswith(str(path))]
    assert [name for name in opened if name in {str(path), f"{path}-wal", f"{path}-shm"}] == [str(path)]
    assert all(".workers" in name or ".spool" in name for name in opened if name != str(path))


def test_a_second_store_in_one_process_keeps_the_firsts_locks(path):
    """Opening and closing the same file again is no second descriptor: the locks of the first are still held."""
    locks = Path("/proc/locks")
    with contextlib.closing(SqliteStore(path)) as first:
        first.write(claim())
        inode = f":{path.stat().st_ino} "
        held = [line.split(":", 1)[1] for line in locks.read_text().splitlines() if inode in line]
        with contextlib.closing(SqliteStore(path)) as second:
            second.write(claim())
        again = [line.split(":", 1)[1] for line in locks.read_text().splitlines() if inode in line]
    assert held == again != []


def test_synchronous_belongs_to_the_connection(path):
    """What one connection sets is not in the file: each must set it, and ask."""
    with contextlib.closing(sqlite3.connect(path)) as one, contextlib.closing(sqlite3.connect(path)) as other:
        one.execute("PRAGMA journal_mode = WAL")
        default = other.execute("PRAGMA synchronous").fetchone()
        one.execute("PRAGMA synchronous = NORMAL")
        assert one.execute("PRAGMA synchronous").fetchone() == (1,)
        assert other.execute("PRAGMA synchronous").fetchone() == default
        other.execute("PRAGMA synchronous = FULL")
        assert other.execute("PRAGMA synchronous").fetchone() == (2,)
        assert one.execute("PRAGMA synchronous").fetchone() == (1,)


def test_journal_mode_belongs_to_the_file(path):
    """The log, unlike it, is kept by the file for every later connection."""
    with contextlib.closing(sqlite3.connect(path)) as one:
        one.execute("PRAGMA journal_mode = WAL")
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_r56_a_reader_that_wants_to_write_is_busy_at_once(path):
    """A transaction that read before another committed can never write: its patience is not even used."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as one:
        one.execute("PRAGMA journal_mode = WAL")
        one.execute("CREATE TABLE t (x)")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as other:
            one.execute("BEGIN")
            one.execute("SELECT * FROM t").fetchall()
            other.execute("INSERT INTO t VALUES (1)")
            start = time.monotonic()
            with pytest.raises(sqlite3.OperationalError) as caught:
                one.execute("INSERT INTO t VALUES (2)")
            assert caught.value.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
            assert time.monotonic() - start < 10


def test_a_replaced_row_passes_a_delete_trigger(path):
    """REPLACE deletes without asking the trigger: append-only tables stop accidents, the chain tells of the rest."""
    with contextlib.closing(SqliteStore(path)) as store:
        first = claim()
        store.write(first)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as stranger:
            row = stranger.execute("SELECT id, kind, at, record, body, hash FROM event").fetchone()
            stranger.execute("REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?)", (*row[:3], b"{}", *row[4:]))
        assert store.load(first.id).events[0].record == b"{}"


def test_an_immediate_transaction_waits_its_turn(path):
    """Taking the write lock first, the second writer waits for the first and then sees what it wrote."""
    with contextlib.closing(SqliteStore(path)) as one, contextlib.closing(SqliteStore(path)) as other:
        first = claim("k")
        one.write(first)
        assert other.write(claim("k")).history.operation.id == first.id


def test_a_database_of_one_byte_is_an_empty_one(path):
    """SQLite begins a new database in it; we must not."""
    path.write_bytes(b"x")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
    assert path.stat().st_size > 1


def test_an_empty_database_throws_its_log_away(path):
    """A file truncated to nothing takes the log beside it down, without an error."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (x)")
        log = Path(f"{path}-wal").read_bytes()
    assert log
    path.write_bytes(b"")
    Path(f"{path}-wal").write_bytes(log)
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    assert not Path(f"{path}-wal").exists()


def test_a_posix_lock_is_not_inherited_by_a_fork(path):
    """A child does not hold what its parent locked: the kernel lets nobody but the parent keep it."""
    with path.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        pid = os.fork()
        if pid == 0:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
