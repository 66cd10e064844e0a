"""A reservoir: each of a stream is as likely as any other, and no more is kept than is asked for."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest
from tests.surface.books import Book

from counterfoil.bootstrap import open_ledger
from counterfoil.domain.event import EventKind
from counterfoil.runtime.sampling import Body, judge, reservoir


def stream(length):
    """So many rows."""
    return ((n, f"op_{n}") for n in range(length))


@pytest.mark.parametrize(("length", "most"), [(0, 3), (2, 3), (3, 3), (4, 3), (1000, 3), (1000, 1)])
def test_it_keeps_as_many_as_there_are_and_no_more(length, most):
    """Each at most once; and it says how long the stream was."""
    kept, seen = reservoir(stream(length), most, random.Random(1))
    assert (len(kept), seen) == (min(length, most), length)
    assert len(set(kept)) == len(kept)


def test_a_seed_decides():
    """The same seed draws the same; another draws others."""
    draws = [tuple(reservoir(stream(100), 5, random.Random(seed))[0]) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_each_is_as_likely_as_any_other():
    """Of 10,000 samples of 3 in 12, each was drawn 2,500 times, give or take six standard deviations."""
    counts = Counter(
        n for seed in range(10_000) for n, _ in reservoir(stream(12), 3, random.Random(seed))[0]
    )  # fmt: skip
    assert set(counts) == set(range(12))
    assert all(abs(count - 2_500) < 6 * (10_000 * 0.25 * 0.75) ** 0.5 for count in counts.values())


@pytest.fixture(scope="module")
def histories(tmp_path_factory):
    """The history of each operation, by key."""
    book = Book(tmp_path_factory.mktemp("sample")).write("succeeded", "rejected", "not_sent", "sent_later", "resolved")
    with open_ledger(book.path) as ledger:
        return {key: ledger.history(operation) for key, operation in book.ids.items()}


def edited(history, seq, **fields):
    """The same history with one event's fields replaced."""
    events = tuple(msgspec.structs.replace(e, **fields) if e.seq == seq else e for e in history.events)
    return msgspec.structs.replace(history, events=events)


def test_what_the_house_records_explains_itself(histories):
    """Every outcome that was settled, with its bodies."""
    for key, history in histories.items():
        found = judge(history)
        assert (found.because, found.body, found.reconstructed) == ((), Body.PRESENT, True), key


def test_an_outcome_without_a_rule_is_named(histories):
    """Evidence that changes an outcome names the clause or the fixed word it goes by; else nobody can check it."""
    for key, seq in (("succeeded", 2), ("rejected", 2), ("resolved", 3), ("resolved", 2)):
        history = histories[key]
        record = msgspec.json.decode(history.events[seq - 1].record)
        bare = {k: v for k, v in record.items() if k not in ("rule", "reason")}
        said = judge(edited(history, seq, record=msgspec.json.encode(bare))).because
        assert any(reason.startswith(f"event {seq} made it ") for reason in said), (key, seq)


def test_a_body_that_is_gone_must_be_gone_on_record(histories):
    """Nobody's word for it is a gap."""
    found = judge(edited(histories["succeeded"], 1, body=None))
    assert (found.body, found.because) == (
        Body.MISSING,
        ("a body is gone, and nothing on record says who erased it",),
    )  # fmt: skip


def test_what_cannot_be_read_is_named(histories):
    """It is judged all the same, and never as reconstructed."""
    history = histories["succeeded"]
    assert history.events[1].kind is EventKind.OBSERVED
    assert "record: its record cannot be read as 'observed'" in judge(edited(history, 2, record=b"x")).because
