"""The crash matrix: every cell by its name, a crash at every place of every plan, and each rule a cell is about."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from counterfoil.lab.matrix import command, page
from counterfoil.lab.matrix.cells import AWAITED, CELLS, NAMES, ROWS, missing
from counterfoil.lab.matrix.expected import CODES
from counterfoil.lab.matrix.judge import judged
from counterfoil.lab.matrix.life import END, Moment
from counterfoil.lab.matrix.playing import played
from counterfoil.lab.matrix.script import Strike
from counterfoil.lab.matrix.sweeps import PLANS, RECOVER
from counterfoil.lab.matrix.trying import able, first_broken, tried
from counterfoil.lab.mutants.catalogue import MUTANTS
from counterfoil.lab.world import run

RECOUNT = Path(__file__).parents[3] / "scripts" / "recount.py"
SECONDS = 100
WHOLE_SECONDS = 900
"""For what takes half a minute on two cores that nobody else uses."""
PENDING = {44: "restore from a backup", 45: "upgrade: a schema epoch that old workers are refused by (issue 5)"}
"""The rows that may wait, each for what will build it; whoever does takes it from here."""
CELL = "7-LS"


def lab(*arguments):
    """Run the command as a stranger would; its exit code and its last line's object."""
    argv = [sys.executable, "-m", "counterfoil.lab", "matrix", *map(str, arguments), "--json"]
    told = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert told.stdout, told.stderr
    return told.returncode, json.loads(told.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", NAMES)
def test_cell(name):
    """Its fault fires, and what stands, what may follow and what really happened are the row's; or it may wait."""
    cell = CELLS[name]
    if cell.awaits:
        assert (cell.row.number, cell.awaits) in PENDING.items()
        return
    told = played(cell, None)
    assert told["said"] == []
    assert told["lives"] >= 1


def test_the_table_is_whole():
    """45 rows by six kinds, each with its words and its mutant, and none that nobody has defined."""
    assert (len(NAMES), missing(), tuple(ROWS)) == (270, [], tuple(range(1, 46)))
    assert set(CELLS) == set(NAMES)
    assert set(PENDING.values()) == set(AWAITED)
    built = able(NAMES)
    assert len(built) == len(NAMES) - len(CODES) * len(PENDING) >= 180
    assert {cell.mutant for cell in built} <= MUTANTS.keys()
    assert not [mutant for mutant in {cell.mutant for cell in built} if MUTANTS[mutant].awaits]
    assert all(row.point and row.requires and row.never for row in ROWS.values())


@pytest.mark.slow
@pytest.mark.timeout(WHOLE_SECONDS)
def test_every_place_of_every_plan():
    """Somebody dies before and after each effect, once and ever after, also in what takes it up: every law holds."""
    rows = list(command.swept(None, lambda _: None))
    assert [row for row in rows if row["said"]] == []
    assert {row["sweep"] for row in rows} == {*PLANS, RECOVER}
    assert {row["times"] for row in rows} == {"once", "ever after"}
    assert all(row["places"] for row in rows)


@pytest.mark.slow
@pytest.mark.timeout(WHOLE_SECONDS)
def test_every_cell_notices_its_mutant():
    """Without the rule that it is about each cell fails, by what it asks and not by a crash."""
    noticed = list(tried(able(NAMES), lambda _: None))
    assert len(noticed) == len(able(NAMES))
    assert [(each.cell, each.mutant) for each in noticed if not each.said] == []


def test_what_no_cell_can_notice_is_told():
    """A cell that holds without its rule proves nothing, and is named."""
    cell = CELLS[CELL]
    blunt = msgspec.structs.replace(cell, row=msgspec.structs.replace(cell.row, noticed="chain_skips_tail"))
    (told,) = tried([blunt], lambda _: None)
    assert (told.cell, told.mutant, told.said) == (CELL, "chain_skips_tail", "")


def test_neither_a_crash_nor_a_missing_fault_notices():
    """Only what a moment, a law or the wire says counts."""
    said = ["ended: caller: ValueError('x')", "fault: crash before Send by caller did not happen"]
    assert not first_broken(said)
    assert first_broken([*said, "I3: 2 effects (op_1, key)"]).startswith("I3")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"strikes": (Strike("crash", "before Nothing"),)}, "fault"),
        ({"sends": ("reply_lost", "reply_lost")}, "fault"),
        ({"watched": True}, "fault"),
        ({"moments": (Moment(END, {"sends": 2}),)}, "stands"),
        ({"moments": (Moment(END, {"no_such_fact": 1}),)}, "stands"),
    ],
)
def test_a_cell_that_shows_nothing_fails(tmp_path, changes, word):
    """A fault that did not strike, a fate that did not come up, a fact that is otherwise: each is said."""
    life = msgspec.structs.replace(CELLS[CELL].lives()[0], **changes)
    with run.virtual():
        said = judged(life, CELLS[CELL].kind, tmp_path)
    assert {each.partition(":")[0] for each in said} == {word}


def test_some_cells_are_played():
    """Only those that are named, pending ones told as such; a name that is none is refused."""
    code, told = lab("--cell", CELL, "--cell", "44-K", "--mutants")
    assert (code, told["cells"], told["passed"], told["missing"], told["sweeps"]) == (0, 2, 1, [], {})
    assert told["pending"] == [{"cell": "44-K", "awaits": PENDING[44]}]
    assert (told["mutants_checked"], told["unnoticed"]) == (1, [])
    code, told = lab("--cell", "46-K")
    assert (code, "no such cell" in told["error"]) == (3, True)
    code, told = lab("--mutants", "--sabotage", "retry_on_timeout")
    assert (code, "there would be two" in told["error"]) == (3, True)


@pytest.mark.parametrize(
    ("mutant", "cell", "word"),
    [
        ("retry_on_timeout", CELL, "sends"), ("recovery_makes_ready", "3-B", "outcome"),
        ("transport_retries", "43-0", "requests written"), ("answer_not_insisted", "16-K", "spooled"),
    ],
)  # fmt: skip
def test_a_rule_turned_off_fails_its_cell(mutant, cell, word):
    """The JSON says which cell and what of it, and the command exits 1."""
    code, told = lab("--cell", cell, "--sabotage", mutant)
    assert (code, told["ok"], told["passed"]) == (1, False, 0)
    assert word in " ".join(told["failed"][0]["said"])


def test_what_is_kept_is_counted_alike(tmp_path):
    """A stranger counts sends, effects and second effects from each life's own logs, and agrees."""
    folder = tmp_path / "kept"
    code, told = lab("--cell", CELL, "--cell", "7-K", "--cell", "27-LS", "--keep", folder)
    assert (code, told["passed"]) == (0, 3)
    assert (folder / f"{CELL}.0" / "receipts.db").exists()
    argv = [sys.executable, "-I", RECOUNT, folder, "--json"]
    counted = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert counted.returncode == 0, counted.stdout + counted.stderr
    mine = json.loads(counted.stdout)
    assert (told["sends"], told["effects"]) == (mine["sends"], mine["effects"]) == (5, 4)


def test_the_table_is_shown():
    """Each cell has its mark; what failed, what waits and what was not noticed stand below it."""
    out = Console(file=io.StringIO(), width=120)
    result = {
        "cells": 270, "passed": 256, "pending": [{"cell": "44-K", "awaits": PENDING[44]}], "missing": ["1-N"],
        "failed": [{"cell": CELL, "said": ["stands: sends is 2, not 1"]}], "lives": 796, "seconds": 1.0,
        "sweeps": {"dispatch": 16}, "mutants_checked": 2, "ok": False,
        "sweeps_broken": [{"sweep": "dispatch", "code": "K", "times": "once", "said": ["L1: unknown"]}],
        "unnoticed": [{"cell": "5-K", "mutant": "timeout_is_rejected", "said": ""}],
    }  # fmt: skip
    page.show(result, NAMES, out)
    page.show({**result, "failed": [], "unnoticed": [], "sweeps_broken": [], "sweeps": {}, "ok": True}, [CELL], out)
    page.show_list(command.listed(), out)
    text = out.file.getvalue()
    for word in ("✓", "✗", "⋯", "?", "sends is 2, not 1", "timeout_is_rejected was not noticed", PENDING[44]):
        assert word in text
    assert "dispatch, K, once: L1: unknown" in text
    assert all(row.point[:20] in text for row in ROWS.values())
