"""What PostgreSQL does that the store must know: tried here on the real thing, so that nobody has to believe it."""

from __future__ import annotations

import threading

import psycopg
import pytest

WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"


@pytest.fixture
def approval(postgres):
    """A book with one approval, of which a stranger holds the row; the stranger, and two more connections."""
    book = postgres.book()
    with (
        psycopg.connect(book, autocommit=True) as stranger,
        psycopg.connect(book, autocommit=True) as claimer,
        psycopg.connect(book, autocommit=True) as observer,
    ):
        stranger.execute("CREATE TABLE approval (id INTEGER, ends_at TIMESTAMPTZ, claimed BOOLEAN)")
        stranger.execute("INSERT INTO approval VALUES (1, clock_timestamp() + interval '0.2 seconds', false)")
        stranger.execute("BEGIN")
        stranger.execute("SELECT * FROM approval FOR UPDATE")
        yield stranger, claimer, observer


def claimed_after_waiting(approval, statement):
    """Let a claim wait for the row until the approval has ended; how many rows it claimed."""
    stranger, claimer, observer = approval
    found = []
    thread = threading.Thread(target=lambda: found.append(claimer.execute(statement).rowcount))
    thread.start()
    while not observer.execute(WAITS, ("%approval%claim%",)).fetchone()[0]:
        pass
    while observer.execute("SELECT clock_timestamp() < ends_at FROM approval").fetchone()[0]:
        pass
    stranger.execute("COMMIT")  # nothing was changed
    thread.join()
    return found[0]


def test_a_bare_statement_that_waited_honours_an_expired_approval(approval):
    """The clock of its WHERE was read before the wait: the row that it then locks is judged no second time."""
    bare = "UPDATE approval SET claimed = true /* claim */ WHERE id = 1 AND ends_at > clock_timestamp()"
    assert claimed_after_waiting(approval, bare) == 1


def test_a_lock_first_and_the_clock_outside_it_does_not(approval):
    """The row is locked in a materialised part, and the clock judged by what reads from it."""
    locked = """WITH claim AS MATERIALIZED (SELECT id, ends_at FROM approval WHERE id = 1 FOR UPDATE)
        UPDATE approval SET claimed = true WHERE id = (SELECT id FROM claim WHERE ends_at > clock_timestamp())"""
    assert claimed_after_waiting(approval, locked) == 0
