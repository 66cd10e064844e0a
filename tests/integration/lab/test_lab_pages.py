"""What the laboratory prints: readable in a narrow terminal, without Python's own spelling, and true of the run."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest
from rich.console import Console

from counterfoil.cli.terminal import counted
from counterfoil.lab import approvals_page, chaos_page, exhaust_page, kill_page, simulate_page
from counterfoil.lab.catalogue import command as catalogue_command
from counterfoil.lab.chaos import MUST_BE_NOUGHT
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.fitted import fitted, table_of
from counterfoil.lab.images import page as images_page
from counterfoil.lab.images.share import PRODUCT, ROLLBACK, WEAK
from counterfoil.lab.kill_window import Window
from counterfoil.lab.matrix import command as matrix_command
from counterfoil.lab.matrix import page as matrix_page
from counterfoil.lab.matrix.judge import _against
from counterfoil.lab.mutants import command as mutants_command
from counterfoil.lab.mutants import page as mutants_page

WIDTHS = (40, 80, 120)
ID = "op_0ef932d40000123456789abcdef01234"


def printed(show, result, width):
    """What a page says in a terminal of so many columns."""
    out = Console(file=io.StringIO(), width=width)
    show(result, out)
    return out.file.getvalue()


def killed():
    """The figures of a kill loop as they are, large ones too."""
    figures = dict.fromkeys((*kill_page.COUNTED, *kill_page.MUST_BE_NOUGHT), 1_000)
    windows = dict.fromkeys((window.value for window in Window), 250)
    each = {**figures, "kills": 1_000, "kills_by_window": windows}
    return {
        "contracts": dict.fromkeys(("lab.key", "lab.lookup", "lab.nothing"), each),
        "why": ["too many"],
        "ok": False,
    }


def chaotic():
    """The figures of a chaos."""
    groups = {name: {"mid_socket": 10, "look_to_evidence": 3} for name in chaos_page.BEFELL}
    figures = dict.fromkeys((*chaos_page.COUNTED, *MUST_BE_NOUGHT), 0)
    return {**groups, **figures, "kills": 13, "seconds": 1.0, "disk_full": "tmpfs", "why": [], "ok": True}


def simulated(**more):
    """The figures of a simulation that met little and broke nothing."""
    missing = [f"key: send: fate_{n}" for n in range(90)]
    situations = {"hit": 1, "total": 91, "missing": missing, "rarest": {"killed: before Send": 1}}
    return {
        "worlds": 1, "operations": 59, "sends": 1, "effects": 1, "situations": situations, "violations": 0, "seed": 1,
        "trace": "0" * 64, "seconds": 1.0, "broken": [], "laws": {}, "again": None, "smallest": None, "sabotage": None,
        "ok": True, **more,
    }  # fmt: skip


def searched(**more):
    """The figures of a search of one kind."""
    row = {"kind": "key", "base": "answered", "schedules": 20, "complete": False, "violations": 0, "broken": []}
    scope = {"faults": 1, "switches": 1, "callers": 2, "workers": 1}
    return {
        "rows": [row], "scope": scope, "schedules": {"key": 20}, "seconds": 1.0, "violations": 0, "complete": False,
        "sabotage": None, "ok": True, **more,
    }  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
def test_every_word_stands_whole(width):
    """Names and figures are neither cut nor broken, however narrow the terminal."""
    for show, result in ((kill_page.show, killed()), (chaos_page.show, chaotic())):
        said = printed(show, result, width)
        assert "…" not in said
        assert all(len(line) <= width for line in said.splitlines())
        for word in ("operations", "violations"):
            assert word in said
    assert "unrecorded" in printed(kill_page.show, killed(), width)
    mutants = printed(mutants_page.show_list, mutants_command.listed(), width)
    assert [m["slug"] for m in mutants_command.listed() if m["slug"] not in mutants.split()] == []
    assert "…" not in mutants + printed(matrix_page.show_list, matrix_command.listed(), width)


def test_a_table_that_fits_is_a_table():
    """And one that does not is told row by row, each cell under its name."""
    table = table_of("kind", "what became of it", right=(0,))
    table.add_row("natural", "a sentence that takes some room")
    wide, narrow = (printed(lambda _, out: out.print(fitted(table, out)), None, width) for width in (80, 24))
    assert "─" in wide
    assert "─" not in narrow
    assert "kind" in narrow
    assert "natural" in narrow


def test_what_was_not_met_is_a_line():
    """Ninety of them do not stand before the verdict."""
    said = printed(simulate_page.show, simulated(), 80)
    assert len(said.splitlines()) < 20
    assert "87 more" in said


def test_what_is_not_shown_is_counted():
    """Of 624 violations 20 stand there; that there are others is said, and how to see the first happen."""
    broken = [f"world 3-0: I3 {ID}: attempt w_1.1 was written twice"] * 20
    result = simulated(
        broken=broken, violations=624, laws={"I3": 624}, again="counterfoil-lab simulate --seed 3 --world 0", ok=False
    )
    said = printed(simulate_page.show, result, 80)
    assert "and 604 more" in said
    assert "counterfoil-lab simulate --seed 3 --world 0\n" in said
    assert ID[:15] in said
    assert ID not in said


def test_a_story_says_where_a_law_is_broken_and_counts_what_is():
    """At its moment, by the name that the story uses; and laws are not violations."""
    lines = [
        {"at": 1.0, "said": f"✗ I3 {ID}: attempt w_1.1 was written twice"},
        {"violations": ["I3 one: twice", "I3 two: twice", "I5: three"], "operations": 1},
    ]
    out = Console(file=io.StringIO(), width=80)
    assert simulate_page.tell(lines, out) == 3
    said = out.file.getvalue()
    assert re.search(r"1\.0000  ✗ I3 op_0ef932d40000: ", said)
    assert "1 operation; broken: I3 2 times, I5 1 time" in said


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (searched(violations=3, ok=False), "Broken: 3 violations."),
        (searched(ok=False), "No law was broken, and not everything was tried."),
        (searched(sabotage="not_found_is_absent"), "not_found_is_absent was off, and nothing noticed."),
        (searched(complete=True), "Every schedule within that scope was tried, and every law held in each."),
    ],
)
def test_a_search_says_which_of_them_it_is(result, words):
    """Broken, unfinished, or held; and that a rule was off which nothing noticed."""
    assert words in " ".join(printed(exhaust_page.show, result, 120).split())


@pytest.mark.parametrize(("runs", "words"), [(0, "nothing was made to fail"), (3, "and whatever failed")])
def test_crash_images_claim_no_fault_that_was_not_tried(runs, words):
    """Where no operation was made to fail, nothing is said of those that do."""
    modes = {mode: {"images": 1, "violations": 0, "found": {}} for mode in (PRODUCT, *WEAK)}
    result = {
        "modes": {**modes, ROLLBACK: {"refused": True}}, "faults": {"full": runs}, "boundaries": 1,
        "scenarios": ["unknown"], "seed": 1, "first": [], "ok": True,
    }  # fmt: skip
    said = printed(images_page.show, result, 120)
    assert words in said
    assert "1 boundary of 1 script" in said


def test_the_mutants_beyond_the_list_are_counted():
    """What is noticed is on the list of 48 or beyond it, and both are told."""
    result = {
        "rows": [], "pending": [], "left": [], "broken_without": [], "killed": 44, "mutants": 48, "seconds": 1.0,
        "beyond": ["replay_in_flight"] * 10, "survivors": [], "ok": True,
    }  # fmt: skip
    said = printed(mutants_page.show, result, 120)
    assert "44 of the list's 48 noticed" in said
    assert "10 beyond the list noticed" in said


def test_facts_are_told_in_words():
    """What the matrix wanted and found is told without Python's spelling, and a number is no yes."""
    said = _against(
        {"permitted": frozenset({"wait", "ask"}), "owned": True, "sends": 1, "step": ""}, {"sends": 2}, "at 3 s"
    )
    assert said == [
        "stands: at 3 s permitted is not there, not ask, wait", "stands: at 3 s owned is not there, not yes",
        "stands: at 3 s sends is 2, not 1", "stands: at 3 s step is not there, not nothing",
    ]  # fmt: skip


def test_a_rule_that_nothing_noticed_is_told():
    """A run that holds although a rule is off says so, whatever its page says, and shows nothing."""
    argv = [sys.executable, "-m", "counterfoil.lab", "exhaust", "--kind", "key", "--most", "1"]
    run = subprocess.run(
        [*argv, "--sabotage", "absence_without_horizon", "--json"], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (run.returncode, json.loads(run.stdout)["sabotage"]) == (3, "absence_without_horizon")
    assert "absence_without_horizon: nothing noticed it" in run.stderr


def test_a_contract_without_a_behaviour_is_refused_in_words():
    """There is one in the catalogue, and nothing to check it against."""
    with pytest.raises(RunFailed, match=r"^--contract lab\.lookup: no behaviour to check it against is described; "):
        catalogue_command.chosen(["lab.lookup"])


def test_authorised_is_explained():
    """More may have been allowed than was sent."""
    row = {"case": "use: one", "sent": 9, "effects": 9, "authorised": 12, "held": True}
    result = {"rows": [row], **dict.fromkeys((*approvals_page.COUNTED, *approvals_page.ZERO), 0), "ok": True}
    assert "Fewer may be sent" in printed(approvals_page.show, result, 80)


@pytest.mark.parametrize(
    ("count", "what", "said"),
    [(1, "cells", "1 cell"), (1, "lives", "1 life"), (1, "switches", "1 switch"), (1200, "lives", "1,200 lives")],
)
def test_one_of_them_is_no_plural(count, what, said):
    """A figure is told as people say it."""
    assert counted(count, what) == said
