"""Nothing goes without its authority: cases against a real provider, recounted by a stranger, broken on purpose."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import subprocess
import sys

import pytest
from rich.console import Console
from tests.integration.lab.stranger import recount

from counterfoil.lab import approvals
from counterfoil.lab.approvals_page import show
from counterfoil.lab.report import judged
from counterfoil.lab.run_folder import write_result
from counterfoil.lab.sabotage import MUTANTS, NOTICED

SECONDS = 110
COLUMNS = 80
SOME = (
    "payload: nothing differs",
    "intent: payload.amount",
    "intent: base_url",
    "contract: answers",
    "policy: rule.approval.people",
    "code: a constant",
    "payload: tampered in the store, called",
    "call: revoked before effect 5 (Amend)",
    "call: expired before effect 6 (Send)",
    "clock: forth over the end and back",
    "use: after not_sent",
    "override: one, three attempts",
    "who: the requester",
    "at once: approved and denied",
    "replay: another operation's approval",
    "replay: another tenant's approval",
    "replay: its own approval, revoked before",
    "replay: its own approval, expired before",
    "replay: its own approval, used before",
    "hold: held, released, called",
)
"""One case of each kind, and all those in which an approval is copied."""
NOTICES = {
    "retry_on_timeout": "use: after an unknown outcome, by its caller",
    "approval_not_bound": "contract: answers",
    "expiry_ignored": "clock: forth over the end and back",
    "approval_before_claim": "worker: revoked before effect 4 (Amend)",
    "approver_is_requester": "who: the requester",
    "abandon_does_not_block": "override: then abandoned",
    "override_reusable": "override: one, three attempts",
}
"""A case that shows each mutant up."""


def lab(*arguments):
    """Run the command as a stranger would; its exit code and its last line's object."""
    command = [sys.executable, "-m", "counterfoil.lab", "approvals", *map(str, arguments), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Some cases, with what they left behind."""
    folder = tmp_path_factory.mktemp("approvals")
    told = []
    result = judged(approvals.run(folder, None, told.append, only=SOME), None)
    assert told == list(SOME)
    write_result(folder, result)
    return folder, result


@pytest.fixture
def copy(kept, tmp_path):
    """The same run, to be changed."""
    shutil.copytree(kept[0], tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.parametrize("case", SOME)
def test_a_case_comes_out_as_it_must(kept, case):
    """What was expected is what the provider's own logs counted, and all of it had been allowed."""
    (row,) = (row for row in kept[1]["rows"] if row["case"] == case)
    assert row["held"], row
    assert row["sent"] <= row["authorised"]


def test_some_cases_add_up(kept):
    """Nothing without authority, nothing twice, and what was changed was refused."""
    result = kept[1]
    assert result["ok"]
    assert (result["cases"], result["bytes_sent_without_authority"], result["approvals_used_twice"]) == (
        len(SOME), 0, 0,
    )  # fmt: skip
    assert result["mutations_refused"] > 0


def test_a_stranger_counts_the_same(kept):
    """The recount shares no code with the laboratory and agrees on the sums and on every row; so few prove nothing."""
    code, counts = recount(kept[0])
    assert (code, counts["disagreements"]) == (1, [f"ok: reported True, and only {len(SOME)} cases were played"])
    assert counts["cases"] == len(SOME)


def change(folder, case, *statements):
    """Change one case's receipts behind everybody's back."""
    name = "".join(c if c.isalnum() or c in "._" else "-" for c in case)
    store = sqlite3.connect(folder / "cases" / name / "receipts.db")
    for statement in statements:
        assert store.execute(statement).rowcount != 0
    store.commit()
    store.close()


def approval_lost(folder):
    """The approval under which something was sent has never been there."""
    change(
        folder, SOME[0], "DROP TRIGGER event_is_final",
        "UPDATE event SET kind = 'noted' WHERE kind = 'decided'",
    )  # fmt: skip


def payload_changed(folder):
    """What was frozen is not what was sent."""
    change(folder, SOME[0], "UPDATE event SET body = CAST(body || ' ' AS BLOB) WHERE kind = 'proposed'")


def contract_changed(folder):
    """It was claimed under another contract than the approved one."""
    record = "CAST(replace(CAST(record AS TEXT), 'ct1:', 'ct1:0') AS BLOB)"
    change(
        folder, SOME[0], "DROP TRIGGER event_is_final", f"UPDATE event SET record = {record} WHERE kind = 'begun'"
    )  # fmt: skip


def send_repeated(folder):
    """A transport sends everything once more."""
    wire = folder / "wire.jsonl"
    wire.write_text(wire.read_text() * 2)


def send_of_nobody(folder):
    """Something is sent that no receipt names."""
    wire = folder / "wire.jsonl"
    line = json.loads(wire.read_text().split("\n", 1)[0]) | {"reference": "op_of_nobody"}
    wire.write_text(wire.read_text() + json.dumps(line) + "\n")


@pytest.mark.parametrize("done", [approval_lost, payload_changed, contract_changed, send_repeated, send_of_nobody])
def test_a_stranger_disagrees_aloud(copy, done):
    """Whatever takes the authority from a send is counted by the recount, and it says so."""
    done(copy)
    code, counts = recount(copy)
    assert code == 1
    assert counts["bytes_sent_without_authority"] > 0
    assert any(line.startswith("bytes_sent_without_authority: reported 0") for line in counts["disagreements"])


def test_a_row_that_says_something_else_is_named(copy):
    """A figure of one row that was not counted so is a disagreement with that row's name."""
    result = json.loads((copy / "result.json").read_text())
    result["rows"][0]["sent"] += 1
    (copy / "result.json").write_text(json.dumps(result))
    assert f"{SOME[0]}: sends: reported 2, counted 1" in recount(copy)[1]["disagreements"]


@pytest.mark.slow
def test_the_whole_command(tmp_path):
    """Every field, every moment, every use: more than fifty cases, nothing without authority, nothing twice."""
    code, result = lab("--keep", tmp_path / "kept")
    assert (code, result["ok"]) == (0, True), [row for row in result["rows"] if not row["held"]]
    assert result["cases"] == len(result["rows"]) == len(approvals.CASES) >= approvals.CASES_MIN
    assert (result["bytes_sent_without_authority"], result["approvals_used_twice"]) == (0, 0)
    assert result["mutations_refused"] == sum(case.mutates for case in approvals.CASES.values()) > 0
    assert recount(tmp_path / "kept")[1]["disagreements"] == []


def test_every_mutant_has_its_case():
    """No rule can be turned off for which no case is known that shows it."""
    assert set(NOTICES) == NOTICED["approvals"][0]
    assert set(MUTANTS) - {mutant for noticed, _ in NOTICED.values() for mutant in noticed} == {
        "chain_skips_tail",
        "select_then_update",
    }


@pytest.mark.slow
@pytest.mark.parametrize("mutant", NOTICES)
def test_a_mutant_is_noticed(tmp_path, mutant):
    """With one rule off the command prints its JSON and exits 1, and a stranger counts the same harm."""
    code, result = lab("--keep", tmp_path / "kept", "--sabotage", mutant)
    assert (code, result["ok"]) == (1, False)
    assert result["bytes_sent_without_authority"] > 0
    assert NOTICES[mutant] in {row["case"] for row in result["rows"] if not row["held"]}
    assert recount(tmp_path / "kept")[1]["disagreements"] == []


@pytest.mark.parametrize("held", [True, False])
def test_the_page_fits(kept, held):
    """It can be read at 80 columns, and what did not come out as it must stands there in full."""
    result = json.loads(json.dumps(kept[1]))
    if not held:
        result["rows"][0]["held"] = result["ok"] = False
    page = io.StringIO()
    show(result, Console(file=page, width=COLUMNS))
    said = page.getvalue()
    assert max(map(len, said.splitlines())) <= COLUMNS
    assert ("Nothing went without its authority" in said) is held
    assert (result["rows"][0]["expected"] in said) is not held
