"""Sabotage: a rule that is turned off is noticed, and nothing else is taken for a broken rule."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.sabotage import MUTANTS, NOTICED, TEN, checked, command

SECONDS = 100
NOT_RUN = 3


def lab(*arguments, environment=None):
    """Run the laboratory's command; exit code, standard output, standard error."""
    argv = [sys.executable, "-m", "counterfoil.lab", *map(str, arguments)]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    return run.returncode, run.stdout, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "contract", "figure"),
    [
        ("retry_on_timeout", "lab.lookup", "duplicates"),
        ("retry_on_timeout", "lab.nothing", "duplicates"),
        ("retry_on_timeout", "lab.key", "excess_sends"),
        ("new_key_per_attempt", "lab.key", "unrecorded"),
        ("timeout_is_rejected", "lab.nothing", "false_outcomes"),
        ("send_before_record", "lab.lookup", "unrecorded"),
        ("transport_retries", "lab.nothing", "excess_sends"),
    ],
)
def test_a_rule_turned_off_breaks_the_kill_loop(mutant, contract, figure):
    """Effects happen twice, or the wire shows what no receipt allowed, or a receipt lies: JSON, and exit code 1."""
    code, said, _ = lab(
        "kill-loop",
        "--operations",
        16,
        "--kills",
        2,
        "--contract",
        contract,
        "--sabotage",
        mutant,
        "--json",
    )
    result = json.loads(said.splitlines()[-1])
    assert (code, result["ok"]) == (1, False)
    assert result[figure] > 0
    assert result["operations"] == 16


def test_ten_rules_are_noticed_by_three_commands():
    """Each of the ten may be turned off in worlds, in the kill loop and in the chaos; `make sabotaged` does so."""
    assert len(TEN) == 10
    assert "retry_on_timeout" in TEN
    for name in ("simulate", "kill-loop", "chaos"):
        assert NOTICED[name][0] >= TEN, name
    makefile = (Path(__file__).parents[3] / "Makefile").read_text("utf-8")
    assert [f"$(call noticed,{name} " in makefile for name in ("simulate", "kill-loop", "chaos")] == [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "mutant", "figure"),
    [
        (
            ("kill-loop", "--operations", 40, "--kills", 2, "--contract", "lab.nothing"),
            "accepted_is_success",
            "violations",
        ),
        (
            ("kill-loop", "--operations", 40, "--kills", 2, "--contract", "lab.nothing"),
            "bad_json_is_success",
            "violations",
        ),
        (("chaos", "--kills", 5), "new_key_per_attempt", "unrecorded"),
        (("chaos", "--kills", 5), "timeout_is_rejected", "violations"),
    ],
)
def test_a_rule_of_the_ten_turned_off_breaks_what_counts(command, mutant, figure):
    """On the wire, in the receipts, or in what their contract proves: JSON, and exit code 1."""
    code, said, _ = lab(*command, "--sabotage", mutant, "--json")
    result = json.loads(said.splitlines()[-1])
    assert (code, result["ok"]) == (1, False)
    assert result[figure] > 0


@pytest.mark.parametrize("name", NOTICED)
def test_an_unknown_mutant_is_no_broken_rule(name):
    """A mutant nobody wrote is refused by name, with those there are, and exits 3."""
    whose = ("--", "true") if name == "certify" else ()
    code, said, complaint = lab(name, "--sabotage", "no_such_rule", "--json", *whose)
    assert code == NOT_RUN
    assert f"no_such_rule: there is no such mutant; there are: {', '.join(sorted(MUTANTS))}" in complaint
    assert "no such mutant" in json.loads(said)["error"]


@pytest.mark.parametrize("name", NOTICED)
def test_a_mutant_that_cannot_be_noticed_is_refused(name):
    """A command in which nobody approves anything would hold under a mutant of approvals, which would prove nothing."""
    unnoticed = sorted(set(MUTANTS) - NOTICED[name][0])
    assert unnoticed, name
    for mutant in unnoticed:
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
    assert [checked(mutant, name) for name, (noticed, _) in NOTICED.items() for mutant in sorted(noticed)] == [
        mutant for noticed, _ in NOTICED.values() for mutant in sorted(noticed)
    ]
    assert checked(None) is None
    with pytest.raises(RunFailed):
        checked("")
