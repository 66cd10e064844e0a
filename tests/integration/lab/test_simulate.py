"""Thousands of operations in virtual worlds: the same again by its seed, no law broken, and every mutant noticed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from tests.integration.lab.stranger import recount

from counterfoil.lab.shares import told_by
from counterfoil.lab.world import options
from counterfoil.lab.world.situations import SITUATIONS

SECONDS = 110
NOTICED = (
    "send_before_record", "retry_on_timeout", "new_key_per_attempt", "claim_ignores_state", "timeout_is_rejected",
    "error_is_rejected", "bad_json_is_success", "accepted_is_success", "absence_without_horizon",
    "conflict_returns_receipt",
)  # fmt: skip
"""Ten rules without which a few hundred operations are enough."""


def lab(*arguments, hashes="0"):
    """Run the command as a stranger would; its exit code and its last line's object."""
    command = [sys.executable, "-m", "counterfoil.lab", *map(str, arguments), "--json"]
    environment = os.environ | {"PYTHONHASHSEED": hashes}
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment
    )  # fmt: skip
    assert run.stdout, run.stderr
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A small simulation, with what it left behind."""
    folder = tmp_path_factory.mktemp("simulate") / "kept"
    return folder, lab("simulate", "--operations", 4_000, "--seed", 4_000, "--keep", folder)


@pytest.mark.slow
def test_no_law_is_broken(kept):
    """Whatever goes wrong in the worlds, nothing happens twice, nothing is lost and nothing is said that is not so."""
    _, (code, result) = kept
    assert (code, result["ok"], result["broken"]) == (0, True, [])
    assert result["operations"] >= 4_000
    assert (result["violations"], result["second_effects"], result["false_outcomes"], result["unrecorded"]) == (0,) * 4
    assert result["situations"]["total"] == len(SITUATIONS)
    assert result["situations"]["hit"] >= 200, result["situations"]["missing"]
    assert re.fullmatch("[0-9a-f]{64}", result["trace"])


@pytest.mark.slow
def test_a_stranger_counts_the_same(kept):
    """The recount imports nothing of ours and finds the same operations, sends and effects, and no second ones."""
    folder, (_, result) = kept
    code, counts = recount(folder)
    assert (code, counts["disagreements"]) == (0, [])
    assert (counts["operations"], counts["second_effects"]) == (result["operations"], 0)


def happened_again(folder):
    """Whether something happened twice in this world because a person allowed it."""
    said, happened = (
        [json.loads(line) for line in (folder / name).read_text().splitlines()]
        for name in ("words.jsonl", "effects.jsonl")
    )
    allowed = {word["name"] for word in said if word["verb"] == "override"}
    return any(len({e["wire"] for e in happened if e["name"] == name and e["wire"]}) > 1 for name in allowed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "figure"),
    [("effects.jsonl", "second_effects"), ("wire.jsonl", "sends"), ("words.jsonl", "second_effects")],
)
def test_a_stranger_disagrees_aloud(kept, tmp_path, file, figure):
    """An effect that came of another request, a send more, or a word that nobody said: the recount says so."""
    folder, _ = kept
    source = next(path.parent for path in sorted(folder.glob("*/words.jsonl")) if happened_again(path.parent))
    for path in [source, folder / "result.json"]:
        subprocess.run(["cp", "-r", str(path), str(tmp_path)], check=True)
    target = tmp_path / source.name / file
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    if file == "words.jsonl":
        lines = [line for line in lines if line["verb"] != "override"]
    else:
        changed = [line for line in lines if line.get("wire", 1)][-1]
        lines += [changed | {"wire": 10_000}, changed | {"wire": 10_001}]
    target.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before, after = recount(folder)[1]["runs"][source.name], recount(tmp_path)[1]["runs"][source.name]
    assert after[figure] > before[figure]


TOO_LATE = {
    "seed": "9-744", "operations": 11, "kinds": ["key", "nothing"],
    "rates": {"interrupt": 0.01937087836265797, "collision": 0.0037514168752887096},
    "sends": {
        "answered": 2.9815263691334164, "error_before": 0.6648394337763516, "throttled": 0.8460943818620154,
        "busy": 0.8762984300357537, "applied_beyond": 0.5984773236075136,
    },
    "looks": {"shown": 2.0395327902581095},
}  # fmt: skip
"""A request arrives after twenty times the assumed delivery, when the key that a replay used is forgotten."""


@pytest.mark.slow
def test_what_came_later_than_was_assumed_is_no_broken_law():
    """Found by a million operations, in a world that breaks the assumption A3; nothing could have kept it out."""
    code, story = lab("simulate", "--options", json.dumps(TOO_LATE))
    assert (code, story["ok"], story["violations"]) == (0, True, [])


@pytest.mark.slow
def test_a_seed_is_one_trace():
    """Event for event the same under another hash seed; another seed, or a rule turned off, is another trace."""
    given = ("simulate", "--operations", 150)
    traces = [lab(*given, "--seed", 5, hashes=hashes)[1]["trace"] for hashes in ("1", "2")]
    other = lab(*given, "--seed", 6)[1]["trace"]
    code, broken = lab(*given, "--seed", 5, "--sabotage", "timeout_is_rejected")
    assert traces[0] == traces[1]
    assert len({traces[0], other, broken["trace"]}) == 3
    assert (code, broken["ok"]) == (1, False)


def told(*arguments):
    """What the process that tells one world says of it, with a rule off."""
    lines = told_by("timeout_is_rejected", "counterfoil.lab.world.story", *map(str, arguments))
    return list(lines)


@pytest.mark.slow
def test_a_failing_world_can_be_told():
    """Everything that happened in it, as it did, and the laws that it broke, which are those of the whole run."""
    given = ("simulate", "--seed", 2, "--sabotage", "timeout_is_rejected")
    code, result = lab(*given, "--operations", 50)
    assert (code, result["laws"]["I5"] > 0) == (1, True)
    number = re.match(r"world 2-(\d+): ", result["broken"][0])[1]
    broken = [said.partition(": ")[2] for said in result["broken"] if said.startswith(f"world 2-{number}: ")]
    code, last = lab(*given, "--world", number)
    assert (code, last["violations"]) == (1, broken)
    first, *story, last = told("tell", 2, number, 60)
    assert first["options"]["seed"] == f"2-{number}"
    assert last["violations"] == broken
    assert len(story) > 1_000
    assert [line["at"] for line in story] == sorted(line["at"] for line in story)


def pasted(command):
    """Run a command line that a run printed, as a stranger would paste it."""
    name, *arguments = shlex.split(command)
    assert name == "counterfoil-lab"
    return lab(*arguments)


@pytest.mark.slow
def test_what_is_broken_says_how_to_see_it_again():
    """The command beside a world, a smaller one and a schedule is the one that shows it, with the rule off too."""
    given = ("--sabotage", "timeout_is_rejected")
    _, result = lab("simulate", "--operations", 50, "--seed", 2, *given)
    code, last = pasted(result["again"])
    first = [said.partition(": ")[2] for said in result["broken"] if said.startswith("world 2-0: ")]
    assert (code, last["violations"]) == (1, first)
    code, last = pasted(result["smallest"]["again"])
    assert (code, last["violations"]) == (1, result["smallest"]["violations"])
    _, result = lab("exhaust", "--faults", 1, "--kind", "nothing", "--most", 60, *given)
    assert all(row["broken"] for row in result["rows"])
    for row in result["rows"]:
        last_broken = row["broken"][-1]
        code, last = pasted(last_broken["again"])
        assert (code, last_broken["said"] in last["violations"]) == (1, True)


def test_a_path_that_nobody_named_is_no_schedule():
    """It is refused, and so is a world that has an option which there is none of."""
    code, said = lab("exhaust", "--kind", "nothing", "--path", "zz")
    assert (code, "no schedule of nothing" in said["error"]) == (3, True)
    for named in ('{"operations": 3}', '{"seed": "1", "operations": 3, "kind": "key"}', "[]"):
        assert lab("simulate", "--options", named)[0] == 3


def test_a_world_is_named_by_what_differs():
    """Its seed, its operations and what a terrain or a shrunk world changes make it again."""
    world = options.drawn("7-3", 40, kinds=("key",), callers=1)
    named = options.differing(world)
    assert set(named) >= {"seed", "operations", "kinds"}
    assert options.read(json.dumps(named)) == world


@pytest.mark.slow
def test_a_failing_world_is_made_smaller():
    """With less around it the same law is broken: fewer operations, fewer kinds of provider, fewer troubles."""
    (smallest,) = told("shrink", 2, 0, 60, "I5", 8)
    (whole, *_) = told("tell", 2, 0, 60)
    assert any(said.startswith("I5") for said in smallest["violations"])
    assert smallest["options"]["operations"] < whole["options"]["operations"]
    assert len(smallest["options"]["rates"]) <= len(whole["options"]["rates"])


@pytest.mark.slow
@pytest.mark.parametrize("mutant", NOTICED)
def test_a_rule_turned_off_is_noticed(mutant):
    """JSON all the same, and exit code 1."""
    code, result = lab("simulate", "--operations", 400, "--seed", 1, "--sabotage", mutant)
    assert (code, result["ok"]) == (1, False)
    assert result["violations"] > 0


@pytest.mark.slow
def test_a_search_leaves_nothing_out():
    """Every placement of one fault in one operation, whoever is killed, stopped or lied to: no law is broken."""
    code, result = lab("exhaust", "--faults", 1, "--kind", "lookup")
    assert (code, result["ok"], result["complete"], result["violations"]) == (0, True, True, 0)
    assert result["schedules"]["lookup"] >= 3_000


@pytest.mark.slow
def test_a_search_finds_what_is_wrong_and_names_the_path():
    """With a rule off the same search breaks a law, and says by which choices; cut short it is not complete."""
    code, result = lab("exhaust", "--faults", 0, "--kind", "nothing", "--sabotage", "timeout_is_rejected")
    assert (code, result["ok"]) == (1, False)
    assert result["violations"] > 0
    assert all(re.fullmatch(r"[0-9a-z]*", each["path"]) for row in result["rows"] for each in row["broken"])
    code, cut = lab("exhaust", "--faults", 1, "--kind", "nothing", "--most", 20)
    assert (code, cut["complete"], cut["schedules"]) == (0, False, {"nothing": 40})


def test_no_situation_has_two_meanings():
    """A send that is answered by a page and a look that is are two of them."""
    assert len(set(SITUATIONS)) == len(SITUATIONS)
