"""The benchmark's own rules: what it counts is counted, and what cannot be measured is no figure."""

from __future__ import annotations

import contextlib
import subprocess

import pytest

from counterfoil.lab.bench import command, measure, postgresql, sqlite
from counterfoil.lab.bench.floors import SameRows, Thin, load
from counterfoil.lab.bench.startup import above_bare
from counterfoil.lab.bench.subject import Subject

CALLS = 40


@pytest.fixture
def subject(tmp_path):
    """A ledger to measure."""
    made = Subject(tmp_path / "receipts.db")
    yield made
    made.close()


def test_one_call_is_two_syncs_and_three_rows(subject):
    """Two durable commits, one operation and two events: neither fewer (another product) nor more."""
    found = sqlite.shape(subject, CALLS)
    assert (found["fsyncs"], found["rows"]) == (2.0, 3.0)


def test_same_rows_writes_the_rows_a_call_writes(subject, tmp_path):
    """The floor that the sequential ratio stands on holds as many rows as the calls it copies."""
    floor = SameRows(tmp_path, subject.warm_up(8))
    floor.block(CALLS)
    assert floor.counts() == (CALLS, 2 * CALLS)
    floor.close()


def test_the_thin_floor_settles_what_it_claims(tmp_path):
    """Both of its commits are made."""
    floor = Thin(tmp_path)
    assert len(floor.block(CALLS)) == CALLS
    with floor.callers(1) as (call,):
        call()
    floor.close()


def test_a_command_that_fails_has_no_start_up_time():
    """A broken start is fast; it must not pass for a figure."""
    with pytest.raises(subprocess.CalledProcessError):
        above_bare(["-c", "raise SystemExit(3)"])


@pytest.mark.parametrize(("name", "wrong"), [("rows_per_operation", 2.0), ("thin_ratio", 1.41), ("async_ratio", 2.1)])
def test_a_bar_that_is_missed_is_named(held, name, wrong):
    """Fewer rows than the product's own count as a miss, however fast they were written."""
    assert command.missed(held) == []
    (said,) = command.missed({**held, name: wrong})
    assert said.startswith(name)


@pytest.mark.parametrize(("mine", "found"), [([1, 2, 3, 4, 5], [2.0, 4.0]), ([3], [3.0, 3.0])])
def test_a_figure_says_how_far_its_rounds_lie_apart(mine, found):
    """The middle half of the rounds' ratios stands beside the median, and of one round the round itself."""
    assert measure.quartiles(mine, [1.0] * len(mine)) == found


def test_a_call_on_postgresql_is_measured_beside_two_bare_statements(postgres):
    """Both write to the same server, and the server's own count of its syncs goes on."""
    url = postgres.book()
    with contextlib.closing(postgresql.Thin(url)) as thin, contextlib.closing(Subject(url)) as subject:
        store = subject.ledger.store
        before = thin.syncs(store)
        one = measure.interleave({"mine": subject.block, "thin": thin.block}, rounds=1, warm_up=0)
        assert measure.ratio(one["mine"], one["thin"]) > 0.0
        with thin.callers(2) as callers:
            assert load(callers, 0.2) > 0.0
        assert thin.syncs(store) - before >= 4 * measure.BLOCK
        assert len(store.operations(limit=100)) == measure.BLOCK
