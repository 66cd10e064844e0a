"""Whatever a command keeps, a stranger can count; and a report that was edited by hand is found to disagree."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECOUNT = ROOT / "scripts" / "recount.py"
SECONDS = 100

GUARDED = (sys.executable, str(ROOT / "examples" / "certify" / "guarded.py"))
COMMANDS = {
    "images": (("images", "--images", "400", "--script", "unknown"), "scenarios"),
    "exhaust": (("exhaust", "--faults", "0", "--kind", "nothing"), "schedules"),
    "mutants": (("mutants", "--only", "retry_on_timeout", "--only", "chain_skips_tail"), "killed"),
    "demo": (("demo",), "rows"),
    "certify": (("certify", "--deadline", "1", "--", *GUARDED), "rows"),
}
"""Each command that keeps something of its own kind, in a small size, and one figure of its report."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What each command leaves, made when it is first asked for."""
    made = {}

    def of(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name) / "kept"
            (command, *rest), _ = COMMANDS[name]
            argv = [sys.executable, "-m", "counterfoil.lab", command, "--keep", folder, "--json", *rest]
            subprocess.run(argv, capture_output=True, timeout=SECONDS, check=False)
            made[name] = folder
        return made[name]

    return of


def recount(folder, *, as_json=True):
    """The stranger's count: exit code and what was printed."""
    argv = [sys.executable, "-I", RECOUNT, folder, *(["--json"] if as_json else [])]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.returncode in (0, 1), run.stderr
    return run.returncode, json.loads(run.stdout) if as_json else run.stdout


@pytest.fixture
def changed(kept, tmp_path):
    """A copy of what a command left, to be edited."""

    def of(name):
        shutil.copytree(kept(name), tmp_path / name)
        return tmp_path / name

    return of


def edit(folder, change):
    """Change the report by hand."""
    path = folder / "result.json"
    result = json.loads(path.read_text())
    change(result)
    path.write_text(json.dumps(result))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_kept_can_be_counted(kept, name):
    """The count agrees with the report, and says something."""
    code, counts = recount(kept(name))
    assert (code, counts["disagreements"]) == (0, [])
    assert counts["runs"]
    assert COMMANDS[name][1] in json.loads((kept(name) / "result.json").read_text())


def _row(figure, value):
    """Another figure in the first row."""
    return lambda result: result["rows"][0].update({figure: value})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("images", lambda result: result.update(images=result["images"] + 1), "images: reported"),
        ("images", lambda result: result["scenarios"].update(unknown=1), "scenarios: reported"),
        ("images", lambda result: result["modes"]["wal_off"].update(violations=0), "wal_off: violations: reported"),
        ("images", lambda result: result["faults"].popitem(), "faults: reported"),
        ("exhaust", lambda result: result["schedules"].update(nothing=9999), "schedules: reported"),
        ("exhaust", lambda result: result.update(violations=1), "violations: reported"),
        ("exhaust", _row("schedules", 1), "schedules: reported 1"),
        ("mutants", lambda result: result.update(killed=48), "killed: reported 48"),
        ("mutants", lambda result: result["rows"][0]["figures"].update(second_effects=99), "second_effects: reported"),
        ("demo", _row("sent", 7), "sends: reported 7"),
        ("demo", _row("outcome", "rejected"), "outcome: reported 'rejected'"),
        ("certify", _row("effects", 2), "effects: reported 2"),
        ("certify", _row("outcome", "unknown"), "outcome: reported 'unknown'"),
    ],
)
def test_an_edited_report_disagrees(changed, name, change, said):
    """Whichever figure was changed is named with what was counted."""
    folder = changed(name)
    edit(folder, change)
    code, counts = recount(folder)
    assert code == 1
    assert any(said in line for line in counts["disagreements"]), counts["disagreements"]


@pytest.mark.slow
def test_an_acknowledged_event_that_is_gone_is_found_in_a_kept_image(changed):
    """The last image of the product, with its last event taken out by hand."""
    folder = changed("images")
    *_, last = sorted((folder / "boundaries" / "wal_full" / "unknown").iterdir(), key=lambda path: int(path.name))
    with closing(sqlite3.connect(last / "receipts.db")) as store:
        for (guard,) in store.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            store.execute(f"DROP TRIGGER {guard}")
        store.execute("DELETE FROM event WHERE id = (SELECT max(id) FROM event)")
        store.commit()
    code, counts = recount(folder)
    assert code == 1
    assert counts["samples_lost"] > 0
    assert counts["disagreements"] == [f"1 of {counts['samples']} kept images are not what was said of them"]


@pytest.mark.slow
def test_a_schedule_that_is_left_out_is_found(changed):
    """Depth first, each schedule begins where the one before says it must."""
    folder = changed("exhaust")
    path = min((folder / "schedules").iterdir())
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:1] + whole[2:]))
    code, counts = recount(folder)
    assert (code, counts["complete"]) == (1, False)


@pytest.mark.slow
def test_the_second_effect_is_in_the_world_that_noticed_it(kept):
    """A mutant that sends again is not only said to have been noticed: the world shows both effects."""
    _, counts = recount(kept("mutants"))
    (world,) = [run for name, run in counts["runs"].items() if name.startswith("retry_on_timeout-")]
    assert world["second_effects"] > 0


@pytest.mark.slow
def test_runs_are_printed_a_line_each(kept):
    """For a person: short lines, and how many more there are."""
    _, printed = recount(kept("images"), as_json=False)
    assert "wal_full/unknown: script unknown, boundaries" in printed
    assert "{'" not in printed.partition("wal_full/unknown")[2]
    assert all(len(line) < 400 for line in printed.splitlines())


def test_rounds_are_taken_again(tmp_path):
    """Of a benchmark: every ratio from its rounds, and the rows from its store; an edited one disagrees."""
    one = {"mine": [2.0, 2.0, 6.0], "same": [1.0, 2.0, 4.0], "thin": [1.0, 1.0, 1.0], "async": [4.0, 1.0, 1.0]}
    calls = {"threads": [9.0], "tasks": [6.0], "raw": [3.0]}
    (tmp_path / "rounds.json").write_text(json.dumps({"one": one, "calls": calls}))
    with closing(sqlite3.connect(tmp_path / "receipts.db")) as store:
        for name, rows in (("operation", 2), ("event", 4), ("body", 0)):
            store.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
            store.executemany(f"INSERT INTO {name} VALUES (?)", [(row,) for row in range(rows)])
        store.commit()
    result = {"sequential_ratio": 1.5, "concurrent_ratio": {"threads": 3.0, "tasks": 2.0}, "rows_per_operation": 3.0}
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert recount(tmp_path)[0] == 0
    edit(tmp_path, lambda said: said.update(sequential_ratio=1.1))
    code, counts = recount(tmp_path)
    assert (code, counts["disagreements"]) == (1, ["sequential_ratio: reported 1.1, counted 1.5"])


def test_peers_and_full_stores_are_recounted(tmp_path):
    """Of a benchmark on a server, which leaves no store: what it says of others and of growth, each edited in turn."""
    one = {"mine": [2.0, 4.0], "thin": [1.0, 1.0], "async": [3.0, 3.0]}
    calls = {"threads": [9.0], "tasks": [6.0], "raw": [3.0]}
    beside = {"one": {**one, "idemkit": [6.0, 8.0]}, "calls": {**calls, "idemkit": [1.5]}}
    grown = {"one": {"full": [3.0, 3.0], "empty": [2.0, 3.0]}}
    (tmp_path / "rounds.json").write_text(json.dumps({"one": one, "calls": calls, "peers": beside, "growth": grown}))
    result = {
        "thin_ratio": 3.0,
        "peers": {"idemkit": {"way": "tasks", "mine_ratio": 2.5, "thin_ratio": 7.0, "over": 4.0}},
        "concurrent_over": {"idemkit": 4.0},
        "growth": {"operations": 1000, "ratio": 1.25},
    }
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert recount(tmp_path)[0] == 0
    for wrong in (
        lambda said: said["peers"]["idemkit"].update(over=9.0),
        lambda said: said["concurrent_over"].update(idemkit=9.0),
        lambda said: said["growth"].update(ratio=1.0),
        lambda said: said.update(thin_ratio=1.0),
    ):
        (tmp_path / "result.json").write_text(json.dumps(result))
        edit(tmp_path, wrong)
        code, counts = recount(tmp_path)
        assert (code, len(counts["disagreements"])) == (1, 1)
