"""Reading: whole, in order, nothing left out, and always as it stood at one moment."""

from __future__ import annotations

import threading

import pytest
from tests.integration.store.commands import claim, evidence, faults, late, note, observe, settle

from counterfoil.domain.errors import NoSuchOperation, StoreFull
from counterfoil.domain.words import Finding


def test_a_key_finds_its_operation_and_no_other(store):
    """Tenant, actor, action and key together name one operation; anything else finds nothing."""
    first = claim("k")
    store.write(first)
    assert store.find("default", "user:a", "pay", "k") == store.load(first.id)
    for other in (("x", "user:a", "pay", "k"), ("default", "x", "pay", "k"), ("default", "user:a", "x", "k")):
        assert store.find(*other) is None
    assert store.find("default", "user:a", "pay", "K") is None


def test_every_unresolved_operation_is_listed_oldest_first(store):
    """More than any page holds: none is left out, and what is settled is not among them."""
    claims = [claim() for _ in range(300)]
    replies = [store.write(c) for c in claims]
    for c, reply in list(zip(claims, replies, strict=True))[::3]:
        store.write(settle(c, reply))
    wanted = [c.id for i, c in enumerate(claims) if i % 3]
    assert [o.id for o in store.unresolved()] == wanted


def test_operations_are_paged_newest_first(store):
    """Pages of seven meet without a gap and without a repetition."""
    claims = [claim() for _ in range(20)]
    for c in claims:
        store.write(c)
    seen, before = [], None
    while page := store.operations(limit=7, before=before):
        seen += page
        before = page[-1].n
    assert [o.id for o in seen] == [c.id for c in reversed(claims)]


def test_every_history_is_read_for_verification(store):
    """More than one page of them, oldest first, each whole."""
    claims = [claim() for _ in range(520)]
    for c in claims:
        store.write(c)
    store.write(note(claims[0].id, "seen"))
    histories = list(store.histories())
    assert [h.operation.id for h in histories] == [c.id for c in claims]
    assert len(histories[0].events) == 2


def test_a_history_is_read_as_it_stood_at_one_moment(store):
    """While another writes to it, an operation is never read with events it does not count, by any reading."""
    first = claim("k")
    store.write(first)
    over = threading.Event()

    def write():
        for i in range(60):
            store.write(note(first.id, f"n{i}"))
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while not over.is_set():
        seen += [store.load(first.id), store.find("default", "user:a", "pay", "k"), *store.histories()]
    writer.join()
    assert [fault for history in seen for fault in faults(history)] == []
    assert len({len(history.events) for history in seen}) > 1


def test_reading_keeps_no_snapshot_open(open_sqlite):
    """After a reading, a refused one included, the log can be written back: readers do not make it grow for ever."""
    store = open_sqlite()
    first = claim()
    store.write(first)
    store.load(first.id)
    with pytest.raises(NoSuchOperation):
        store.load("op_" + "0" * 32)
    store.write(note(first.id, "seen"))
    assert store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def test_a_reading_that_was_interrupted_spoils_no_later_one(open_sqlite):
    """What Ctrl+C left open on the reading connection is closed by the next reader."""
    store = open_sqlite()
    first = claim()
    store.write(first)
    with pytest.raises(KeyboardInterrupt), store._read() as db:
        raise KeyboardInterrupt
    db.execute("BEGIN")
    assert store.load(first.id).operation.id == first.id


def test_the_reading_connection_cannot_write(open_sqlite):
    """Whatever statement a reader runs, nothing changes."""
    store = open_sqlite()
    store.write(claim())
    with pytest.raises(StoreFull, match="readonly"):
        store.query("DELETE FROM operation")
    assert len(store.operations(limit=9)) == 1


def test_what_is_unknown_and_late_is_all_there(store):
    """The history of one operation tells its whole story, in the order it was told."""
    first = claim()
    store.write(settle(first, store.write(first), evidence(Finding.UNKNOWN)))
    store.write(observe(first.id, evidence(Finding.REJECTED, reason="look")))
    store.write(late(first.id))
    history = store.load(first.id)
    assert [event.kind for event in history.events] == ["begun", "observed", "observed", "observed"]
    assert history.operation.unresolved
