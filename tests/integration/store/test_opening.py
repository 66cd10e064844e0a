"""What is refused before one receipt is entrusted to it, and what is put right at once."""

from __future__ import annotations

import contextlib
import importlib.resources
import os
import shutil
import socket
import sqlite3
import stat
import threading

import pytest
from tests.integration.store.commands import claim, note

from counterfoil.domain.command import Amend, Amended, Claimed
from counterfoil.domain.errors import StoreBusy, StoreFull, StoreTooNew, StoreUnsafe
from counterfoil.store import opening
from counterfoil.store.sqlite import SqliteStore


def written(path, count=20):
    """A healthy file that was closed, and the ids in it."""
    store = SqliteStore(path)
    claims = [claim(body=b"s" * 3000) for _ in range(count)]
    for each in claims:
        store.write(each)
    store.close()
    return [each.id for each in claims]


def refused(path, problem, error=StoreUnsafe):
    """Opening fails with words that name the file, and leaves what stood there as it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(error, match=problem) as caught:
        SqliteStore(path)
    assert str(path) in str(caught.value) or str(path.resolve()) in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


# -- what stands where the file should ---------------------------------------------------------------------------------


def test_a_missing_folder_is_refused(tmp_path):
    """Folders are not made: a mistyped path is not a new book."""
    refused(tmp_path / "no" / "receipts.db", "does not exist")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_refused(tmp_path):
    """A folder is no file."""
    refused(tmp_path, "not a regular file")


def test_a_socket_and_a_pipe_are_refused(tmp_path):
    """Neither is opened, so neither is waited for."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        for name in ("pipe", "s"):
            with pytest.raises(StoreUnsafe, match="not a regular file"):
                SqliteStore(tmp_path / name)


@pytest.mark.parametrize("content", [b"x", b"no database " * 400, b"SQLite format 3\0" + b"\xff" * 5000])
def test_garbage_is_refused(path, content):
    """A file that is no database is left alone."""
    path.write_bytes(content)
    refused(path, "no usable receipts file|truncated")


def test_another_programs_database_is_refused(path):
    """Tables without our mark: not a byte is written to them."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
    refused(path, "another program's")


def test_another_programs_empty_database_is_refused(path):
    """A foreign mark without any table is foreign too."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 7")
        db.execute("PRAGMA user_version = 3")
    refused(path, "another program's")


def test_a_mark_without_our_tables_is_refused(path):
    """A file that claims to be ours and has none of our tables is no book."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute(f"PRAGMA application_id = {opening.APPLICATION_ID}")
        db.execute("PRAGMA user_version = 1")
    with pytest.raises(StoreUnsafe, match="no such table"):
        SqliteStore(path)


def test_an_empty_file_is_taken(path):
    """A file somebody made beforehand, with nothing in it, becomes a book."""
    path.touch()
    store = SqliteStore(path)
    assert isinstance(store.write(claim()), Claimed)
    store.close()


def test_a_file_that_vanished_is_not_made_anew(path):
    """Connecting makes nothing: an empty file in its place would be a book without its receipts."""
    with pytest.raises(StoreFull):
        opening.connect(path, writes=True)
    assert not path.exists()


@pytest.mark.parametrize("kept", [1, 50, 100, 511, 512, 1000, 4095, 4096, 8192, 20_000, -4096, -1])
def test_a_truncated_file_is_refused(path, kept):
    """However much of it is left, a file shorter than it says has lost receipts."""
    written(path)
    size = path.stat().st_size
    os.truncate(path, kept if kept > 0 else size + kept)
    with pytest.raises(StoreUnsafe):
        SqliteStore(path)


def test_an_empty_file_beside_its_log_is_refused(path, tmp_path):
    """SQLite would throw the log away, and every receipt in it."""
    store = SqliteStore(path)
    store.write(claim())
    copy = tmp_path / "copy.db"
    shutil.copy(tmp_path / "receipts.db-wal", tmp_path / "copy.db-wal")
    copy.touch()
    with pytest.raises(StoreUnsafe, match="truncated"):
        SqliteStore(copy)
    assert (tmp_path / "copy.db-wal").stat().st_size > 0
    # The copying closed a descriptor of a file this process has open: its locks are gone, so it is not written again.
    store.close()


def test_a_second_name_is_refused(path, tmp_path):
    """Under a hard link SQLite would look for another log, and miss what stands in the first."""
    written(path)
    os.link(path, tmp_path / "other.db")
    with pytest.raises(StoreUnsafe, match="hard link"):
        SqliteStore(tmp_path / "other.db")


def test_a_link_leads_to_the_file_itself(path, tmp_path):
    """Through a symbolic link the same book is opened, its log beside the file and not beside the link."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = folder / "link.db"
    link.symlink_to(path)
    with contextlib.closing(SqliteStore(path)) as direct:
        many = [claim(body=b"s" * 4000) for _ in range(40)]  # more pages in the log than in the file
        for each in many:
            direct.write(each)
        with contextlib.closing(SqliteStore(link)) as linked:
            assert linked.path == path
            linked.write(note(many[0].id, "through the link"))
            assert len(direct.load(many[0].id).events) == 2
    assert [p.name for p in folder.iterdir()] == ["link.db"]


def test_a_link_to_nothing_yet_makes_the_file_it_names(path, tmp_path):
    """Whoever prepared the link named the place."""
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with contextlib.closing(SqliteStore(link)) as store:
        assert isinstance(store.write(claim()), Claimed)
    assert path.is_file()


def test_links_in_a_circle_are_refused(tmp_path):
    """A path without an end is an error of ours, not of the interpreter's."""
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(StoreUnsafe):
        SqliteStore(tmp_path / "a")


@pytest.mark.parametrize("name", ["100%.db", "a b.db", "what?.db", "a#b.db", "ä\u0301.db", "file:x.db", ":memory:"])
def test_any_name_is_a_name(tmp_path, name):
    """No character of a path means anything to us."""
    with contextlib.closing(SqliteStore(tmp_path / name)) as store:
        store.write(claim())
    assert (tmp_path / name).is_file()
    assert {p.name for p in tmp_path.iterdir()} == {name}


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_refused(path, monkeypatch, kind):
    """Where locks cannot be trusted nothing is entrusted, not even an empty file."""
    monkeypatch.setattr(opening, "filesystem", lambda folder: kind)
    refused(path, kind)
    assert not path.exists()


def test_a_file_system_is_told_by_the_nearest_mount(tmp_path):
    """The innermost mount point that holds a folder names its type."""
    assert opening.filesystem(type(tmp_path)("/proc/self")) == "proc"
    assert opening.filesystem(tmp_path) not in ("", "proc")


# -- what is put right -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_file_is_private(path, mask):
    """Whatever the process's mask: file, log and index belong to their owner alone."""
    old = os.umask(mask)
    try:
        store = SqliteStore(path)
        store.write(claim())
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
        store.close()
    finally:
        os.umask(old)
    assert set(modes.values()) == {0o600}
    assert set(modes) == {"receipts.db", "receipts.db-wal", "receipts.db-shm"}


def test_a_file_that_others_may_read_is_made_private(path, tmp_path):
    """The file, and the log and index another process left beside it."""
    first = SqliteStore(path)
    first.write(claim())
    for each in tmp_path.iterdir():
        each.chmod(0o664)
    second = SqliteStore(path)
    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}
    first.close()
    second.close()


# -- settings ----------------------------------------------------------------------------------------------------------


def test_r57_every_connection_syncs_fully(open_sqlite):
    """Writing and reading connections, the first and those opened again after a fork: FULL, with the log."""
    store = open_sqlite()
    seen = []
    for _ in range(2):
        first = claim()
        store.write(first)
        store.load(first.id)
        seen += [
            [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode", "fullfsync")]
            for db in (store._db, store._reader)
        ]
        store.before_fork()  # what a fork does to the connections
        store.after_in_parent()
    assert seen == [[2, "wal", 1]] * 4


class Switching(sqlite3.Connection):
    """A new file that another process is just switching to its log."""

    busy = 2

    def execute(self, statement, *parameters):
        if "journal_mode = WAL" in statement and self.busy:
            self.busy -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(statement, *parameters)


def test_a_file_that_another_process_switches_is_waited_for(path):
    """SQLite answers BUSY at once there, whatever the time-out: it is asked again instead of refused."""
    with contextlib.closing(sqlite3.connect(path, factory=Switching)) as db:
        assert opening._logged_ahead(db) == "wal"
        assert db.busy == 0


class Deaf(sqlite3.Connection):
    """A database that takes a setting and does not keep it."""

    ignored = ""

    def execute(self, statement, *parameters):
        if self.ignored and self.ignored in statement:
            statement = statement.split("=")[0].replace("synchronous", "cache_size")
        return super().execute(statement, *parameters)


@pytest.mark.parametrize(("ignored", "problem"), [("synchronous = ", "FULL"), ("journal_mode = ", "write-ahead")])
def test_r57_a_setting_that_is_not_kept_is_refused(path, monkeypatch, ignored, problem):
    """What durability rests on is asserted, not hoped for."""
    real = sqlite3.connect

    def connect(*positional, **named):
        db = real(*positional, factory=Deaf, **named)
        db.executescript("PRAGMA synchronous = NORMAL")
        return db

    monkeypatch.setattr(Deaf, "ignored", ignored)
    monkeypatch.setattr(opening.sqlite3, "connect", connect)
    with pytest.raises(StoreUnsafe, match=problem):
        SqliteStore(path)


# -- schema ------------------------------------------------------------------------------------------------------------


def test_a_file_of_newer_code_is_refused(path):
    """Older code reads nothing of it, writes nothing, and says which is which."""
    written(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 7")
    refused(path, "schema 7 is newer than this version's 1", StoreTooNew)


def test_a_file_of_older_code_is_migrated_whole_or_not_at_all(path, tmp_path, monkeypatch):
    """The next version's step is applied once, in one transaction; a step that fails leaves the old file."""
    ids = written(path)
    steps = tmp_path / "steps"
    steps.mkdir()
    shutil.copy(importlib.resources.files("counterfoil.store.migrations") / "0001_receipts.sql", steps)
    (steps / "0002_good.sql").write_text("CREATE TABLE more (x TEXT) STRICT;\nINSERT INTO more VALUES ('a; b');\n")
    (steps / "0002_bad.sql").write_text("CREATE TABLE more (x TEXT) STRICT;\nINSERT INTO nowhere VALUES (1);\n")
    monkeypatch.setattr(importlib.resources, "files", lambda package: steps)
    for step, version in (("0002_bad.sql", 1), ("0002_good.sql", 2), ("0002_good.sql", 2)):
        with contextlib.closing(opening.connect(path, writes=True)) as db:
            if version == 1:
                with pytest.raises(StoreUnsafe, match="nowhere"):
                    opening.migrate(db, path, ("0001_receipts.sql", step))
            else:
                opening.migrate(db, path, ("0001_receipts.sql", step))
            assert db.execute("PRAGMA user_version").fetchone()[0] == version
            tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE name = 'more'")]
            assert tables == (["more"] if version == 2 else [])
            assert db.execute("SELECT count(*) FROM operation").fetchone()[0] == len(ids)


def test_a_file_that_is_made_by_many_at_once_is_made_once(path):
    """Sixteen threads open a file that is not there: each gets the same book, none thinks it foreign or truncated."""
    barrier = threading.Barrier(16)
    results = []

    def run():
        barrier.wait()
        try:
            with contextlib.closing(SqliteStore(path)) as store:
                results.append(type(store.write(claim())).__name__)
        except Exception as error:  # noqa: BLE001 - an answer like another
            results.append(repr(error))

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["Claimed"] * 16
    with contextlib.closing(SqliteStore(path)) as store:
        assert len(store.unresolved()) == 16


# -- busy --------------------------------------------------------------------------------------------------------------


def test_a_file_that_is_held_for_too_long_is_busy(path, monkeypatch):
    """Another writer keeps its lock past the named time-out: nothing was decided, and the next call goes through."""
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_SECONDS", 0.05)
    with contextlib.closing(SqliteStore(path)) as store, contextlib.closing(sqlite3.connect(path)) as other:
        wanted = claim()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="nothing was decided"):
            store.write(wanted)
        with pytest.raises(StoreBusy):
            store.execute("DELETE FROM worker")
        with pytest.raises(StoreBusy):
            SqliteStore(path)
        assert store.find("default", "user:a", "pay", wanted.intent.key) is None  # readers wait for nobody
        other.rollback()
        assert isinstance(store.write(wanted), Claimed)


def test_r56_the_write_lock_is_taken_before_the_first_read(path):
    """Between what a rule reads and what it writes nobody commits: it could never be promoted to write afterwards."""
    with contextlib.closing(SqliteStore(path)) as store, contextlib.closing(sqlite3.connect(path, timeout=0)) as other:
        first = claim()
        store.write(first)
        refused = []

        def rule(history, now):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("INSERT INTO worker VALUES ('w', '', '', 0, '', 0, 0, 0)")
            refused.append(True)
            return note(first.id, "seen").rule(history, now)

        assert isinstance(store.write(Amend(operation=first.id, rule=rule)), Amended)
        assert refused == [True]
