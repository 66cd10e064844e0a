"""Walking over every operation: each once, whole and of one moment, wherever a page of them ends."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from tests.integration.store.commands import claim, faults, note, settle
from tests.integration.store.conftest import KINDS

from counterfoil.domain.event import History
from counterfoil.store import retention, rows
from counterfoil.store.postgresql import PostgresStore

PAGE = 3
"""Operations of a page here."""
LARGE = b"b" * (rows.BODY_INLINE_MAX + 1)


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch):
    """Few operations, events and bodies make a page."""
    for name, most in (("OPERATIONS_MAX", PAGE), ("EVENTS_MAX", 8), ("BODIES_MAX", 2)):
        monkeypatch.setattr(rows, name, most)


@pytest.fixture(params=KINDS)
def damaged(request):
    """A store of each kind that nobody adds up afterwards, with nothing that keeps its rows from harm."""
    with contextlib.closing(KINDS[request.param](request)(None)) as store:
        on = "" if request.param == "sqlite" else " ON event"
        with store.lead() as db:
            db.execute(f"DROP TRIGGER event_is_final{on}")
        yield store


def written(store, count):
    """The ids of so many settled operations, oldest first."""
    claims = [claim() for _ in range(count)]
    for each in claims:
        store.write(settle(each, store.write(each)))
    return [each.id for each in claims]


def walked(store):
    """The id of every operation in the order of the walk; each was read as `load` reads it."""
    found = list(store.walk())
    assert [row.history for row in found] == [store.load(row.id) for row in found]
    return [row.id for row in found]


@pytest.mark.parametrize("count", [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 1])
def test_each_operation_is_read_once(store, count):
    """Whether the last page is empty, begun or full."""
    ids = written(store, count)
    assert walked(store) == ids
    assert [history.operation.id for history in store.histories()] == ids


@pytest.mark.parametrize("place", range(4))
def test_an_operation_larger_than_a_page_is_read_whole(store, place):
    """First, between others, at a page's border and last: it is neither cut nor left out, and nor is any beside it."""
    ids = written(store, 4)
    for i in range(20):
        store.write(note(ids[place], f"n{i}"))
    assert walked(store) == ids
    assert len(store.load(ids[place]).events) == 22


def test_large_bodies_fill_a_page_sooner(store):
    """What has a row of its own is counted apart: a page of a few megabytes, not of a thousand bodies."""
    claims = [claim(body=LARGE) for _ in range(5)]
    for each in claims:
        store.write(settle(each, store.write(each), body=LARGE))
    assert walked(store) == [each.id for each in claims]
    with store._read() as db:
        assert [row.id for row in rows.page(db, rows.N_MIN)] == [claims[0].id]


def test_a_page_is_of_one_moment(store):
    """What is written between its statements is in none of them: no operation has events that it does not count."""
    ids = written(store, 2)
    with store._read() as db:
        page = rows.page(Interrupted(db, lambda: store.write(note(ids[0], "meanwhile"))), rows.N_MIN)
    assert [len(row.history.events) for row in page] == [2, 2]
    assert [fault for row in page for fault in faults(row.history)] == []
    assert len(store.load(ids[0]).events) == 3


class Interrupted:
    """Runs statements, and something else after the first of them."""

    def __init__(self, db, then):
        self._db, self._then = db, [then]

    def execute(self, statement, parameters=()):
        """Run one."""
        found = self._db.execute(statement, parameters).fetchall()
        while self._then:
            self._then.pop()()
        return Rows(found)


class Rows(list):
    """What was found."""

    def fetchall(self):
        """All of it."""
        return self


def test_what_cannot_be_read_is_told_where_it_stands(damaged):
    """At each place in a page and of the store: that one is named, and every other is read."""
    ids = written(damaged, 2 * PAGE + 1)
    for place, broken in enumerate(ids):
        n = rows.event_id(int(broken[3:15], 16), 2)
        with damaged.lead() as db:
            db.execute("UPDATE event SET kind = 'guessed' WHERE id = ?", (n,))
        found = list(damaged.walk())
        assert [row.id for row in found] == ids
        assert [i for i, row in enumerate(found) if not isinstance(row.history, History)] == [place]
        with pytest.raises(ValueError, match="guessed"):
            list(damaged.histories())
        with damaged.lead() as db:
            db.execute("UPDATE event SET kind = 'observed' WHERE id = ?", (n,))


@pytest.mark.parametrize("n", [-5, 1 << 50, rows.N_MAX])
def test_a_row_under_a_number_that_is_no_ids_is_read(damaged, n):
    """Below and above all others: the walk neither misses it nor ends there."""
    ids = written(damaged, PAGE)
    with damaged.lead() as db:
        db.execute("UPDATE operation SET n = ? WHERE id = ?", (n, ids[1]))
    found = {row.id: (row.n, len(row.history.events)) for row in damaged.walk()}
    assert set(found) == set(ids)
    assert found[ids[1]] == (n, 0)


def test_events_of_nobody_keep_no_page_from_ending(damaged):
    """More of them than a page holds, between two operations and behind the last: the walk goes on."""
    ids = written(damaged, 3)
    with damaged.lead() as db:
        db.execute("DELETE FROM operation WHERE id = ?", (ids[1],))
        for seq in range(3, 30):
            db.execute(
                "INSERT INTO event SELECT ?, kind, at, record, body, hash FROM event WHERE id = ?",
                (rows.event_id(int(ids[1][3:15], 16), seq), rows.event_id(int(ids[1][3:15], 16), 2)),
            )
    assert walked(damaged) == [ids[0], ids[2]]


def test_no_other_process_is_started_to_read_a_few_events(postgres):
    """However large the tables are: the server guesses by their size, and starting one takes longer than reading."""
    cheap = (
        "parallel_setup_cost",
        "parallel_tuple_cost",
        "min_parallel_table_scan_size",
        "min_parallel_index_scan_size",
    )
    with contextlib.closing(PostgresStore(postgres.book(**dict.fromkeys(cheap, "0")))) as store:
        written(store, 40)
        with store.lead() as session:
            session.execute("ANALYZE")
        plan = [row[0] for row in store.query("EXPLAIN SELECT id FROM event ORDER BY at, id")]
    assert not [step for step in plan if "Gather" in step]


@pytest.mark.parametrize(
    ("statement", "asked"),
    [(rows._EVENTS, (0, 1)), (rows.SELECT + retention._AGED, (0, 1e12, 2))],
    ids=["events", "aged"],
)
def test_a_few_rows_are_found_by_their_numbers(postgres, statement, asked):
    """A join would leave it to the server to read a table from its beginning for each of many statements."""
    with contextlib.closing(PostgresStore(postgres.book())) as store:
        written(store, 40)
        with store.lead() as session:
            session.execute("ANALYZE")
        plan = [row[0].strip() for row in store.query("EXPLAIN " + statement, asked)]
    scans = [after for step, after in itertools.pairwise(plan) if " on event" in step or " on body" in step]
    assert scans
    assert [after for after in scans if not after.startswith("Index Cond: (")] == []
