"""Whatever a command keeps, a stranger can count; and a report that was edited by hand is found to disagree."""

from __future__ import annotations

import copy
import importlib
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.lab.stranger import RECOUNT, recount, told

ROOT = Path(__file__).parents[3]
SECONDS = 100

GUARDED = (sys.executable, str(ROOT / "examples" / "certify" / "guarded.py"))
COMMANDS = {
    "images": (("images", "--images", "400", "--script", "unknown"), "scenarios"),
    "exhaust": (("exhaust", "--faults", "0", "--kind", "nothing"), "schedules"),
    "mutants": (("mutants", "--only", "retry_on_timeout", "--only", "chain_skips_tail"), "killed"),
    "demo": (("demo",), "rows"),
    "certify": (("certify", "--deadline", "1", "--", *GUARDED), "rows"),
    "kill-loop": (("kill-loop", "--operations", "30", "--kills", "3"), "kills_by_window"),
    "simulate": (("simulate", "--operations", "100"), "situations"),
    "matrix": (("matrix", "--cell", "7-LS", "--cell", "7-K"), "lives"),
    "contracts": (("contracts", "--check", "--contract", "github.issues_create"), "unsafe_answers"),
    "approvals": (("approvals",), "mutations_refused"),
    "chaos": (("chaos", "--kills", "10"), "disk_full"),
    "chaos of a database": (
        ("chaos", "--store", "postgresql", "--kills", "6", "--restarts", "1", "--commit-cuts", "4"),
        "commit_cuts",
    ),
    "certify --real": (("certify", "--real", "postgres", "--deadline", "1"), "automatic_second_sends"),
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
    assert counts.get("runs") or counts["effects"]
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
def test_the_second_send_is_in_the_world_that_noticed_it(kept):
    """A mutant that sends again is not only said to have been noticed: the world shows a send that no claim allowed."""
    _, counts = recount(kept("mutants"))
    (world,) = [run for name, run in counts["runs"].items() if name.startswith("retry_on_timeout-")]
    assert world["excess_sends"] > 0


@pytest.mark.slow
def test_runs_are_printed_a_line_each(kept):
    """For a person: short lines, and how many more there are."""
    _, printed = told(kept("images"))
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
    result = {
        "sequential_ratio": 1.5, "thin_ratio": 2.0, "async_ratio": 1.0, "rounds": 3, "rows_per_operation": 3.0,
        "concurrent_ratio": {"threads": 3.0, "tasks": 2.0}, "ok": True,
        "p50_ms": {"mine": 2000.0, "same": 2000.0, "thin": 1000.0, "async": 1000.0},
    }  # fmt: skip
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
        "async_ratio": 3.0,
        "concurrent_ratio": {"threads": 3.0, "tasks": 2.0},
        "rounds": 2,
        "p50_ms": {"mine": 3000.0, "thin": 1000.0, "async": 3000.0},
        "ok": False,
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


# -- whatever is altered -----------------------------------------------------------------------------------------------


@pytest.fixture
def stranger(monkeypatch):
    """The script's own modules, so that thousands of altered reports need no process each."""
    monkeypatch.syspath_prepend(str(RECOUNT.parent))
    return importlib.import_module("recount")


def leaves(found, path=()):
    """Every place in a report, of long lists the first two."""
    if path:
        yield path
    if isinstance(found, dict):
        for name in found:
            yield from leaves(found[name], (*path, name))
    elif isinstance(found, list):
        for place in range(min(2, len(found))):
            yield from leaves(found[place], (*path, place))


def other(value):
    """Another value of the same type; whatever holds something is emptied."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str) or value is None:
        return f"{value}x"
    return type(value)() if value else type(value)(["xy"])


def altered(report, path):
    """The report with one place changed, and with it taken out."""
    for taken_out in (False, True):
        new = at = copy.deepcopy(report)
        for name in path[:-1]:
            at = at[name]
        if taken_out:
            del at[path[-1]]
        else:
            at[path[-1]] = other(at[path[-1]])
        yield new


def unnoticed(stranger, folder, report, counts):
    """Every place that can be altered without anybody saying so, or naming it as not recounted."""
    for path in leaves(report):
        name = "/".join("*" if isinstance(part, int) else part for part in path)
        for new in altered(report, path):
            kind = stranger.kind_of(folder, new)
            named = (*stranger.not_recounted(kind, new, stranger.TOP), *kind.summed)
            if any(f"{name}/".startswith(f"{one}/") for one in named):
                continue
            if stranger.is_of(kind, new) and not stranger.disagreements(kind, new, counts):
                yield name


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_whatever_is_altered_in_a_report_is_found_or_named_as_not_recounted(stranger, kept, name):
    """Every figure, row and list, changed and taken out: it disagrees, or the recount says that it cannot know."""
    folder = kept(name)
    report = json.loads((folder / "result.json").read_text())
    assert list(dict.fromkeys(unnoticed(stranger, folder, report, stranger.recount(folder)))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_report_that_is_gone_or_says_nothing_is_no_agreement(changed, name):
    """Deleted, or `{}`: exit code 3, whatever the raw files count."""
    folder = changed(name)
    (folder / "result.json").write_text("{}")
    assert (recount(folder)[0], recount(folder)[1]["ok"]) == (3, False)
    (folder / "result.json").unlink()
    code, counts = recount(folder)
    assert (code, counts["ok"]) == (3, False)
    assert "there is no report" in counts["disagreements"][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("kill-loop", "violations"), ("simulate", "violations"), ("chaos", "violations"), ("certify", "why"),
        ("matrix", "failed"), ("exhaust", "complete"), ("mutants", "broken_without"), ("demo", "leaks"),
    ],
)  # fmt: skip
def test_nothing_is_ok_with_a_figure_that_must_be_nought(changed, name, figure):
    """A report that is honest about it and calls itself ok all the same."""
    folder = changed(name)
    edit(folder, lambda result: result.update({figure: other(result[figure])}))
    code, counts = recount(folder)
    assert (code, counts["ok"]) == (1, False)


@pytest.mark.slow
def test_a_sabotaged_run_that_noticed_nothing_need_not_be_ok(changed):
    """It says which rule was off; any other that calls itself not ok must have a reason."""
    folder = changed("simulate")
    edit(folder, lambda result: result.update(ok=False))
    assert recount(folder)[0] == 1
    edit(folder, lambda result: result.update(sabotage="absence_without_horizon"))
    assert recount(folder)[0] == 0


def lines_of(path):
    """A journal, to be edited."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "figure", "change"),
    [
        ("kill-loop", "lab.key/effects.jsonl", "wrong_payloads", {"payload": {"order": "order-0001", "amount": 1}}),
        ("kill-loop", "lab.key/effects.jsonl", "wrong_payloads", {"payload_sha256": "0" * 64}),
        ("kill-loop", "lab.key/effects.jsonl", "unlike_wire", {"payload_sha256": "0" * 64}),
        ("kill-loop", "lab.key/effects.jsonl", "unlike_wire", {"seq": 9}),
        ("kill-loop", "lab.key/effects.jsonl", "wrong_accounts", {"account": "another"}),
        ("kill-loop", "lab.key/effects.jsonl", "wrong_ids", {"id": "ef_0"}),
        ("kill-loop", "lab.key/wire.jsonl", "wrong_payloads", {"payload_sha256": "0" * 64}),
        ("kill-loop", "lab.key/wire.jsonl", "unlike_wire", {"path": "/lookup/effects"}),
        ("kill-loop", "lab.key/wire.jsonl", "unlike_wire", {"method": "GET"}),
        ("kill-loop", "lab.key/intents.jsonl", "unanswered_lines", {"payload": {"order": "order-0001", "amount": 1}}),
        ("kill-loop", "lab.key/intents.jsonl", "unanswered_lines", {"key": "another"}),
        ("kill-loop", "lab.key/kills.jsonl", "kills_misplaced", {"window": "elsewhere"}),
        ("kill-loop", "lab.key/kills.jsonl", "kills_misplaced", {"worker": "w_000000000001"}),
        ("simulate", "00000/effects.jsonl", "wrong_payloads", {"payload_sha256": "0" * 64}),
        ("chaos", "wire.jsonl", "unlike_wire", {"path": "/other/effects"}),
    ],
)
def test_one_altered_line_of_a_raw_file_is_found(changed, name, file, figure, change):
    """An effect of another amount under the right key is no right effect: every file is held against the others."""
    folder = changed(name)
    entries = lines_of(folder / file)
    entries[0].update(change)
    (folder / file).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    code, counts = recount(folder)
    assert (code, counts[figure] > 0) == (1, True)
    assert any(figure in line or "reported" in line for line in counts["disagreements"])


@pytest.mark.slow
def test_every_line_that_was_asked_for_has_its_receipt(changed):
    """A line without an operation, and one that two files tell differently."""
    folder = changed("chaos")
    last = max((folder / "intents").iterdir())
    said = last.read_text()
    last.write_text(said + json.dumps({"action": "key", "key": "order-99999", "payload": {}}) + "\n")
    code, counts = recount(folder)
    assert (code, counts["unanswered_lines"]) == (1, 1)
    last.write_text(said.replace("1500", "1", 1))
    run = subprocess.run([sys.executable, "-I", RECOUNT, folder], capture_output=True, text=True, check=False)
    assert (run.returncode, "ask for different things" in run.stderr) == (2, True)


@pytest.mark.slow
def test_an_export_says_what_the_store_says(changed):
    """One that was altered, and one that is missing."""
    folder = changed("kill-loop")
    one, two, *_ = sorted((folder / "lab.key" / "exports").iterdir())
    one.write_text(one.read_text().replace('"action_code"', '"outcome": "rejected", "action_code"'))
    two.unlink()
    code, counts = recount(folder)
    assert (code, counts["exports_unlike"]) == (1, 2)
