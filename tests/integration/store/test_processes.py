"""Several processes on one file, and what a disk does to them: nothing acknowledged is lost, nothing claimed twice."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from tests.integration.store.commands import claim, faults, note, settle

from counterfoil.domain.command import Claimed, Settled
from counterfoil.domain.errors import StoreFull, StoreUnsafe
from counterfoil.store import opening, sqlite
from counterfoil.store.commit import Job
from counterfoil.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def child(verb, path, *arguments):
    """One other process; it is gone when the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.store.child", verb, str(path), *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def heard(verb, path, *arguments):
    """The one line a process says."""
    with child(verb, path, *arguments) as process:
        return process.stdout.readline()


def whole(path):
    """Every history adds up, and the engine finds the file intact; the histories."""
    with contextlib.closing(SqliteStore(path)) as store:
        histories = list(store.histories())
        assert [fault for history in histories for fault in faults(history)] == []
        assert store.query("PRAGMA integrity_check") == [("ok",)]
        orphans = "SELECT count(*) FROM event WHERE id / 32768 NOT IN (SELECT n FROM operation)"
        assert store.query(orphans) == [(0,)]
        return {history.operation.id: history for history in histories}


@pytest.mark.slow
def test_r56_eight_processes_claim_while_a_writer_commits(path):
    """No claim is lost, none is granted twice, nobody is told to come again: the write lock is taken first."""
    SqliteStore(path).close()
    over = threading.Event()

    def write():
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as db:
            while not over.is_set():
                db.execute("BEGIN IMMEDIATE")
                db.execute("INSERT OR REPLACE INTO worker VALUES ('w', '', '', 0, '', 0, 0, 0)")
                db.execute("COMMIT")
                over.wait(0.002)  # a busy colleague, not one that keeps everybody out

    writer = threading.Thread(target=write)
    with contextlib.ExitStack() as stack:
        claimers = [stack.enter_context(child("contend", path, i, 60)) for i in range(8)]
        assert [claimer.stdout.readline() for claimer in claimers] == ["ready\n"] * 8
        writer.start()
        for claimer in claimers:
            claimer.stdin.write("go\n")
            claimer.stdin.flush()
        lines = [line.split() for claimer in claimers for line in claimer.stdout]
        over.set()
        writer.join()
    assert collections.Counter(word for word, _, _ in lines).keys() <= {"Claimed", "Existing", "NewlyHeld"}
    histories = whole(path)
    claimed = [operation for word, _, operation in lines if word == "Claimed"]
    assert set(claimed) <= set(histories)
    shared = [i for word, i, _ in lines if word == "Claimed" and int(i) % 2 == 0]
    assert sorted(map(int, shared)) == list(range(0, 60, 2))
    held = [operation for word, _, operation in lines if word == "NewlyHeld"]
    assert all(histories[operation].operation.held_by in claimed for operation in held)


@pytest.mark.slow
def test_a_new_file_is_made_by_one_of_eight_processes(path):
    """All of them begin with a file that is not there: each gets the same book."""
    with contextlib.ExitStack() as stack:
        claimers = [stack.enter_context(child("contend", path, i, 3)) for i in range(8)]
        assert [claimer.stdout.readline() for claimer in claimers] == ["ready\n"] * 8
        for claimer in claimers:
            claimer.stdin.write("go\n")
            claimer.stdin.flush()
        lines = [line.split() for claimer in claimers for line in claimer.stdout]
    assert len(lines) == 24
    assert {word for word, _, _ in lines} <= {"Claimed", "Existing", "NewlyHeld"}
    whole(path)


@pytest.mark.slow
def test_ctrl_c_in_the_thread_that_leads_hangs_none_of_the_others(path):
    """Threads and tasks write, the main one gets SIGINT time and again: all end, and what they were told is true."""
    times = 25
    with child("lead", path, 63, times) as process:
        for _ in range(times):
            assert process.stdout.readline() == "leading\n"
            process.send_signal(signal.SIGINT)
        said = json.loads(process.stdout.readline())
    told = said["told"]
    histories = whole(path)
    assert said["hanging"] == 0
    assert len(told) == len(set(told)) > 63
    assert set(told) <= set(histories)
    assert len(histories) - len(told) <= times  # what the interrupted calls wrote, and were not told
    assert {len(history.events) for history in histories.values()} == {1}


KILLS = 36
"""More than thirty, over three files."""


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_whatever_was_acknowledged_survives_a_kill(path, threads):
    """A writer is killed at a moment of its own choosing, again and again: all it was told stands there, whole."""
    claimed, settled = set(), set()
    with child("die", path, threads) as process:
        for _ in range(KILLS // 3):
            process.stdin.write("go\n")
            process.stdin.flush()
            pid, acknowledged, alive = None, 0, True
            wanted = os.urandom(1)[0] // 4
            while alive:
                word, value = process.stdout.readline().split()
                pid = int(value) if word == "pid" else pid
                alive = word != "dead"
                acknowledged += word in ("claimed", "settled")
                if word == "claimed":
                    claimed.add(value)
                elif word == "settled":
                    settled.add(value)
                if pid and acknowledged > wanted:
                    os.kill(pid, signal.SIGKILL)
                    pid = None
    histories = whole(path)
    assert len(settled) > KILLS
    assert settled <= claimed <= set(histories)
    assert {len(histories[operation].events) for operation in settled} == {2}
    assert all(not histories[operation].operation.unresolved for operation in settled)
    in_flight = set(histories) - claimed
    assert len(in_flight) <= KILLS // 3 * threads


# -- the file while it is open -----------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def watchful(monkeypatch, request):
    """The file's name is looked at before every commit, but where its limit is what is tried."""
    if "limited" not in request.node.name:
        monkeypatch.setattr(sqlite, "STANDS_SECONDS", -1.0)


def removed(path):
    """Somebody clears up."""
    path.unlink()


def replaced(path):
    """Somebody puts a backup in its place."""
    with contextlib.closing(SqliteStore(path.with_name("other.db"))) as other:
        other.write(claim())
    path.with_name("other.db").replace(path)


def renamed(path):
    """Somebody moves it away."""
    path.rename(path.with_name("moved.db"))


def forked():
    """A child that ends at once: connections are closed and opened again."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("fork", [False, True], ids=["", "fork"])
@pytest.mark.parametrize("change", [removed, replaced, renamed])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_nothing_is_claimed_in_a_file_that_is_not_there_any_more(path, change, fork):
    """Removed, replaced or renamed while it was open, also when connections were opened again meanwhile."""
    store = SqliteStore(path)
    first = claim()
    store.write(first)
    change(path)
    if fork:
        forked()
    for command in (claim(), note(first.id, "seen"), claim()):
        with pytest.raises(StoreUnsafe, match="removed or replaced"):
            store.write(command)
    store.close()
    assert path.exists() is (change is replaced)
    if change is replaced:
        assert len(whole(path)) == 1


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_nothing_is_read_from_a_file_that_took_the_place(path):
    """Connections were opened again after the file was replaced: another book's receipts are not this one's."""
    store = SqliteStore(path)
    first = claim()
    store.write(first)
    replaced(path)
    forked()
    with pytest.raises(StoreUnsafe, match="removed or replaced"):
        store.load(first.id)
    store.close()


def test_nothing_is_claimed_in_a_log_that_others_cannot_read(path):
    """This process copied the file, another closed it: the log in use is gone, and that is noticed."""
    store = SqliteStore(path)
    first = claim()
    store.write(first)
    path.read_bytes()  # opened and closed beside SQLite: this process's locks are dropped
    script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT * FROM event').fetchall()"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=20)
    for command in (claim(), note(first.id, "seen")):
        with pytest.raises(StoreUnsafe, match="lost its write-ahead log"):
            store.write(command)
    store.close()
    assert set(whole(path)) == {first.id}


def test_how_often_the_files_name_is_looked_at_is_limited(path):
    """A claim within that many seconds of the last look may still go to a file that has just been removed."""
    assert sqlite.STANDS_SECONDS <= 0.01
    with contextlib.closing(SqliteStore(path)) as store:
        store.write(claim())
        path.unlink()
        store._stood_at -= sqlite.STANDS_SECONDS
        with pytest.raises(StoreUnsafe, match="removed or replaced"):
            store.write(claim())


def test_a_claim_is_refused_beside_an_answer_that_is_not(path):
    """In one batch, after the file was removed: what was sent is recorded beside its claim, nothing is claimed."""
    store = SqliteStore(path)
    first, other = claim(), claim()
    answer = settle(first, store.write(first))
    path.unlink()
    jobs = [Job(command) for command in (answer, other)]
    store._write_batch(jobs)
    assert isinstance(jobs[0].answer(), Settled)
    with pytest.raises(StoreUnsafe, match="removed or replaced"):
        jobs[1].answer()
    store.close()


# -- the disk ----------------------------------------------------------------------------------------------------------


def test_a_full_file_refuses_and_goes_on(path):
    """What does not fit is refused whole, and the same connection goes on when there is room."""
    with contextlib.closing(SqliteStore(path)) as store:
        store.write(claim())
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 5}")
        large = claim(body=b"s" * 100_000)
        with pytest.raises(StoreFull, match="nothing was decided"):
            store.write(large)
        assert isinstance(store.write(claim()), Claimed)
        store._db.execute("PRAGMA max_page_count = 100000")
        assert isinstance(store.write(large), Claimed)
    assert len(whole(path)) == 3


@pytest.mark.slow
def test_a_disk_without_room_loses_nothing(path):
    """The operating system refuses to let the file grow: an error, nothing of it recorded, and all before is there."""
    said = json.loads(heard("limit", path, 400_000))
    assert said["error"] == "StoreFull"
    assert said["again"] == "Claimed"
    assert set(whole(path)) == {*said["kept"], said["refused"]}
    assert len(said["kept"]) > 5


@pytest.fixture
def public():
    """A folder another user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "said"),
    [
        (0o400, 0o777, "not readable and writable"),
        (0o000, 0o777, "not readable and writable"),
        (0o644, 0o777, "cannot be made private"),
        (0o600, 0o555, "not readable and writable|folder this user cannot write"),
        (None, 0o555, "cannot be made"),
        (0o600, 0o000, "cannot be made or used|does not exist"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(public, file_mode, folder_mode, said):
    """By its own permissions or its folder's: an error that says so, before anything is entrusted to it."""
    path = public / "receipts.db"
    if file_mode is not None:
        SqliteStore(path).close()
        path.chmod(file_mode)
    public.chmod(folder_mode)
    line = heard("unprivileged", path)
    public.chmod(0o777)
    assert line.startswith("StoreUnsafe ")
    assert re.search(said, line)


def test_a_store_that_cannot_be_opened_again_answers_everybody(path, monkeypatch):
    """Too many files, no memory, no permission: each command is answered with it, and none waits for ever."""
    with contextlib.closing(SqliteStore(path)) as store:
        first = claim()
        store.before_fork()  # what a fork does: nothing is open
        store.after_in_parent()
        for error, wanted in ((StoreFull("no room"), StoreFull), (OSError(24, "too many"), OSError)):
            with monkeypatch.context() as patched:
                patched.setattr(opening, "connect", lambda *_, error=error, **__: (_ for _ in ()).throw(error))
                answers = []

                def run(answers=answers):
                    try:
                        store.write(first)
                    except Exception as caught:  # noqa: BLE001 - an answer like another
                        answers.append(caught)

                threads = [threading.Thread(target=run, daemon=True) for _ in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(20)
                assert [type(answer) for answer in answers] == [wanted] * 8
        assert isinstance(store.write(first), Claimed)
