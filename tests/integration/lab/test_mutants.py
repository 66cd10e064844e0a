"""Each safety rule turned off is noticed by a law, and the list of them is whole."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys

import msgspec
import pytest
from rich.console import Console

from counterfoil import contracts
from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.judge import judge
from counterfoil.domain.words import Finding
from counterfoil.lab import canary, tampering
from counterfoil.lab.mutants import command, page, racing
from counterfoil.lab.mutants.catalogue import BAR, CATALOGUE, MUTANTS
from counterfoil.plans import observing

SECONDS = 110
HARDEST = (
    "clock_before_claim", "retention_ignored", "short_retention_accepted", "last_rejection_wins", "stale_sweep",
    "recovery_ignores_hand", "absent_overwrites_found", "override_reusable", "alive_is_in_hand", "chain_skips_tail",
    "select_then_update",
)  # fmt: skip
"""Those that only a rare order of things, or a rare world, brings to light."""
AWAITED = {27, 44, 45}
"""What is not built; whoever builds it takes it from here."""


def lab(*arguments):
    """Run the command as a stranger would; its exit code and its last line's object."""
    argv = [sys.executable, "-m", "counterfoil.lab", "mutants", *map(str, arguments), "--json"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.stdout, run.stderr
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


def test_the_list_is_whole():
    """Forty-eight, numbered as in the bar, each with its rule, its laws and who must notice; few await anything."""
    bar = [mutant for mutant in CATALOGUE if mutant.number <= BAR]
    assert [mutant.number for mutant in bar] == list(range(1, BAR + 1))
    assert len(MUTANTS) == len(CATALOGUE)
    assert {mutant.number for mutant in bar if mutant.awaits} == AWAITED
    for mutant in CATALOGUE:
        assert mutant.says()
        assert bool(mutant.awaits) or (mutant.off is not None and mutant.laws), mutant.slug


def test_the_list_is_told():
    """By name, with the rule that is off and the laws that must notice."""
    code, told = lab("--list")
    assert (code, [m["number"] for m in told["mutants"]]) == (0, [m.number for m in CATALOGUE])
    out = Console(file=io.StringIO(), width=120)
    page.show_list(command.listed(), out)
    assert all(mutant.slug in out.file.getvalue() for mutant in CATALOGUE)


@pytest.mark.slow
def test_the_hardest_are_noticed():
    """Each by a law of its own, none by a crash; and with every rule in force the same worlds hold."""
    code, told = lab(*(word for slug in HARDEST for word in ("--only", slug)))
    assert (code, told["survivors"], told["broken_without"]) == (0, [], [])
    assert (told["killed"], told["mutants"]) == (len(HARDEST), BAR)
    assert all(row["law"] in MUTANTS[row["slug"]].laws for row in told["rows"])
    out = Console(file=io.StringIO(), width=120)
    page.show(told, out)
    assert all(slug in out.file.getvalue() for slug in HARDEST)


@pytest.mark.slow
def test_what_noticed_a_mutant_can_be_seen_again():
    """Each trial has the command for it, which tells a world event by event and breaks the same law."""
    _, told = lab("--only", "override_reusable")
    (row,) = told["rows"]
    program, *arguments = shlex.split(row["again"])
    argv = [sys.executable, "-m", "counterfoil.lab", *arguments, "--json"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (program, run.returncode) == ("counterfoil-lab", 1)
    assert row["said"] in json.loads(run.stdout)["violations"]


def test_a_survivor_is_told(monkeypatch):
    """A rule that nothing notices fails the run, with its name."""
    monkeypatch.setattr(command, "WORLDS_MAX", 0)
    told = command.run(command.Plan(tier="pr", slugs=("override_reusable",)), lambda _: None)
    assert (told["survivors"], told["killed"], told["ok"]) == (["override_reusable"], 0, False)


def test_a_mutant_that_nobody_wrote_is_no_survivor():
    """It is refused by name, and exits 3."""
    code, told = lab("--only", "no_such_rule")
    assert (code, "no such mutant" in told["error"]) == (3, True)


MISREADINGS = {
    "timeout_is_rejected": Silent(may_have_left=True, reason="timeout"),
    "error_is_rejected": Replied(status=500, body=b'{"error": "internal"}'),
    "bad_json_is_success": Replied(status=200, body=b"<html>"),
    "status_line_is_success": Replied(status=201, complete=False, reason="reset"),
    "accepted_is_success": Replied(status=202, body=b'{"state": "queued"}'),
}
"""What each mutant of the judge misreads."""


@pytest.mark.parametrize("name", ["lab.key", "lab.lookup", "lab.nothing"])
@pytest.mark.parametrize("mutant", MISREADINGS)
def test_a_misreading_names_a_clause_that_there_is(monkeypatch, mutant, name):
    """The clause that would have proven it: a mutant must be noticed by what it does, never by a name of its own."""
    contract = contracts.load(name)
    monkeypatch.setattr(observing, "judge", judge)
    MUTANTS[mutant].off()
    read = observing.judge(contract, MISREADINGS[mutant], 1, "refund")
    clauses = {f"answers[{place}]": clause for place, clause in enumerate(contract.answers)}
    assert judge(contract, MISREADINGS[mutant], 1, "refund").finding is Finding.UNKNOWN
    assert (read.finding.value, read.coverage) == (clauses[read.rule].finding, clauses[read.rule].coverage)


def test_a_function_whose_silence_is_misread_is_said_to_have_refused(monkeypatch):
    """It has no clauses; the house's own rule for a refusal is the one."""
    contract = msgspec.structs.replace(contracts.load("lab.nothing"), answers=())
    monkeypatch.setattr(observing, "judge", judge)
    MUTANTS["timeout_is_rejected"].off()
    read = observing.judge(contract, MISREADINGS["timeout_is_rejected"], 1, "refund")
    assert (read.finding, read.rule) == (Finding.REJECTED, "function.refused")


@pytest.mark.slow
def test_every_way_of_tampering_is_named(tmp_path):
    """Edited, deleted, moved, inserted, the end cut off: verification names the operation; of a whole book, nothing."""
    told = tampering.judged(tmp_path)
    assert [one.way for one in told] == list(tampering.WAYS)
    assert all(one.named for one in told), told


def test_of_two_callers_one_sends(postgres):
    """Wherever the one is stopped while the other goes through, what was not sent before is sent once, by either."""
    told = racing.raced(postgres.book())
    assert told["races"] == len(told["sent"]) > 10
    assert (set(told["sent"].values()), told["twice"]) == ({1}, [])


@pytest.mark.parametrize("spelling", range(6))
def test_a_secret_is_found_however_it_is_spelt(tmp_path, spelling):
    """As it is, in hexadecimal, URL-encoded or in base64 at any offset, also where two reads of the file meet."""
    secret = "s3cret/credential+value"
    forms = canary.spellings(secret)
    assert len(forms) == 6
    (tmp_path / "clean").write_bytes(b"x" * 100)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "log").write_bytes(b"x" * (canary.CHUNK_BYTES - 4) + forms[spelling] + b"y")
    assert canary.leaks(tmp_path, secret) == ["below/log"]


def test_only_one_leaves_none_for_later():
    """What was asked for by name is all that was asked for."""
    plan = command.Plan(tier="pr", slugs=("send_before_record",))
    assert [m.slug for m in plan.chosen()] == ["send_before_record"]
    assert plan.left() == []
    assert command.Plan(tier="pr").left() != [] or command.Plan(tier="full").left() == []


@pytest.mark.parametrize("width", [80, 120])
def test_no_name_is_cut_in_the_list(width):
    """A name that is cut cannot be given to `--only`."""
    out = io.StringIO()
    page.show_list(command.listed(), Console(file=out, width=width))
    told = out.getvalue().split()
    assert [m["slug"] for m in command.listed() if m["slug"] not in told] == []
