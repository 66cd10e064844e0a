"""The recount: what it counts, what it refuses, and that it needs nothing of ours."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.lab.kill_window import fallen

SCRIPT = Path(__file__).parents[3] / "scripts" / "recount.py"
AGREES, DISAGREES, CANNOT, UNREPORTED = 0, 1, 2, 3


def recount(folder, *, code=None):
    """Run the script as a stranger would and return its object; where nothing was reported it says so."""
    if code is None:
        code = AGREES if (folder / "result.json").exists() else UNREPORTED
    run = subprocess.run(
        [sys.executable, "-I", SCRIPT, folder, "--json"], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == code, run.stderr
    return json.loads(run.stdout) if code != CANNOT else run.stderr


def effect(name=None, *, kind="lookup", sha="s"):
    """One line of the truth."""
    key, reference = (name, None) if kind == "key" else (None, name)
    return {"kind": kind, "id": "ef", "key": key, "reference": reference, "account": "a", "payload_sha256": sha}


def sent(name, act="send"):
    """One line of the wire."""
    named = {"key": None, "reference": name, "payload_sha256": "s"}
    return {"act": act, "method": "POST", "path": "/lookup/effects", **named}


def write(folder, *, effects=(), wire=None, result=None):
    """The raw files of a run."""
    folder.mkdir(exist_ok=True)
    (folder / "effects.jsonl").write_text("".join(json.dumps(line) + "\n" for line in effects))
    if wire is not None:
        (folder / "wire.jsonl").write_text("".join(json.dumps(line) + "\n" for line in wire))
    if result is not None:
        (folder / "result.json").write_text(json.dumps(result))


def store(folder, *rows, columns="n INTEGER PRIMARY KEY, key TEXT, outcome TEXT, attempts INTEGER, provider_key TEXT"):
    """A store with these operations."""
    folder.mkdir(exist_ok=True)
    database = sqlite3.connect(folder / "receipts.db")
    database.execute(f"CREATE TABLE operation ({columns})")
    for row in rows:
        database.execute(f"INSERT INTO operation VALUES ({', '.join('?' * len(row))})", row)
    database.commit()
    database.close()


def events(folder, *rows):
    """The store's events: operation, sequence number, kind, time, record, payload."""
    database = sqlite3.connect(folder / "receipts.db")
    database.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, kind TEXT, at REAL, record BLOB, body BLOB)")
    for n, seq, kind, at, record, payload in rows:
        body = None if payload is None else b"s" * 16 + payload
        database.execute(
            "INSERT INTO event VALUES (?, ?, ?, ?, ?)", (n << 15 | seq, kind, at, json.dumps(record).encode(), body)
        )
    database.commit()
    database.close()


def test_it_imports_nothing_of_ours():
    """What checks the project's figures shares no code with it, nor anything that must be installed."""
    modules = sorted((SCRIPT.parent / "recounting").glob("*.py"))
    assert modules
    for module in (SCRIPT, *modules):
        nodes = list(ast.walk(ast.parse(module.read_text("utf-8"))))
        imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names | {"recounting"}, module


def test_a_clean_run_counts_clean(tmp_path):
    """One effect and one send for each receipt: nothing double, nothing unrecorded, nothing false."""
    write(tmp_path, effects=[effect("p1"), effect("p2")], wire=[sent("p1"), sent("p2"), sent(None, "look")])
    store(tmp_path, (1, "k1", "succeeded", 1, "p1"), (2, "k2", "unknown", 1, "p2"))
    assert recount(tmp_path) == {
        "operations": 2,
        "effects": 2,
        "sends": 2,
        "looks": 1,
        "duplicates": 0,
        "unnamed_effects": 0,
        "unrecorded": 0,
        "excess_sends": 0,
        "false_outcomes": 0,
        "unknown_seen": 0,
        "manual_review": 0,
        "safe_to_retry": 0,
        "unsettled": 0,
        "unowned_unknowns": 0,
        "outcomes": {"succeeded": 1, "unknown": 1},
        "joined_on": "provider_key",
        "kills": None,
        "kills_by_window": None,
        "kills_by_aim": None,
        "kills_misplaced": None,
        "troubles": None,
        "told": None,
        "lines": None,
        "unanswered_lines": None,
        "exports_unlike": None,
        "unlike_wire": 0,
        "wrong_payloads": 0,
        "wrong_accounts": 0,
        "wrong_ids": 0,
        "kind": "provider",
        "disagreements": ["there is no report of the kind `provider` beside the raw files"],
        "not_recounted": [],
        "consistent_only": [],
        "ok": False,
    }


def test_every_effect_beyond_the_first_is_a_duplicate(tmp_path):
    """Three effects under one name are two duplicates; effects without a name are told apart by their bytes."""
    unnamed = [effect(kind="nothing", sha=sha) for sha in ("x", "x", "y")]
    write(tmp_path, effects=[effect("p1"), effect("p1"), effect("p1"), effect("p2"), *unnamed])
    counts = recount(tmp_path)
    assert (counts["duplicates"], counts["unnamed_effects"]) == (3, 3)


def test_an_effect_or_a_send_without_a_receipt_is_unrecorded(tmp_path):
    """Each name on the wire or in the truth that no receipt has is counted once."""
    write(tmp_path, effects=[effect("p1"), effect("lost")], wire=[sent("p1"), sent("lost"), sent("also")])
    store(tmp_path, (1, "k1", "succeeded", 1, "p1"))
    assert recount(tmp_path)["unrecorded"] == 2


def test_a_send_beyond_the_recorded_attempts_is_in_excess(tmp_path):
    """A transport that repeats by itself shows as more sends than attempts."""
    write(tmp_path, effects=[effect("p1")], wire=[sent("p1")] * 3)
    store(tmp_path, (1, "k1", "succeeded", 2, "p1"))
    assert recount(tmp_path)["excess_sends"] == 1


@pytest.mark.parametrize(
    ("outcome", "happened", "false"),
    [
        ("succeeded", True, 0),
        ("succeeded", False, 1),
        ("rejected", True, 1),
        ("rejected", False, 0),
        ("unknown", True, 0),
        ("unknown", False, 0),
        ("unobserved", True, 0),
        ("accepted", False, 0),
    ],
)
def test_only_a_certain_outcome_can_be_false(tmp_path, outcome, happened, false):
    """`succeeded` needs an effect, `rejected` needs its absence; the other words claim nothing."""
    write(tmp_path, effects=[effect("other"), *([effect("p1")] if happened else [])])
    store(tmp_path, (1, "k1", outcome, 1, "p1"), (2, "k2", "unknown", 1, "other"))
    assert recount(tmp_path)["false_outcomes"] == false


def test_without_the_column_the_claim_names_the_operation(tmp_path):
    """The provider's name is taken from the recorded claim where the operation's row does not hold it."""
    write(tmp_path, effects=[effect("p1")])
    store(
        tmp_path, (7, "k1", "succeeded", 1), columns="n INTEGER PRIMARY KEY, key TEXT, outcome TEXT, attempts INTEGER"
    )
    database = sqlite3.connect(tmp_path / "receipts.db")
    database.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, kind TEXT, record BLOB)")
    events = [(7 << 15 | 1, "begun", b'{"provider_key":"p1"}'), (7 << 15 | 2, "observed", b"{}")]
    database.executemany("INSERT INTO event VALUES (?, ?, ?)", events)
    database.commit()
    database.close()
    counts = recount(tmp_path)
    assert (counts["joined_on"], counts["unrecorded"], counts["false_outcomes"]) == ("begun event", 0, 0)


def test_without_either_the_key_names_the_operation(tmp_path):
    """The last resort is the caller's own key, and the recount says so."""
    write(tmp_path, effects=[effect("k1")])
    store(tmp_path, (1, "k1", "succeeded"), columns="n INTEGER PRIMARY KEY, key TEXT, outcome TEXT")
    counts = recount(tmp_path)
    assert (counts["joined_on"], counts["unrecorded"], counts["operations"]) == ("key", 0, 1)


def test_what_is_missing_is_null(tmp_path):
    """Without a store or a wire log the counts that need them are null, and the rest stands."""
    write(tmp_path, effects=[effect("p1")], result={"effects": 1})
    counts = recount(tmp_path)
    assert counts["effects"] == 1
    assert [counts[name] for name in ("sends", "operations", "unrecorded", "false_outcomes")] == [None] * 4
    assert counts["ok"]


def test_what_cannot_be_counted_cannot_be_claimed(tmp_path):
    """A result about a source that is not there disagrees: a deleted file must not pass for a clean one."""
    write(tmp_path, effects=[effect("p1")], result={"effects": 1, "sends": 5, "kills": 0})
    counts = recount(tmp_path, code=DISAGREES)
    assert counts["disagreements"] == ["sends: reported 5, counted None", "kills: reported 0, counted None"]


def test_a_result_that_agrees(tmp_path):
    """Equal counts agree; what is not counted here is not compared."""
    write(
        tmp_path, effects=[effect("p1")], wire=[sent("p1")], result={"effects": 1, "sends": 1, "rounds": 30, "ok": True}
    )
    assert recount(tmp_path)["ok"]


@pytest.mark.parametrize("name", ["operations", "effects", "sends", "duplicates", "unrecorded", "false_outcomes"])
def test_a_result_that_disagrees(tmp_path, name):
    """A claimed count that is off by one is named, and the exit code says so."""
    write(tmp_path, effects=[effect("p1")], wire=[sent("p1")])
    store(tmp_path, (1, "k1", "succeeded", 1, "p1"))
    counted = recount(tmp_path)[name]
    (tmp_path / "result.json").write_text(json.dumps({name: counted + 1}))
    counts = recount(tmp_path, code=DISAGREES)
    assert counts["disagreements"] == [f"{name}: reported {counted + 1}, counted {counted}"]
    assert not counts["ok"]


def test_each_part_is_compared_with_its_folder(tmp_path):
    """Figures by contract and rows by case and runner are held against the folder of that name, and named so."""
    write(tmp_path / "lab.key", effects=[effect("p1")], wire=[])
    write(tmp_path / "T-naive", effects=[effect("p1")], wire=[sent("p1")])
    rows = [{"case": "T", "runner": "naive", "sent": 1, "effects": 2}, {"case": "K", "runner": "naive", "sent": 1}]
    (tmp_path / "result.json").write_text(json.dumps({"contracts": {"lab.key": {"effects": 3}}, "rows": rows}))
    assert recount(tmp_path, code=DISAGREES)["disagreements"] == [
        "lab.key: effects: reported 3, counted 1",
        "T-naive: effects: reported 2, counted 1",
        "K-naive: sends: reported 1, counted None",
    ]


def test_an_effect_without_a_name_is_found_by_its_payload(tmp_path):
    """Where the provider was given no name, the bytes of the claim's payload tell the receipts apart."""
    digests = {text: hashlib.sha256(text).hexdigest() for text in (b"one", b"two", b"three")}
    write(tmp_path, effects=[effect(kind="nothing", sha=digests[text]) for text in (b"one", b"three")], wire=[])
    store(tmp_path, (1, "k1", "succeeded", 1, "p1"), (2, "k2", "succeeded", 1, "p2"))
    events(tmp_path, *((n, 1, "begun", 1.0, {}, text) for n, text in ((1, b"one"), (2, b"two"))))
    counts = recount(tmp_path)
    assert (counts["unnamed_effects"], counts["unrecorded"], counts["false_outcomes"]) == (2, 1, 1)


def begun(worker):
    """The record of a worker's first claim."""
    return {"attempt": {"number": 1, "worker": worker}}


OBSERVED = {"attempt": 1, "source": "answer", "finding": "unknown"}
LOOKING = {"note": "look", "facts": {"by": "w1"}}
LOOKED = {"attempt": 1, "source": "look", "finding": "succeeded"}
BURIED = {"attempt": 1, "source": "transport", "finding": "unknown", "rule": "house.worker_dead"}
OTHER = {"note": "look", "facts": {"by": "w2"}}
STARTED = [("begun", 1.0, begun("w2"))]


@pytest.mark.parametrize(
    ("history", "placed"),
    [
        ([], "before_claim"),
        ([("begun", 1.0, begun("w2"))], "before_claim"),
        ([("begun", 1.0, begun("w1"))], "claim_to_outcome"),
        ([("begun", 1.0, begun("w1")), ("observed", 9.0, OBSERVED)], "claim_to_outcome"),
        ([("begun", 1.0, begun("w1")), ("observed", 2.0, OBSERVED)], "after_outcome"),
        ([("begun", 1.0, begun("w2")), ("observed", 2.0, OBSERVED), ("looking", 3.0, LOOKING)], "look_to_evidence"),
        ([("begun", 1.0, begun("w2")), ("looking", 3.0, LOOKING), ("observed", 4.0, LOOKED)], "after_outcome"),
        ([("begun", 1.0, begun("w1")), ("observed", 2.0, BURIED), ("observed", 3.0, LOOKED)], "claim_to_outcome"),
        ([*STARTED, ("looking", 2.0, LOOKING), ("looking", 3.0, OTHER), ("observed", 4.0, LOOKED)], "look_to_evidence"),
    ],
)
def test_a_kill_is_placed_by_what_was_on_record(tmp_path, history, placed):
    """What the killed worker had begun and not written down itself says where it was; the rest, others wrote."""
    write(tmp_path, effects=[])
    store(tmp_path, (1, "k1", "unknown", 1, "p1"))
    events(tmp_path, *((1, seq, kind, at, record, None) for seq, (kind, at, record) in enumerate(history, start=1)))
    (tmp_path / "kills.jsonl").write_text('{"at": 5.0, "pid": 1, "worker": "w1"}\n')
    counts = recount(tmp_path)
    assert counts["kills"] == 1
    assert {name for name, kills in counts["kills_by_window"].items() if kills} == {placed}
    assert laboratory(tmp_path, (e for e in history if e[1] <= 5.0)) == placed


def laboratory(folder, history):
    """Where the laboratory places the same kill, by what was on record right after it."""
    (folder / "receipts.db").unlink()
    store(folder, (1, "k1", "unknown", 1, "p1"))
    events(folder, *((1, seq, kind, at, record, None) for seq, (kind, at, record) in enumerate(history, start=1)))
    with contextlib.closing(sqlite3.connect(folder / "receipts.db", isolation_level=None)) as database:
        database.execute("CREATE TABLE worker (id TEXT, pid INTEGER, started_at REAL)")
        database.execute("INSERT INTO worker VALUES ('w1', 1, 0.0)")
    return fallen(folder / "receipts.db", 1).window.value


def test_kills_and_troubles_are_counted_by_kind(tmp_path):
    """Each kill by what it was aimed at, each other trouble by its name, and what nobody owns among the unresolved."""
    columns = "n INTEGER PRIMARY KEY, key TEXT, outcome TEXT, unresolved INTEGER, step TEXT, owner TEXT"
    write(tmp_path, effects=[], result={"kills_by_aim": {"send": 2, "look": 1}, "troubles": {"clock": 1}})
    store(tmp_path, *((n, f"k{n}", "unknown", 1, step, owner) for n, (step, owner) in enumerate(
        [("review", "o"), ("review", ""), ("", "o"), ("look", "o")])), columns=columns)  # fmt: skip
    events(tmp_path)
    aims = ["send", "look", "send"]
    (tmp_path / "kills.jsonl").write_text("".join(f'{{"at": 1, "worker": "", "aim": "{aim}"}}\n' for aim in aims))
    (tmp_path / "troubles.jsonl").write_text('{"trouble": "clock"}\n{"trouble": "disk"}\n')
    counts = recount(tmp_path, code=DISAGREES)
    assert counts["kills_by_aim"] == {"send": 2, "look": 1}
    assert counts["unowned_unknowns"] == 2
    assert counts["disagreements"] == ["troubles: reported {'clock': 1}, counted {'clock': 1, 'disk': 1}"]


def test_runs_in_folders_below_are_summed(tmp_path):
    """A run of several parts is counted part by part and as a whole."""
    write(tmp_path / "one", effects=[effect("p1"), effect("p1")], wire=[])
    write(tmp_path / "two", effects=[effect("p1")], wire=[sent("p1")])
    (tmp_path / "result.json").write_text('{"effects": 3, "duplicates": 1, "sends": 1}')
    counts = recount(tmp_path)
    assert (counts["effects"], counts["duplicates"], counts["sends"], counts["operations"]) == (3, 1, 1, None)
    assert counts["runs"]["one"]["duplicates"] == 1


def test_a_torn_last_line_is_not_counted(tmp_path):
    """What a crash tore was acknowledged to nobody."""
    write(tmp_path, effects=[effect("p1")])
    with (tmp_path / "effects.jsonl").open("a") as file:
        file.write('{"kind": "loo')
    assert recount(tmp_path)["effects"] == 1


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("effects.jsonl", "{\n", "not JSON"),
        ("receipts.db", "not a database, but long enough to look like one", "cannot be read"),
        ("result.json", "{", "not JSON"),
        ("result.json", "[]", "not one JSON object"),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, content, word):
    """What cannot be read ends the count with a sentence."""
    write(tmp_path, effects=[])
    (tmp_path / name).write_text(content)
    said = recount(tmp_path, code=CANNOT)
    assert said.startswith("cannot count: ")
    assert name in said
    assert word in said


def test_a_store_of_another_make_is_named(tmp_path):
    """A store without operations is not counted as a store with none."""
    write(tmp_path, effects=[])
    store(tmp_path, columns="n INTEGER PRIMARY KEY")
    assert "no table `operation`" in recount(tmp_path, code=CANNOT)


def test_a_folder_without_a_run_is_refused(tmp_path):
    """Nothing to count is not a count of nothing."""
    assert "has no effects.jsonl" in recount(tmp_path, code=CANNOT)


def test_a_killed_store_is_counted_and_left_as_it_is(tmp_path):
    """What a killed process left in the write-ahead log counts, and neither file changes by being counted."""
    write(tmp_path, effects=[effect("p1")])
    store(tmp_path / "alive", (1, "k1", "succeeded", 1, "p1"))
    alive = sqlite3.connect(tmp_path / "alive" / "receipts.db", isolation_level=None)
    alive.execute("PRAGMA journal_mode = wal")
    alive.execute("INSERT INTO operation VALUES (2, 'k2', 'unknown', 1, 'p2')")
    names = ("receipts.db", "receipts.db-wal")
    for name in names:  # as a kill leaves them: never closed, so never written back
        shutil.copy(tmp_path / "alive" / name, tmp_path)
    alive.close()
    before = [(tmp_path / name).read_bytes() for name in names]
    assert recount(tmp_path)["operations"] == 2
    assert [(tmp_path / name).read_bytes() for name in names] == before


def test_it_agrees_with_a_real_provider(provider, tmp_path):
    """The recount reads what the provider itself wrote."""
    lab = provider(folder=tmp_path, rules=[{"behaviour": "internal_duplicate", "nth": [2]}])
    for number in range(3):
        lab.post("lookup", f"p{number}")
    lab.look("p1")
    lab.child.stop()
    store(tmp_path, *((number, f"k{number}", "succeeded", 1, f"p{number}") for number in range(3)))
    (tmp_path / "result.json").write_text(
        '{"operations": 3, "effects": 4, "sends": 3, "duplicates": 1, "unrecorded": 0, "false_outcomes": 0}'
    )
    counts = recount(tmp_path)
    assert (counts["looks"], counts["excess_sends"]) == (1, 0)


def test_it_prints_for_people_too(tmp_path):
    """Without --json every count has a line of its own."""
    write(tmp_path, effects=[effect("p1")], result={"effects": 2})
    run = subprocess.run(
        [sys.executable, "-I", SCRIPT, tmp_path], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == DISAGREES
    assert "         effects  1\n" in run.stdout
    assert "DISAGREES  effects: reported 2, counted 1" in run.stdout
