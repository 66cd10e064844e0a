"""The demo: its rows are what really happened, it is recounted by a stranger, and it notices a broken rule."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from tests.integration.lab.stranger import disagreements

from counterfoil.lab.journal import read

SECONDS = 100
CASES = ["T", "K", "L"]


def lab(*arguments):
    """Run the laboratory's command as a stranger would; its exit code, its last line's object and its words."""
    command = [sys.executable, "-m", "counterfoil.lab", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = run.stdout.splitlines()
    return run.returncode, json.loads(lines[-1]) if "--json" in arguments else lines, run.stderr


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One demo as people see it: where it kept its truth, its exit code and its page."""
    folder = tmp_path_factory.mktemp("demo") / "kept"
    code, page, _ = lab("demo", "--keep", folder)
    return folder, code, page


@pytest.fixture(scope="module")
def kept(demo):
    """The same with its result instead of the page."""
    folder, code, _ = demo
    return folder, code, json.loads((folder / "result.json").read_text())


@pytest.mark.slow
def test_three_accidents_naive_and_guarded(kept):
    """The same loop has more than one effect in every case without a receipt, and one in every case with it."""
    _, code, result = kept
    rows = {(row["case"], row["runner"]): row for row in result["rows"]}
    assert list(rows) == [(case, runner) for case in CASES for runner in ("naive", "guarded")]
    assert (code, result["ok"]) == (0, True)
    for case in CASES:
        assert rows[case, "naive"]["effects"] > 1
        assert rows[case, "guarded"]["effects"] == rows[case, "guarded"]["sent"] == 1
        assert rows[case, "guarded"]["outcome"] == "succeeded"
    assert all(rows["L", runner]["waited_seconds"] >= 1 for runner in ("naive", "guarded"))


@pytest.mark.slow
def test_silence_is_called_unknown_and_settled_by_a_look(kept):
    """Each guarded receipt goes from unknown to succeeded by evidence of a look, never by another send."""
    folder, _, _ = kept
    for case in CASES:
        (path,) = (folder / f"{case}-guarded" / "exports").iterdir()
        exported = json.loads(path.read_text())
        findings = [(entry["source"], entry["finding"]) for entry in exported["evidence"]]
        assert exported["state"] == "succeeded"
        assert findings[0] == ("transport", "unknown")
        assert findings[-1] == ("look", "succeeded")
        assert len(exported["attempts"]) == 1


@pytest.mark.slow
def test_the_model_tries_again_and_nothing_is_sent(kept):
    """The guarded loop asks for the refund as stubbornly as the naive one; every answer but the last is unknown."""
    folder, _, _ = kept
    said = read(folder / "T-guarded" / "transcript.jsonl")
    answers = [line["answer"] for line in said if line["who"] == "tool"]
    assert [line["what"] for line in said if line["who"] == "model"] == ["refund"] * 3 + ["get_outcome"]
    assert [answer["outcome"] for answer in answers] == ["unknown"] * 3 + ["succeeded"]
    assert {answer["operation"] for answer in answers} == {answers[0]["operation"]}
    assert all(answer["recovery_action"] == "no_replay" for answer in answers[:-1])


@pytest.mark.slow
def test_the_recount_agrees_and_notices_a_change(kept, tmp_path):
    """What was kept recounts to the rows; one effect more, or a source less, does not."""
    folder, _, _ = kept
    assert disagreements(folder) == (0, [])
    changed = tmp_path / "changed"
    shutil.copytree(folder, changed)
    effects = changed / "K-guarded" / "effects.jsonl"
    effects.write_text(effects.read_text() * 2)
    code, found = disagreements(changed)
    assert (code, found[0]) == (1, "K-guarded: effects: reported 1, counted 2")
    assert any(line.startswith("ok: reported True") for line in found)
    shutil.rmtree(changed / "K-guarded")
    code, found = disagreements(changed)
    assert (code, len(found)) == (1, 2)


@pytest.mark.slow
def test_the_page_shows_effects_and_the_way_from_unknown(demo):
    """People get both dialogues, the table of true effects, the receipt's timeline and what all of it shows."""
    _, _, page = demo
    text = "\n".join(page)
    assert [row.split()[-5:-2] for row in page if "naive" in row and "✓ succeeded" in row] == [["naive", "2", "2"]] * 3
    assert [row.split()[-5:-2] for row in page if "guarded" in row and "✓ succeeded" in row] == [
        ["guarded", "1", "1"]
    ] * 3
    outcome = next(row for row in page if row.startswith("outcome"))
    assert outcome.index("unobserved") < outcome.index("unknown") < outcome.index("succeeded")
    assert "3 refunds were due: 6 without receipts, 3 with them." in text


@pytest.mark.slow
def test_a_second_send_on_silence_is_noticed():
    """With the rule off the demo still prints every row, says that it is not ok and exits 1."""
    code, result, _ = lab("demo", "--json", "--sabotage", "retry_on_timeout")
    assert (code, result["ok"], len(result["rows"])) == (1, False, 6)
    assert next(row["effects"] for row in result["rows"] if (row["case"], row["runner"]) == ("T", "guarded")) == 2
