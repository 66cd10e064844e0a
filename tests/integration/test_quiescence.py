"""Proof of death: only the kernel's own, on the same host; everything else is life or not knowing."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from counterfoil.domain.errors import StoreBusy, StoreFull
from counterfoil.runtime import quiescence
from counterfoil.runtime.quiescence import ALIVE, DEAD, UNKNOWN, Roster
from counterfoil.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
TOKEN = "w_x.1"

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12: of threads and forks


@pytest.fixture
def path(tmp_path):
    """A receipts file of this test."""
    return tmp_path / "receipts.db"


@pytest.fixture
def store(path):
    """It, opened."""
    with contextlib.closing(SqliteStore(path)) as opened:
        yield opened


@pytest.fixture
def roster(store, path):
    """This process's place among its workers."""
    return another(store, path)


def another(store, path):
    """A further ledger's place, in this process."""
    return Roster(store, Path(f"{path}.workers"))


@contextlib.contextmanager
def process(verb, path, *arguments):
    """A process that works on the file, and the lines it says; it is gone when the block is left."""
    command = [sys.executable, "-m", "tests.integration.store.child", verb, str(path), *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def asked_from_outside(path, worker, token):
    """What another process finds."""
    with process("ask", path, worker, token) as asking:
        return asking.stdout.readline().strip()


# -- other processes ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_is_alive_while_it_holds_its_lock_and_dead_when_it_is_killed(roster, path):
    """Nothing but its own end changes the answer, and its end does so at once."""
    with process("work", path) as worker:
        name = worker.stdout.readline().strip()
        assert roster.hand(name, TOKEN) == ALIVE
        os.kill(worker.pid, signal.SIGSTOP)  # paused: it may wake and write
        os.waitid(os.P_PID, worker.pid, os.WSTOPPED)
        assert roster.hand(name, TOKEN) == ALIVE
        worker.kill()
        worker.wait()
        assert roster.hand(name, TOKEN) == DEAD


@pytest.mark.slow
def test_a_process_that_ended_or_retired_is_dead(roster, path):
    """An orderly end is an end."""
    with process("work", path, "retire") as worker:
        name = worker.stdout.readline().strip()
        assert worker.stdout.readline() == "retired\n"
        assert roster.hand(name, TOKEN) == DEAD
        worker.stdin.close()
        worker.wait()
        assert roster.hand(name, TOKEN) == DEAD


@pytest.mark.slow
def test_a_forked_grandchild_does_not_keep_a_dead_worker_alive(roster, path):
    """It has a copy of the descriptor and not the lock: the worker's death is proven while it lives on."""
    with process("work", path, "fork") as worker:
        name = worker.stdout.readline().strip()
        grandchild = int(worker.stdout.readline().split()[1])
        assert roster.hand(name, TOKEN) == ALIVE
        worker.kill()
        worker.wait()
        os.kill(grandchild, 0)  # it lives
        assert roster.hand(name, TOKEN) == DEAD
        worker.stdin.close()
        assert worker.stdout.read() == ""  # and ends with its input


def registered(store, worker):
    """What the register says of a worker."""
    (row,) = store.query("SELECT lock_path, lock_inode FROM worker WHERE id = ?", (worker,))
    return Path(row[0]), row[1]


@pytest.fixture
def dead(roster, store, path):
    """A worker that is provably dead, as long as its lock file proves it."""
    ended = another(store, path)
    name = ended.worker()
    ended.retire()
    assert roster.hand(name, TOKEN) == DEAD
    return name


def test_a_missing_lock_file_proves_nothing(roster, store, dead):
    """Somebody cleared up: not knowing is not death."""
    registered(store, dead)[0].unlink()
    assert roster.hand(dead, TOKEN) == UNKNOWN


def test_another_file_under_the_same_name_proves_nothing(roster, store, dead):
    """The lock that can be taken is not the worker's."""
    lock, _ = registered(store, dead)
    lock.rename(lock.with_suffix(".kept"))
    lock.touch()
    assert roster.hand(dead, TOKEN) == UNKNOWN


def test_a_lock_file_that_cannot_be_opened_proves_nothing(roster, store, dead):
    """Whatever keeps us from asking keeps us from knowing."""
    lock, _ = registered(store, dead)
    lock.unlink()
    lock.mkdir()
    assert roster.hand(dead, TOKEN) == UNKNOWN


def test_an_error_of_the_lock_itself_proves_nothing(roster, dead, monkeypatch):
    """Neither held nor free: the file system did not say."""
    monkeypatch.setattr(fcntl, "lockf", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "no locks")))
    assert roster.hand(dead, TOKEN) == UNKNOWN


def test_another_host_proves_nothing(roster, dead, monkeypatch):
    """Its locks are not ours to take, and its boots are not ours to count."""
    monkeypatch.setattr(quiescence, "host", lambda: "another")
    monkeypatch.setattr(quiescence, "boot", lambda: "another")
    assert roster.hand(dead, TOKEN) == UNKNOWN


def test_a_worker_nobody_registered_is_unknown(roster):
    """No row, no proof."""
    assert roster.hand("w_000000000000", TOKEN) == UNKNOWN


def test_another_boot_of_this_host_is_death(roster, store, dead, monkeypatch):
    """No process outlives the kernel it ran under, whatever became of its lock file."""
    registered(store, dead)[0].unlink()
    monkeypatch.setattr(quiescence, "boot", lambda: "a later boot")
    assert roster.hand(dead, TOKEN) == DEAD


@pytest.mark.slow
@pytest.mark.parametrize("then", ["", "a boot"])
@pytest.mark.parametrize("now", ["", "a boot"])
def test_a_boot_that_is_not_known_proves_nothing(roster, store, path, monkeypatch, then, now):
    """Where the platform names no boot, before or now, only the lock says."""
    with process("work", path) as worker:
        name = worker.stdout.readline().strip()
        store.execute("UPDATE worker SET boot = ? WHERE id = ?", (then, name))
        monkeypatch.setattr(quiescence, "boot", lambda: now)
        assert roster.hand(name, TOKEN) == ALIVE
        worker.kill()
        worker.wait()
        assert roster.hand(name, TOKEN) == DEAD


def test_this_host_and_boot_have_names():
    """The same in every process, and not each other's."""
    assert quiescence.host()
    assert quiescence.boot() == quiescence.boot() != quiescence.host()


# -- this process ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_its_own_attempts_a_process_knows_by_itself(roster, path):
    """What it carries is alive, what it has put down is dead; and asking does not give its lock away."""
    name = roster.worker()
    roster.in_hand.add(TOKEN)
    assert roster.hand(name, TOKEN) == ALIVE
    assert roster.hand(name, "w_x.2") == DEAD
    assert asked_from_outside(path, name, TOKEN) == ALIVE


@pytest.mark.slow
def test_another_ledger_of_the_same_process_is_no_stranger(roster, store, path):
    """Its lock would not stop us, and trying it would drop it: the answer comes from what it carries."""
    other = another(store, path)
    name = other.worker()
    other.in_hand.add(TOKEN)
    assert roster.hand(name, TOKEN) == ALIVE
    assert roster.hand(name, "w_x.2") == DEAD
    assert asked_from_outside(path, name, TOKEN) == ALIVE
    other.in_hand.clear()
    other.retire()
    assert roster.hand(name, TOKEN) == DEAD


@pytest.mark.slow
def test_a_process_that_carries_something_does_not_retire(roster, path):
    """Its lock is given back only when nothing it began can still write."""
    name = roster.worker()
    roster.in_hand.add(TOKEN)
    roster.retire()
    assert asked_from_outside(path, name, TOKEN) == ALIVE
    roster.in_hand.discard(TOKEN)
    roster.retire()
    assert asked_from_outside(path, name, TOKEN) == DEAD
    assert roster.worker() != name


def test_a_forked_child_is_another_worker(roster, store):
    """It takes a place and a lock of its own, finds its parent alive, and is dead when it has ended."""
    parent = roster.worker()
    roster.in_hand.add(TOKEN)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            said = f"{roster.hand(parent, TOKEN)} {roster.worker()} {roster.hand(parent, TOKEN)} {roster.in_hand}"
            os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        first, child, second, in_hand = pipe.read().split(maxsplit=3)
    os.waitpid(pid, 0)
    assert (first, second, in_hand) == (ALIVE, ALIVE, "set()")
    assert child != parent == roster.worker()
    assert roster.hand(child, TOKEN) == DEAD
    assert roster.hand(parent, TOKEN) == ALIVE


def test_a_fork_while_a_worker_registers_hangs_no_child(roster):
    """Another thread holds the roster's guard at that moment: the child has one of its own."""
    with roster._guard:
        pid = os.fork()
        if pid == 0:
            ok = roster._guard.acquire(timeout=5)
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_many_threads_are_one_worker(roster, store):
    """Whoever asks first registers; all are told the same name, and the register has it when they are."""
    barrier, names = threading.Barrier(16), []

    def run():
        barrier.wait()
        name = roster.worker()
        names.append((name, len(store.query("SELECT id FROM worker WHERE id = ?", (name,)))))

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 1
    assert names[0][1] == 1


def test_its_files_are_private(roster, store):
    """Folder and lock belong to their owner alone."""
    lock, inode = registered(store, roster.worker())
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert stat.S_IMODE(lock.parent.stat().st_mode) == 0o700
    assert lock.stat().st_ino == inode


class Refusing:
    """A register that is busy at first."""

    def __init__(self, store):
        self.store, self.refusals = store, 3

    def __getattr__(self, name):
        return getattr(self.store, name)

    def execute(self, *statement):
        """Refuse so many times."""
        self.refusals -= 1
        if self.refusals >= 0:
            raise StoreBusy("busy")
        self.store.execute(*statement)


def test_a_register_that_is_busy_costs_nothing(store, path):
    """A worker that cannot be written down holds no lock and leaks no descriptor, and is registered the next time."""
    roster = Roster(Refusing(store), Path(f"{path}.workers"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(StoreBusy):
            roster.worker()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert store.query("SELECT id FROM worker") == []
    assert store.query("SELECT id FROM worker WHERE id = ?", (roster.worker(),)) != []


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(store, path):
    """Nothing was sent, and the message says what is in the way."""
    folder = Path(f"{path}.workers")
    folder.write_text("in the way")
    with pytest.raises(StoreFull, match="nothing was sent"):
        Roster(store, folder).worker()
