"""The kill loop at a small size: killed again and again, recounted by a stranger, and its scores held to account."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys

import pytest
from tests.integration.lab.stranger import recount

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.kill_loop import together
from counterfoil.lab.lifetime import check_ended, start_run
from counterfoil.lab.scoreboard import score
from counterfoil.lab.yardstick import measured

SECONDS = 110
OPERATIONS, KILLS = 40, 8
CONTRACTS = ["lab.key", "lab.lookup", "lab.nothing"]
WINDOWS = ["before_claim", "claim_to_outcome", "look_to_evidence", "after_outcome"]


def lab(*arguments):
    """Run the laboratory's command as a stranger would; its exit code and its last line's object."""
    command = [sys.executable, "-m", "counterfoil.lab", *map(str, arguments), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One loop under all three contracts, with what it left behind."""
    folder = tmp_path_factory.mktemp("kill-loop") / "kept"
    code, result = lab("kill-loop", "--operations", OPERATIONS, "--kills", KILLS, "--keep", folder)
    return folder, code, result


@pytest.fixture
def copy(kept, tmp_path):
    """One contract's run, to be changed."""
    shutil.copytree(kept[0] / "lab.lookup", tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["duplicates", "unrecorded", "excess_sends", "false_outcomes", "unsettled"])
def test_no_kill_breaks_a_rule(kept, name):
    """Nothing twice, nothing without a receipt, no receipt that says what did not happen, and nothing forgotten."""
    _, code, result = kept
    assert (code, result["ok"], result[name]) == (0, True, 0)


@pytest.mark.slow
def test_every_operation_has_its_receipt(kept):
    """Killed or not, every line of the file has one receipt, and silence was met often enough to matter."""
    _, _, result = kept
    assert list(result["contracts"]) == CONTRACTS
    assert all(figures["operations"] == OPERATIONS for figures in result["contracts"].values())
    assert result["operations"] == len(CONTRACTS) * OPERATIONS
    assert result["unknown_seen"] >= OPERATIONS // 2


@pytest.mark.slow
def test_what_nobody_can_ask_about_is_a_persons_turn(kept):
    """Where the contract has no look every unknown ends in review; where it has a strong one, none needs to."""
    _, _, result = kept
    nothing, lookup = result["contracts"]["lab.nothing"], result["contracts"]["lab.lookup"]
    assert nothing["manual_review"] == nothing["unknown_seen"] > 0
    assert lookup["manual_review"] < lookup["unknown_seen"]


@pytest.mark.slow
def test_a_third_of_the_kills_falls_between_claim_and_outcome(kept):
    """The kills are counted by window, and enough of them fall where a retry would do harm."""
    _, _, result = kept
    windows = result["kills_by_window"]
    assert list(windows) == WINDOWS
    assert sum(windows.values()) == result["kills"] == len(CONTRACTS) * KILLS
    assert windows["claim_to_outcome"] * 3 >= result["kills"]


@pytest.mark.slow
def test_a_stranger_counts_the_same(kept):
    """The recount shares no code with the loop and agrees on every figure, the windows of the kills included."""
    folder, _, result = kept
    code, counts = recount(folder)
    assert (code, counts["disagreements"]) == (0, [])
    assert counts["kills_by_window"] == result["kills_by_window"]


@pytest.mark.slow
def test_exports_are_kept(kept):
    """Every receipt is left as a document too, and after all those kills no chain is broken."""
    folder, _, _ = kept
    for contract in CONTRACTS:
        exported = [json.loads(path.read_text()) for path in (folder / contract / "exports").iterdir()]
        assert len(exported) == OPERATIONS
        assert {document["authentication_recorded"] for document in exported} == {False}
        assert [document["chain"]["violations"] for document in exported if document["chain"]["violations"]] == []


def effect_lost(folder):
    """The provider's record of a succeeded receipt's effect disappears."""
    path = folder / "effects.jsonl"
    path.write_text(path.read_text().split("\n", 1)[1])


def effect_twice(folder):
    """One effect happens once more."""
    path = folder / "effects.jsonl"
    path.write_text(path.read_text() + path.read_text().split("\n", 1)[0] + "\n")


def effect_of_nobody(folder):
    """An effect happens that no receipt names."""
    path = folder / "effects.jsonl"
    line = json.loads(path.read_text().split("\n", 1)[0]) | {"reference": "op_of_nobody"}
    path.write_text(path.read_text() + json.dumps(line) + "\n")


def send_repeated(folder):
    """A transport sends everything once more."""
    path = folder / "wire.jsonl"
    path.write_text(path.read_text() * 2)


def change(folder, statement):
    """Change the store behind the product's back."""
    store = sqlite3.connect(folder / "receipts.db")
    assert store.execute(statement).rowcount > 0
    store.commit()
    store.close()


def success_denied(folder):
    """A receipt whose effect happened says that it was rejected."""
    change(
        folder,
        "UPDATE operation SET outcome = 'rejected', settled_by = 'rejected:answer' "
        "WHERE n = (SELECT min(n) FROM operation WHERE outcome = 'succeeded')",
    )


def receipt_lost(folder):
    """A receipt disappears."""
    change(folder, "DELETE FROM operation WHERE n = (SELECT min(n) FROM operation WHERE outcome = 'succeeded')")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tamper", "figure"),
    [
        (effect_lost, "false_outcomes"),
        (effect_twice, "duplicates"),
        (effect_of_nobody, "unrecorded"),
        (send_repeated, "excess_sends"),
        (success_denied, "false_outcomes"),
        (receipt_lost, "unrecorded"),
    ],
)
def test_every_figure_can_be_other_than_nought(copy, tamper, figure):
    """Truth and receipts that were made to differ show in the figure that is about it, in both counts alike."""
    tamper(copy)
    assert getattr(score(copy), figure) > 0
    _, counts = recount(copy)
    assert counts[figure] == getattr(score(copy), figure)


@pytest.mark.slow
def test_a_changed_folder_does_not_recount(kept, tmp_path):
    """Whoever edits what was kept, or takes a file of it away, is found out."""
    changed = tmp_path / "changed"
    shutil.copytree(kept[0], changed)
    effect_twice(changed / "lab.key")
    assert recount(changed)[0] == 1
    (changed / "lab.nothing" / "wire.jsonl").unlink()
    _, counts = recount(changed)
    assert "lab.nothing: sends: reported" in " ".join(counts["disagreements"])


@pytest.mark.slow
def test_another_seed_and_one_contract():
    """One contract can be asked for alone."""
    code, result = lab("kill-loop", "--operations", 12, "--kills", 1, "--contract", "lab.lookup", "--seed", 5)
    assert (list(result["contracts"]), result["kills"], result["operations"]) == (["lab.lookup"], 1, 12)
    assert code == 0 or result["error"].startswith("too little was met: lab.lookup: claim_to_outcome is 0")


def test_a_figure_that_is_not_what_it_must_be_is_named():
    """A broken rule is one; where too little was met no rule is blamed, and the run says nothing."""
    figures = {"duplicates": 0, "operations": 2, "unknown_seen": 1, "claim_to_outcome": 3}
    must, least = {"duplicates": 0, "operations": 2}, {"unknown_seen": 0.5, "claim_to_outcome": 3}
    assert measured(figures, must, least) == {"why": [], "ok": True}
    few = measured(figures | {"unknown_seen": 0}, must, least)
    said = "unknown_seen is 0, below 0.5"
    assert few == {"why": [said], "ok": False, "error": f"too little was met: {said}"}
    broken = measured(figures | {"unknown_seen": 0, "duplicates": 2, "operations": 1}, must, least)
    assert broken["why"] == ["duplicates is 2, not 0", "operations is 1, not 2", "unknown_seen is 0, below 0.5"]
    assert (broken["ok"], "error" in broken) == (False, False)


def test_a_broken_rule_is_one_whatever_else_was_met():
    """Each figure is named with its contract; only where none is forbidden does the whole loop say nothing."""
    held, few = {"why": [], "ok": True}, {"why": ["too few"], "ok": False, "error": "too little was met: too few"}
    broken = {"why": ["duplicates is 2, not 0"], "ok": False}
    assert together({"a": held, "b": held}) == {"why": [], "ok": True}
    few_only = {"why": ["b: too few"], "ok": False, "error": "too little was met: b: too few"}
    assert together({"a": held, "b": few}) == few_only
    assert together({"a": broken, "b": few}) == {"why": ["a: duplicates is 2, not 0", "b: too few"], "ok": False}


def test_a_run_that_cannot_go_on_has_a_reason(tmp_path):
    """It said why where nobody listens: what its exit code means is told instead."""
    run = start_run(tmp_path / "no-such-file", calls=1, wait_seconds=0, mutant=None)
    with run, pytest.raises(RunFailed, match=r"a run ended with \d: [a-z]+"):
        check_ended(run, "a run")
