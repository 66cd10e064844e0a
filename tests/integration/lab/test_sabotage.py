"""Sabotage: a rule that is turned off is noticed, and nothing else is taken for a broken rule."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.sabotage import MUTANTS, checked, command

SECONDS = 100
NOT_RUN = 3


def lab(*arguments, environment=None):
    """Run the laboratory's command; exit code, standard output, standard error."""
    argv = [sys.executable, "-m", "counterfoil.lab", *map(str, arguments)]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    return run.returncode, run.stdout, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contract", "figure"),
    [("lab.lookup", "duplicates"), ("lab.nothing", "duplicates"), ("lab.key", "excess_sends")],
)
def test_a_second_send_on_silence_breaks_the_kill_loop(contract, figure):
    """Without the rule effects happen twice, or the wire shows sends that no receipt allowed: JSON, and exit code 1."""
    code, said, _ = lab(
        "kill-loop",
        "--operations",
        16,
        "--kills",
        2,
        "--contract",
        contract,
        "--sabotage",
        "retry_on_timeout",
        "--json",
    )
    result = json.loads(said.splitlines()[-1])
    assert (code, result["ok"]) == (1, False)
    assert result[figure] > 0
    assert result["operations"] == 16


@pytest.mark.parametrize("name", ["demo", "kill-loop", "approvals", "bench"])
def test_an_unknown_mutant_is_no_broken_rule(name):
    """A mutant nobody wrote is refused by name, with those there are, and exits 3."""
    code, said, complaint = lab(name, "--sabotage", "no_such_rule", "--json")
    assert code == NOT_RUN
    assert f"no_such_rule: there is no such mutant; there are: {', '.join(sorted(MUTANTS))}" in complaint
    assert "no such mutant" in json.loads(said)["error"]


@pytest.mark.parametrize("mutant", sorted(set(MUTANTS) - {"retry_on_timeout"}))
@pytest.mark.parametrize("name", ["demo", "kill-loop", "certify", "bench"])
def test_a_mutant_that_cannot_be_noticed_is_refused(name, mutant):
    """A command in which nobody approves anything would hold under a mutant of approvals, which would prove nothing."""
    with pytest.raises(RunFailed, match=f"{mutant}: .*so it could not notice"):
        checked(mutant, name)


def test_a_benchmark_notices_none():
    """Refused as the command refuses it: with exit code 3."""
    code, said, _ = lab("bench", "--sabotage", "retry_on_timeout", "--json")
    assert code == NOT_RUN
    assert "could not notice" in json.loads(said)["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["kill-loop", "--kills", "many"],
        ["kill-loop", "--contract", "lab.other"],
        ["demo", "--nonsense"],
        ["nothing"],
        [],
    ],
)
def test_a_bad_command_line_is_no_broken_rule(arguments):
    """What cannot be read exits 3, never 1 or 2."""
    code, _, complaint = lab(*arguments)
    assert code == NOT_RUN
    assert "counterfoil-lab: " in complaint


def test_a_folder_with_another_run_is_refused(tmp_path):
    """Two runs in one folder would be counted as one."""
    (tmp_path / "effects.jsonl").write_text("")
    code, _, complaint = lab("demo", "--keep", tmp_path)
    assert code == NOT_RUN
    assert "is not empty" in complaint


@pytest.mark.slow
def test_a_run_that_cannot_be_made_is_no_broken_rule(tmp_path):
    """Set-up that fails exits 3 with its reason, also under sabotage."""
    (tmp_path / "file").write_text("")
    code, _, complaint = lab("demo", "--keep", tmp_path / "file" / "below", "--sabotage", "retry_on_timeout")
    assert code == NOT_RUN
    assert "cannot be used" in complaint


def test_the_mutant_goes_by_the_launcher_only():
    """Without a mutant the real module is run, and nothing of the laboratory stands before it."""
    assert "counterfoil.lab.sabotage" not in command(None, "counterfoil.cli", "run")
    assert command("retry_on_timeout", "counterfoil.cli", "run")[1:4] == [
        "-m", "counterfoil.lab.sabotage", "retry_on_timeout"
    ]  # fmt: skip


def test_every_mutant_has_a_name_that_is_known():
    """The names are those that may be asked for; any other is refused."""
    assert [checked(name) for name in MUTANTS] == list(MUTANTS)
    assert [checked("retry_on_timeout", name) for name in ("demo", "kill-loop", "certify")] == ["retry_on_timeout"] * 3
    assert checked(None) is None
    with pytest.raises(RunFailed):
        checked("")
