"""How a run ends, whatever becomes of it: the exit code of what happened, and a last word where anybody hears one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.report import judged, last_word
from counterfoil.lab.run_folder import run_folder
from counterfoil.lab.watch import reached

SECONDS = 100
NOT_RUN, INTERRUPTED, PIPE_CLOSED, TERMINATED = 3, 130, 141, 143
SMALL = ("simulate", "--operations", "10")
LONG = ("simulate", "--operations", "10000000", "--json")
MAKEFILE = Path(__file__).parents[3] / "Makefile"


def argv(*arguments):
    """The laboratory's command line."""
    return [sys.executable, "-m", "counterfoil.lab", *map(str, arguments)]


def gone(pid):
    """Whether a process has ended; an orphan may wait for ever for somebody to ask how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def lab(*arguments, **streams):
    """Run it as a stranger would, with what Python buffers; exit code, standard output, standard error."""
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment, **streams}
    run = subprocess.run(argv(*arguments), text=True, timeout=SECONDS, check=False, **pipes)
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize("arguments", [(*SMALL, "--json"), SMALL, ("matrix", "--list"), ("nonsense", "--json")])
@pytest.mark.parametrize("full", [True, False])
def test_a_report_that_nobody_can_read_is_no_broken_rule(arguments, full):
    """A full disk and a reader that went away end by codes of their own, also where the report is an error's."""
    if full:
        with Path("/dev/full").open("wb") as nowhere:
            code, _, complaint = lab(*arguments, stdout=nowhere)
        assert (code, "No space left on device" in complaint) == (NOT_RUN, True)
        return
    mine, theirs = os.pipe()
    os.close(mine)
    code, _, complaint = lab(*arguments, stdout=theirs)
    os.close(theirs)
    assert (code, "Traceback" in complaint) == (PIPE_CLOSED, False)


def test_a_closed_standard_output_is_said_at_once():
    """Nothing would be told and all would seem well; an error stream that is full or closed changes no exit code."""
    for closing, code in ((">&-", NOT_RUN), ("2>&-", 0), ("2>/dev/full", 0), (">&- 2>/dev/full", NOT_RUN)):
        command = ["sh", "-c", f'"$@" {closing}', "sh", *argv("matrix", "--list", "--json")]
        run = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        assert (closing, run.returncode) == (closing, code)


def test_an_error_that_cannot_be_complained_of_keeps_its_code():
    """The last line still says what was wrong."""
    with Path("/dev/full").open("wb") as nowhere:
        code, said, _ = lab("nonsense", "--json", stderr=nowhere)
    assert (code, "invalid choice" in json.loads(said)["error"]) == (NOT_RUN, True)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_a_run_that_is_stopped_has_a_last_word(number, code):
    """One object says so, and Ctrl+C is heard in a script's background too; its processes end with it."""
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *argv(*LONG)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
        assert reached(lambda: children.read_text().strip() != "", SECONDS)
        playing = [int(pid) for pid in children.read_text().split()]
        run.send_signal(number)
        said, complaint = run.communicate(timeout=SECONDS)
    assert run.returncode == code
    assert json.loads(said.splitlines()[-1])["error"].startswith("stopped by ")
    assert "stopped by " in complaint
    assert reached(lambda: all(map(gone, playing)), SECONDS)


def test_the_exit_codes_stand_in_help():
    """Every one that a run can end with."""
    _, said, _ = lab("simulate", "--help")
    codes = [line.split()[0] for line in said.partition("exit codes:\n")[2].splitlines() if line]
    assert codes == ["0", "1", "3", "130", "141", "143"]


def test_a_rule_that_nobody_missed_is_no_rule_that_held(capsys):
    """With a rule off a run that found nothing broken shows nothing; its result says which rule it was."""
    assert judged({"ok": True}, None) == {"ok": True, "sabotage": None}
    assert judged({"ok": False}, "some_rule") == {"ok": False, "sabotage": "some_rule"}
    unnoticed = judged({"ok": True}, "some_rule")
    assert (unnoticed["ok"], "nothing noticed it" in unnoticed["error"]) == (False, True)
    assert last_word(unnoticed, as_json=True) == NOT_RUN
    assert json.loads(capsys.readouterr().out) == unnoticed


@pytest.mark.slow
@pytest.mark.parametrize("one", [("--operations", "5"), ("--world", "0")])
def test_a_sabotaged_run_that_noticed_nothing_says_so(tmp_path, one):
    """Too few operations meet what the rule is about: exit code 3, and what was kept says the same."""
    keep = ("--keep", tmp_path / "kept") if "--world" not in one else ()
    code, said, _ = lab("simulate", *one, "--sabotage", "absence_without_horizon", "--json", *keep)
    result = json.loads(said.splitlines()[-1])
    assert (code, result["ok"], result["sabotage"]) == (NOT_RUN, False, "absence_without_horizon")
    assert not keep or json.loads((tmp_path / "kept" / "result.json").read_text()) == result


def test_the_ten_rules_must_be_noticed_in_words_too():
    """`make sabotaged` takes no exit code for a report: the object says that a rule is broken, and nothing else."""
    (program,) = [line[7:] for line in MAKEFILE.read_text("utf-8").splitlines() if line.startswith("SAID = ")]
    taken = []
    for said in ({"ok": False}, {"ok": False, "error": "why"}, {"ok": True}, {"error": "why"}):
        reads = program.replace('open(".cache/sabotaged.json")', "sys.stdin").replace("import json", "import json, sys")
        run = subprocess.run([sys.executable, "-c", reads], input=json.dumps(said), text=True, check=False)
        taken.append(run.returncode == 0)
    assert taken == [True, False, False, False]
    assert "test $$? -eq 1 && $(BIN)/python -c '$(SAID)'" in MAKEFILE.read_text("utf-8")


def test_a_folder_is_one_runs_alone(tmp_path):
    """It is claimed before it is looked into: a second run is refused while nothing stands there yet."""
    mine, theirs = run_folder(tmp_path / "kept"), run_folder(tmp_path / "kept")
    with mine, pytest.raises(RunFailed, match="another run has it"), theirs:
        pass
    with run_folder(tmp_path / "kept") as folder:
        (folder / "effects.jsonl").touch()
    with pytest.raises(RunFailed, match="is not empty"), run_folder(tmp_path / "kept"):
        pass


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("matrix", "--cell", "44-K"), "--cell 44-K: cannot be played yet; it awaits"),
        (("matrix", "--list", "--sabotage", "retry_on_timeout"), "--sabotage would come to nothing"),
        (("matrix", "--list", "--keep", "no-such-folder"), "--keep would come to nothing"),
        (("mutants", "--list", "--only", "retry_on_timeout"), "--only would come to nothing"),
        (("mutants", "--only", "restore_keeps_ready"), "--only restore_keeps_ready: cannot be tried yet; it awaits"),
        (("mutants", "--only", "no_such_rule"), "--only no_such_rule: there is no such mutant"),
        (("contracts", "--sabotage", "retry_on_timeout"), "without --check nothing is checked: --sabotage"),
        (("contracts", "--keep", "no-such-folder"), "without --check nothing is checked: --keep"),
        (("simulate", "--world", "0", "--operations", "5"), "--world tells one world: --operations"),
        (("simulate", "--world", "0", "--keep", "no-such-folder"), "--world tells one world: --keep"),
        (("kill-loop", "--kills", "0"), "--kills"),
    ],
)
def test_what_asks_for_nothing_does_not_pass(arguments, problem):
    """An option that would be ignored, and a choice that leaves nothing to play, are refused in a sentence."""
    code, said, complaint = lab(*arguments, "--json")
    assert (code, problem in complaint, problem in json.loads(said)["error"]) == (NOT_RUN, True, True)


def test_a_cell_that_is_named_twice_is_played_once():
    """As is a mutant."""
    code, said, _ = lab("matrix", "--cell", "7-LS", "--cell", "7-LS", "--json")
    assert (code, json.loads(said)["cells"], json.loads(said)["passed"]) == (0, 1, 1)
