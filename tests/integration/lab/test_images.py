"""Crash images: the real store holds at every boundary, and each thing the images must notice is planted once."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.domain.command import Claim
from counterfoil.domain.errors import StoreFull, StoreUnsafe
from counterfoil.domain.event import chain
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.images import check, command, faults, recording
from counterfoil.lab.images import survey as surveying
from counterfoil.lab.images.disk import Everything, replay
from counterfoil.lab.images.recording import held, record
from counterfoil.lab.images.scripts import SCRIPTS
from counterfoil.lab.images.shim import Shim
from counterfoil.lab.images.survey import KEPT_MAX, survey
from counterfoil.lab.images.tape import Fault, Tape
from counterfoil.lab.images.weakened import weaken
from counterfoil.lab.run_folder import STORE
from counterfoil.lab.watch import reached
from counterfoil.runtime import executor
from counterfoil.runtime.spool import Spool
from counterfoil.store import opening, overwriting, sqlite, transaction
from counterfoil.store.sqlite import SqliteStore

SECONDS = 100
SMALL, FEW = 3_000, 300


@pytest.fixture
def haste(monkeypatch):
    """Nothing is mended by waiting here."""
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_SECONDS", 0.02)
    monkeypatch.setattr(executor, "INSIST_FIRST_SECONDS", 0.0)


def lab(*arguments):
    """Run the command; exit code and its JSON."""
    argv = [sys.executable, "-m", "counterfoil.lab", "images", "--json", *map(str, arguments)]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


# -- the product -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_promised_is_lost_wherever_the_power_goes():
    """Every script at every boundary, every kind of fault; the weakened modes are noticed, and the last is refused."""
    code, result = lab("--images", SMALL)
    assert (code, result["ok"], result["violations"], result["found"]) == (0, True, 0, {})
    assert result["images"] >= SMALL
    assert set(result["scenarios"]) == set(SCRIPTS)
    assert all(count >= SMALL // len(SCRIPTS) for count in result["scenarios"].values())
    assert all(result["faults"][kind] > 0 for kind in faults.KINDS)
    assert [result["modes"][mode]["found"].get("lost", 0) > 0 for mode in ("wal_normal", "wal_off")] == [True, True]
    assert result["modes"]["rollback_journal"] == {"refused": True}


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "kind"), [("synchronous_normal", "lost"), ("retry_on_timeout", "sent_unrecorded")])
def test_a_rule_that_is_off_is_noticed(tmp_path, mutant, kind):
    """JSON and exit code 1; what violates is left to look at, and not without bounds."""
    code, result = lab("--images", FEW, "--script", "unknown", "--sabotage", mutant, "--keep", tmp_path / "kept")
    assert (code, result["ok"]) == (1, False)
    assert result["found"][kind] > 0
    assert json.loads((tmp_path / "kept" / "result.json").read_text()) == result
    left = list((tmp_path / "kept" / "violations").iterdir())
    assert 0 < len(left) <= KEPT_MAX
    assert all((folder / "found.json").exists() and (folder / STORE).exists() for folder in left)
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {
        "boundaries", "faults.jsonl", "result.json", "violations"
    }  # fmt: skip


def test_a_run_that_cannot_be_finished_leaves_nothing_behind(tmp_path, monkeypatch):
    """A process is killed in the middle of its work: the run says nothing, and the memory it used is free again."""

    def killed(top, share, plan, within):
        child = start(top, share, plan, within)
        if share == 0:
            assert reached(lambda: any(Path(within).iterdir()), SECONDS)
            child.kill()
        return child

    start, run = command._child, tmp_path / "run"
    run.mkdir()
    monkeypatch.setattr(recording, "MEMORY", tmp_path)
    monkeypatch.setattr(command, "_child", killed)
    with pytest.raises(RunFailed, match="tasks were done"):
        command.run(run, command.Plan(SMALL, "all", 1, None), lambda _: None)
    assert list(tmp_path.iterdir()) == [run]


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_recording_is_what_really_stands_there(tmp_path, name):
    """Byte for byte: played on the model, the recording comes to the very files that SQLite wrote."""
    tape = record(tmp_path / "played", name)
    *_, last = replay(tape.files, tuple(tape.operations))
    assert last.image(Everything()).files == held(tmp_path / "played")
    assert tape.acked
    assert tape.sent


def test_a_seed_draws_the_same_images(weak):
    """Boundaries, images and what is found depend on nothing else."""
    weak("NORMAL")
    once, again, other = (figures(survey("unknown", FEW, seed)) for seed in ("1", "1", "2"))
    assert once == again != other


def figures(came):
    """What a survey counted, and at which boundaries."""
    return came.boundaries, came.images, dict(came.found), [image.boundary for image in came.kept]


# -- what must be noticed ----------------------------------------------------------------------------------------------


@pytest.fixture
def weak():
    """Let the product keep less than it makes sure of, until the test is over."""
    with contextlib.ExitStack() as house:
        yield lambda level: house.callback(weaken(level))


def test_a_lost_promise_is_noticed(weak):
    """The log is not synced with its commit: every image is opened, and what was acknowledged is not in all of them."""
    weak("NORMAL")
    came = survey("unknown", FEW, "1")
    assert set(came.found) == {check.LOST, check.UNRECORDED}


def test_a_broken_file_is_noticed(weak):
    """Nothing is ever synced: files that SQLite cannot read, and states that never were."""
    weak("OFF")
    found = survey("checkpointed", 2 * FEW, "1").found
    assert {check.LOST, check.HALF, check.REFUSED} <= set(found)


def test_a_receipt_in_two_commits_is_noticed(monkeypatch):
    """The operation's row in one, its event in the next."""

    def claim(db, command, now, steady):
        def split(*link):
            db.execute("COMMIT")
            db.execute("BEGIN IMMEDIATE")
            return chain(*link)

        with monkeypatch.context() as patch:
            patch.setattr(transaction, "chain", split)
            return transaction.claim(db, command, now, steady)

    monkeypatch.setitem(sqlite._STAMPED, Claim, claim)
    assert survey("unknown", FEW, "1").found[check.UNSOUND] > 0


def test_a_send_before_its_receipt_is_noticed(monkeypatch):
    """One boundary too early is enough."""

    def hasty(folder, name):
        tape = record(folder, name)
        tape.sent = [sent._replace(at=sent.at - 1) for sent in tape.sent]
        return tape

    monkeypatch.setattr(surveying, "record", hasty)
    assert set(survey("unknown", FEW, "1").found) == {check.UNRECORDED}


def test_bytes_that_come_back_are_noticed(monkeypatch):
    """Erased rows are not erased bytes: the log still has them."""
    monkeypatch.setattr(overwriting, "settle_down", lambda _: None)
    assert set(survey("erased", FEW, "1").found) == {check.CAME_BACK}


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("haste")
@pytest.mark.parametrize("kind", faults.KINDS)
def test_a_fault_at_every_operation_loses_nothing(kind):
    """A call and its answer, to the last operation that can fail."""
    came = faults.loop("succeeded", kind, "1")
    assert (came.found, came.first) == ({}, ())
    assert came.runs > 10


@pytest.mark.usefixtures("haste")
def test_an_error_that_says_too_much_is_noticed(monkeypatch):
    """A file that is only locked is not to be mended."""
    monkeypatch.setattr(opening, "_BUSY", frozenset())
    assert set(faults.loop("unknown", faults.BUSY, "1").found) == {faults.UNCLEAR}


@pytest.mark.usefixtures("haste")
def test_a_dropped_answer_is_noticed(monkeypatch):
    """It is said to be in the spool, and is nowhere."""
    monkeypatch.setattr(Spool, "put", lambda *_: True)
    assert set(faults.loop("succeeded", faults.BUSY, "1").found) == {faults.DROPPED}


@pytest.mark.usefixtures("haste")
def test_a_store_that_does_not_go_on_is_noticed(monkeypatch):
    """One failure, and it fails for ever."""

    def broken(command):
        raise StoreFull("for ever")

    def fail(store, jobs, error):
        real(store, jobs, error)
        store.write = broken

    real = SqliteStore._fail
    monkeypatch.setattr(SqliteStore, "_fail", fail)
    assert faults.loop("succeeded", faults.FULL, "1").found[faults.STUCK] > 0


@pytest.mark.usefixtures("haste")
def test_a_claim_that_is_not_durable_is_noticed_under_faults(weak):
    """What stood in the cache alone when the call was made is no receipt."""
    weak("OFF")
    assert faults.loop("succeeded", faults.BUSY, "1").found[check.UNRECORDED] > 0


# -- the file system ---------------------------------------------------------------------------------------------------


def test_a_file_system_without_shared_memory_is_refused(tmp_path):
    """SQLite would go on with a rollback journal, and the product does not."""
    with Shim(tmp_path, Tape({}), shared=False), pytest.raises(StoreUnsafe, match="write-ahead log"):
        SqliteStore(tmp_path / STORE)


def test_only_the_folder_is_watched_and_only_for_a_while(tmp_path):
    """What is opened elsewhere, or afterwards, is nobody's business here."""
    tape, inside = Tape({}), tmp_path / "inside"
    inside.mkdir()
    with Shim(inside, tape), contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as db:
        db.execute("CREATE TABLE t (x)")
    with contextlib.closing(sqlite3.connect(inside / "t.db")) as db:
        db.execute("CREATE TABLE t (x)")
    assert tape.operations == []


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (act, code)
        for kind in (faults.KINDS[faults.FULL], faults.KINDS[faults.IO_ERROR])
        for act, code in kind.codes.items()
    ],
)
def test_each_error_is_the_systems_own(tmp_path, act, code):
    """SQLite gets the very code, and the product makes of it that nothing can be written now."""
    fault = Fault({act: code}, 1, lasting=True)
    seen = None
    with Shim(tmp_path, Tape({}, fault)):
        try:
            SqliteStore(tmp_path / STORE).close()
        except StoreFull as error:
            seen = error.__cause__.sqlite_errorcode
    assert fault.fired
    assert seen == (None if act == "truncate" else code)
