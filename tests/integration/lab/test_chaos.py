"""The chaos at a small size, and each hardship of it by itself."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from tests.integration.lab.stranger import disagreements

from counterfoil.lab import chaos_scene, hardship
from counterfoil.lab.chaos import programme
from counterfoil.lab.chaos_round import Trouble
from counterfoil.lab.disk import BALLAST, Disk, Full, disk
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.kill_aim import Aim
from counterfoil.lab.lifetime import check_ended
from counterfoil.lab.processes import Child, module
from counterfoil.lab.scoreboard import score
from counterfoil.lab.watch import wait_for

SECONDS = 110
KILLS = 30
TROUBLES = [trouble.value for trouble in Trouble]


def chaos(*arguments):
    """Run the command as a script does in its background, deaf to Ctrl+C; its exit code and its last line's object."""
    argv = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    argv += [sys.executable, "-m", "counterfoil.lab", "chaos", *map(str, arguments), "--json"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One run, with what it left behind."""
    folder = tmp_path_factory.mktemp("chaos") / "kept"
    code, result = chaos("--kills", KILLS, "--keep", folder)
    return folder, code, result


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["duplicates", "false_outcomes", "unrecorded", "excess_sends", "unsettled", "unowned_unknowns", "violations"],
)
def test_no_trouble_breaks_a_rule(kept, name):
    """Nothing twice, nothing false, nothing without a receipt, nothing forgotten, and every chain is whole."""
    _, code, result = kept
    assert (code, result["ok"], result[name]) == (0, True, 0)


@pytest.mark.slow
def test_every_kind_of_trouble_befell_somebody(kept):
    """Kills at every aim, most of them where a repeat would do harm, and each other trouble as well."""
    _, _, result = kept
    assert result["kills"] == sum(result["kills_by_aim"].values()) == sum(result["kills_by_window"].values()) == KILLS
    assert set(result["kills_by_aim"]) >= {"effect", "look", "mid_socket", "random", "send", "start"}
    assert result["kills_by_window"]["claim_to_outcome"] * 5 >= KILLS
    assert result["troubles"] == dict.fromkeys(sorted(TROUBLES), 2)
    assert result["unknown_seen"] * 10 >= KILLS
    assert result["ends"]["130"] + result["ends"]["143"] >= 2
    assert result["disk_full"] in {"tmpfs", "rlimit"}
    assert result["operations"] == result["lines"]


@pytest.mark.slow
def test_a_stranger_counts_the_same(kept, tmp_path):
    """The recount agrees on every figure, whatever the clocks said; a kill or an effect more does not pass."""
    folder, _, _ = kept
    assert disagreements(folder) == (0, [])
    assert not (folder / "disk").exists()
    changed = tmp_path / "changed"
    shutil.copytree(folder, changed)
    for name in ("kills.jsonl", "effects.jsonl"):
        with (changed / name).open("a") as file:
            file.write((folder / name).read_text().splitlines()[0] + "\n")
    code, found = disagreements(changed)
    assert code == 1
    assert {line.split(":")[0] for line in found} >= {"kills", "kills_by_aim", "effects", "duplicates"}


@pytest.mark.slow
def test_every_receipt_is_kept_as_a_document(kept):
    """Exports are left for all of them, and after all that no chain is broken."""
    folder, _, result = kept
    exported = [json.loads(path.read_text()) for path in (folder / "exports").iterdir()]
    assert len(exported) == result["operations"]
    assert [document["chain"]["violations"] for document in exported if document["chain"]["violations"]] == []


@pytest.mark.slow
def test_a_second_send_on_silence_breaks_it():
    """With the rule off effects happen twice: JSON, and exit code 1."""
    code, result = chaos("--kills", 6, "--sabotage", "retry_on_timeout")
    assert (code, result["ok"]) == (1, False)
    assert result["duplicates"] > 0


@pytest.mark.slow
def test_a_disk_can_be_full_without_one_of_its_own():
    """Where no file system can be mounted a process's files may not grow: its run ends by saying so, and it holds."""
    code, result = chaos("--kills", 3, "--disk", "rlimit", "--seed", 2)
    assert (code, result["ok"], result["disk_full"]) == (0, True, "rlimit")
    assert result["ends"].get("5", 0) >= 1


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "lies"), [(None, False), ("absence_by_wall_clock", True)])
def test_a_clock_that_steps_proves_nothing_absent_that_is_on_its_way(tmp_path, monkeypatch, mutant, lies):
    """Every effect is applied after its caller has given up, and the caller's clock steps an hour meanwhile.

    With the rule off that asks a clock which nobody can set, receipts deny what happens.
    """
    late = {"behaviour": "apply_late", "every": 1, "seconds": 0.4}
    for name, value in (("FAULTS", (late,)), ("ROUGH_RULES", ()), ("CONTRACTS", ("lab.lookup",))):
        monkeypatch.setattr(chaos_scene, name, value)
    with contextlib.ExitStack() as house:
        scene = chaos_scene.Scene(tmp_path, Disk(tmp_path, Full.NONE), mutant, random.Random(1), house)
        scene.sweeper.kill()
        run = scene.start_run(6, calls=6, under=hardship.arguments(step=chaos_scene.STEP_SECONDS))
        wait_for("the sends", lambda: scene.sights.look() or scene.sights.sends == 6, SECONDS)
        run.signal(hardship.STEP)
        check_ended(run, "a run with a clock that steps")
        scene.calm(chaos_scene.STEP_SECONDS)
    found = score(tmp_path)
    assert (found.operations, found.effects, found.unsettled) == (6, 6, 0)
    assert (found.false_outcomes > 0) is lies


def test_the_programme_has_every_kill_and_every_trouble():
    """As many kills as asked for, one trouble of each other kind for twenty, and none that the disk cannot have."""
    rounds = programme(45, Full.NONE, random.Random(1))
    assert sum(isinstance(entry, Aim) for entry in rounds) == 45
    troubles = [entry for entry in rounds if isinstance(entry, Trouble)]
    assert {trouble: troubles.count(trouble) for trouble in Trouble} == {
        t: 0 if t is Trouble.DISK else 3 for t in Trouble
    }
    assert rounds == programme(45, Full.NONE, random.Random(1))


def test_a_clock_steps_once():
    """It is wrong from the beginning as it was told, and jumps when it is told to, once."""
    clock = hardship.WrongClock(lambda: 1000.0, ahead=60.0, step=-3600.0)
    assert clock() == 1060.0
    for _ in range(2):
        clock.jump()
        assert clock() == -2540.0


@pytest.fixture
def suffering(tmp_path) -> Iterator:
    """Run a small program, as a module of its own, under hardships."""
    with contextlib.ExitStack() as house:

        def start(program, *arguments, ready_seconds=SECONDS, **hardships):
            (tmp_path / "suffering.py").write_text(program)
            argv = module(*hardship.arguments(**hardships), "suffering", *arguments)
            path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
            return house.enter_context(Child(argv, env={"PYTHONPATH": path}, ready_seconds=ready_seconds))

        yield start


def test_a_process_under_hardship_hears_another_time(suffering):
    """The module runs with its own arguments, and whatever it imports is told the same wrong time."""
    program = "import sys, time\nprint('ready', time.time(), *sys.argv[1:], flush=True)\ninput()"
    told, more = suffering(program, "--and", ahead=7200.0).ready.split()
    assert 0 <= float(told) - 7200.0 - time.time() + SECONDS < 2 * SECONDS
    assert more == "--and"


def test_a_process_under_hardship_hears_the_clock_step(suffering, tmp_path):
    """The signal makes it step: what was asked before stays as it was, and what is asked after is an hour later."""
    program = f"""
import pathlib, time
before = time.time()
print("ready", flush=True)
while time.time() < before + 3000:
    pass
pathlib.Path({str(tmp_path / "said")!r}).write_text(str(time.time() - before))
"""
    child = suffering(program, step=3600.0)
    child.signal(hardship.STEP)
    assert child.wait() == 0
    assert 0 <= float((tmp_path / "said").read_text()) - 3600.0 < SECONDS


def test_a_process_under_hardship_ends_with_its_parent():
    """It is a worker that would go on for ever: the end of the pipe is told to it as SIGTERM."""
    with Child(module(*hardship.arguments(), "http.server", "--bind", "127.0.0.1", "0"), ready_seconds=None) as child:
        child.let_go()
        assert child.wait() == -signal.SIGTERM


def test_a_file_may_not_grow_beyond_its_limit(suffering, tmp_path):
    """What is written beyond the limit fails as on a full disk; what stands below it stays."""
    program = "file = open('file', 'ab', buffering=0)\nfile.write(bytes(3000))\nfile.write(bytes(1))"
    child = suffering(program.replace("'file'", repr(str(tmp_path / "file"))), file_bytes=2000, ready_seconds=None)
    assert child.wait() == 1
    assert f"[Errno {errno.EFBIG}]" in child.errors()
    assert (tmp_path / "file").stat().st_size == 2000


def test_a_small_disk_is_full_and_free_again(tmp_path):
    """Where one can be mounted it takes no byte while it is full; in the end what stood on it stands at home."""
    with disk(tmp_path, None) as room:
        if room.full is Full.RLIMIT:
            assert room.folder == tmp_path
            with pytest.raises(RunFailed, match="rlimit takes nothing"), disk(tmp_path, Full.TMPFS):
                pass
            return
        assert room.folder != tmp_path
        room.fill(0)
        with pytest.raises(OSError, match="No space left"):
            (room.folder / "more").write_bytes(bytes(5000))
        room.free()
        (room.folder / "receipts.db").write_bytes(b"kept")
        room.fill(1 << 20)
    assert (tmp_path / "receipts.db").read_bytes() == b"kept"
    assert not {"disk", BALLAST} & {path.name for path in tmp_path.iterdir()}


LEFT = """
import sys, threading
from pathlib import Path
from counterfoil.lab.disk import disk
with disk(Path(sys.argv[1]), None) as room:
    print(room.full.value, flush=True)
    threading.Event().wait()
"""


def test_the_small_disk_of_a_killed_run_is_unmounted_by_the_next(tmp_path, capfd):
    """It is said where it was; that of a run that lives stays."""
    for home in ("killed run", "living", "next"):
        (tmp_path / home).mkdir()
    starts = [sys.executable, "-c", LEFT]
    with subprocess.Popen([*starts, tmp_path / "living"], stdout=subprocess.PIPE, text=True) as living:
        if living.stdout.readline().strip() == Full.TMPFS:
            with subprocess.Popen([*starts, tmp_path / "killed run"], stdout=subprocess.PIPE, text=True) as run:
                run.stdout.readline()
                run.kill()
            assert (tmp_path / "killed run" / "disk").is_mount()
            with disk(tmp_path / "next", None):
                assert not (tmp_path / "killed run" / "disk").is_mount()
                assert (tmp_path / "living" / "disk").is_mount()
            said = f"unmounted {tmp_path / 'killed run' / 'disk'}, left by a run that was killed"
            assert said in capfd.readouterr().err
        living.kill()
    with disk(tmp_path / "next", None):
        assert not (tmp_path / "living" / "disk").is_mount()
