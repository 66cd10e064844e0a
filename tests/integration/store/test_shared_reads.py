"""Looks at one provider's account: all operations and processes share them, and one that finds none left waits."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.integration.store.commands import LOOKED_AT, SALT, claim, evidence, look_at

from counterfoil.domain import looking, rules
from counterfoil.domain.command import Amend, Amended, Declined
from counterfoil.domain.event import EventKind, encode
from counterfoil.domain.words import Finding, Outcome, Source
from counterfoil.plans.observing import sealed
from counterfoil.store import locks, reading
from counterfoil.store.postgresql import PostgresStore
from counterfoil.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[3]
NOON = 1_800_000_000.0


@pytest.fixture
def timed(make_store):
    """A store whose clock the test sets."""
    clock = [NOON]
    store = make_store(clock=lambda: clock[0])
    store.clock = clock
    return store


def unknown(store):
    """An operation whose answer was lost, and whose next step is a look."""
    wanted = claim()
    store.write(wanted)
    said = evidence(Finding.UNKNOWN)
    store.write(Amend(operation=wanted.id, rule=rules.observe(said, encode(said), None, LOOKED_AT)))
    found = store.load(wanted.id).operation
    assert (found.outcome, found.step) == (Outcome.UNKNOWN, "look")
    return wanted.id


def answered(store, operation, **said):
    """What a look heard, written as the plans write it: its facts stand in a body that may be erased."""
    heard = {"source": Source.LOOK, "rule": "looks[0].inconclusive", "facts": {"items": 0}} | said
    kept = sealed(evidence(Finding.UNKNOWN, **heard), SALT)
    rule = rules.observe(kept.evidence, kept.line, kept.body, LOOKED_AT)
    return store.write(Amend(operation=operation, rule=rule))


def test_the_sixth_look_of_a_minute_waits_until_the_first_is_a_minute_old(timed):
    """Refused for now, on record once, with none of its own reads used; its outcome and its step stay what they are."""
    ids = [unknown(timed) for _ in range(6)]
    for number, operation in enumerate(ids[:5]):
        timed.clock[0] = NOON + number
        assert isinstance(timed.write(look_at(operation)), Amended)
    before = timed.load(ids[5]).operation
    timed.clock[0] = NOON + 5
    for _ in range(2):
        refused = timed.write(look_at(ids[5]))
        assert isinstance(refused, Declined)
        assert refused.because == (looking.SHARED_SPENT,)
    waits = timed.load(ids[5])
    moved = {"due_at": NOON + 60, "seq": before.seq + 1, "updated_at": before.updated_at}
    assert waits.operation == msgspec.structs.replace(before, **moved)
    assert waits.events[-1].kind is EventKind.NOTED
    assert b"are spent for now" in waits.events[-1].record
    timed.clock[0] = NOON + 60
    assert isinstance(timed.write(look_at(ids[5], asked=False)), Amended)


def test_what_else_is_observed_hides_no_retry_after(timed):
    """An event that came while the look was out, and a person's finding after it, leave its word in force."""
    first, second = unknown(timed), unknown(timed)
    timed.write(look_at(first, looks=0))
    answered(timed, first, source=Source.WEBHOOK, rule="webhooks[0]")
    answered(timed, first, retry_after_seconds=90.0)
    assert timed.write(look_at(second, looks=0)).because == (looking.ASKED_TO_WAIT,)
    third = unknown(timed)
    timed.clock[0] = NOON + 91
    timed.write(look_at(third, looks=0))
    answered(timed, third, retry_after_seconds=90.0)
    answered(timed, third, source=Source.OPERATOR, rule="operator.finding")
    assert timed.write(look_at(second, looks=0)).because == (looking.ASKED_TO_WAIT,)


@pytest.mark.parametrize("other", [{"tenant": "b"}, {"account": "b"}, {"provider": "b"}])
def test_another_account_shares_nothing(timed, other):
    """What is spent at one account of one provider leaves every other alone."""
    ids = [unknown(timed) for _ in range(6)]
    assert all(isinstance(timed.write(look_at(operation)), Amended) for operation in ids[:5])
    assert isinstance(timed.write(look_at(ids[5], **other)), Amended)


def test_a_retry_after_binds_the_whole_account_without_a_budget(timed):
    """One look heard when to ask again: no other is made before, and each is afterwards."""
    first, second = unknown(timed), unknown(timed)
    assert isinstance(timed.write(look_at(first, looks=0)), Amended)
    answered(timed, first, retry_after_seconds=90.0)
    timed.clock[0] = NOON + 89
    refused = timed.write(look_at(second, looks=0))
    assert isinstance(refused, Declined)
    assert refused.because == (looking.ASKED_TO_WAIT,)
    assert isinstance(timed.write(look_at(second, looks=0, account="b")), Amended)
    timed.clock[0] = NOON + 91
    assert isinstance(timed.write(look_at(unknown(timed), looks=0)), Amended)


def test_a_long_retry_after_binds_others_for_an_hour(timed):
    """Longer words hold for the operation that heard them; for others they end, and one of them hears it again."""
    first, second = unknown(timed), unknown(timed)
    timed.write(look_at(first))
    answered(timed, first, retry_after_seconds=80_000.0)
    timed.clock[0] = NOON + looking.SHARED_SECONDS_MAX - 1
    assert isinstance(timed.write(look_at(second)), Declined)
    timed.clock[0] = NOON + looking.SHARED_SECONDS_MAX + 1
    assert isinstance(timed.write(look_at(second)), Amended)
    assert timed.load(first).operation.due_at >= NOON + 80_000


def test_the_count_is_a_walk_over_the_looks_alone(path):
    """An index of looks answers it: no table is searched from end to end."""
    with contextlib.closing(SqliteStore(path)) as store:
        plan = [row[-1] for row in store.query("EXPLAIN QUERY PLAN " + reading.PAID, (0.0, "t", "a"))]
    assert any("event_looking" in step for step in plan)
    assert not [step for step in plan if step.startswith("SCAN")]


def test_looks_that_share_are_counted_one_after_the_other():
    """On PostgreSQL one exclusive lock stands for them: two transactions never count the same room."""
    asked = look_at(claim().id)
    names, shared, _ = locks.wanted([asked])
    assert (names, shared) == ([f"looks default {LOOKED_AT.provider} acct"], [False])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_processes_at_once_share_one_budget(kind, request, tmp_path):
    """Sixteen looks asked for by two processes at the same moment: five are paid, eleven wait, and none is lost."""
    place = str(tmp_path / "receipts.db") if kind == "sqlite" else request.getfixturevalue("postgres").book()
    with contextlib.closing((SqliteStore if kind == "sqlite" else PostgresStore)(place)) as store:
        ids = [unknown(store) for _ in range(16)]
        said = _at_once(place, ids[::2], ids[1::2])
        looks = [store.load(operation).operation.looks for operation in ids]
        waits = [store.load(operation).events[-1].kind for operation in ids].count(EventKind.NOTED)
    assert (sum(line.startswith("Amended") for line in said), sum(looks), waits) == (5, 5, 11)


def _at_once(place, *shares):
    """What processes say that were all told at the same moment to look."""
    with contextlib.ExitStack() as house:
        children = [house.enter_context(_child(place, share)) for share in shares]
        assert [process.stdout.readline() for process in children] == ["ready\n"] * len(shares)
        for process in children:
            process.stdin.write("go\n")
            process.stdin.flush()
        return [line for process in children for line in process.communicate(timeout=60)[0].splitlines()]


def _child(place, operations):
    argv = [sys.executable, "-m", "tests.integration.store.child", "look", place, *operations]
    return subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
