"""Every order of the statements of two writers on one effect comes to what one of them after the other comes to."""

from __future__ import annotations

import contextlib
import itertools
import json
import os

import msgspec
import pytest
from tests.databases import schema_of
from tests.integration.store.commands import claim, claim_again, evidence, faults, late, observe, settle
from tests.integration.store.interleaving import played, schedules

from counterfoil.domain import consent, override
from counterfoil.domain.command import Amend
from counterfoil.domain.decision import Decider
from counterfoil.domain.words import Finding
from counterfoil.lab.interleaving import Actor
from counterfoil.store.postgresql import PostgresStore

NIGHTLY = bool(os.environ.get("COUNTERFOIL_NIGHTLY"))
WHO = Decider(by="user:mara", reason="test", how="", seen=0)
SCHEDULES_MIN = 2
"""Fewer would mean that nothing was interleaved."""


class Scene:
    """One operation whose attempt may have left, in a book; what is done to it has the same ids each time."""

    def __init__(self) -> None:
        self.first, self.other = claim(effect="e"), claim(effect="e")
        self.record = evidence()

    def prepared(self, store):
        """Write what stands there beforehand."""
        self.reply = store.write(self.first)

    def act(self, name, store):
        """Do one thing."""
        return store.write(getattr(self, f"_{name}")())

    def _claim(self):
        return self.other

    def _claim_again(self):
        return claim_again(self.first.id)

    def _record(self):
        return settle(self.first, self.reply, self.record)

    def _late(self):
        return late(self.first.id, Finding.REJECTED)

    def _sweep(self):
        return observe(self.first.id, evidence(Finding.UNKNOWN, quiesced=True))

    def _abandon(self):
        return Amend(operation=self.first.id, rule=override.abandon(msgspec.structs.replace(WHO, seen=1)))

    def _revoke(self):
        return Amend(operation=self.first.id, rule=consent.revoke(msgspec.structs.replace(WHO, seen=1)))


ACTS = ("claim", "claim_again", "record", "late", "sweep", "abandon", "revoke")
PAIRS = tuple(itertools.combinations(ACTS, 2)) + tuple((name, name) for name in ("claim", "record", "sweep", "abandon"))


def said(reply):
    """A reply without times and hashes, which differ from one book to the next."""
    return (type(reply).__name__, getattr(reply, "because", ()))


def stands(store):
    """What stands in a book, likewise."""
    histories = list(store.histories())
    assert [fault for history in histories for fault in faults(history)] == []
    gone = dict.fromkeys(("created_at", "due_at", "deadline", "updated_at"), 0.0)
    events = [[(e.kind, timeless(e)) for e in h.events] for h in histories]
    return [(msgspec.structs.replace(h.operation, **gone), told) for h, told in zip(histories, events, strict=True)]


def timeless(event):
    """What an event says, but not when: a claim that is one statement bears no reading of the clock."""
    return {name: value for name, value in json.loads(event.record).items() if name != "steady"}


@pytest.fixture
def observer(postgres):
    """Sees who waits for whom."""
    with postgres.connect() as db:
        yield db


def emptied(book, observer):
    """Take back whatever a book holds."""
    schema = schema_of(book)
    observer.execute(f"SET session_replication_role = 'replica'; TRUNCATE {schema}.operation, {schema}.event CASCADE")


WAYS = {"at once": 1e9, "slowly": -1.0}
"""How long until the time is kept again: with it, a claim and an outcome go the slow way."""


AT_ONCE = frozenset({"claim", "record"})
"""What one statement writes; all else is a transaction that names its own isolation, whatever the default is."""
RUNS = (
    *((pair, "read committed", "at once") for pair in PAIRS),
    *((pair, "serializable", "at once") for pair in PAIRS if AT_ONCE & set(pair)),
    *((pair, "read committed", "slowly") for pair in PAIRS if AT_ONCE & set(pair)),
)


POOLED = (
    RUNS
    if NIGHTLY
    else (
        (("claim", "claim_again"), "read committed", "at once"),
        (("claim", "record"), "serializable", "at once"),
        (("record", "late"), "read committed", "slowly"),
    )
)
"""What is tried through a pooler; nightly all of it."""


def parametrized(runs):
    """A test of each."""
    return pytest.mark.parametrize(
        ("pair", "isolation", "way"), runs, ids=lambda v: "-".join(v) if type(v) is tuple else v
    )


@pytest.fixture(autouse=True)
def kept(monkeypatch, way):
    """Which way the two go."""
    monkeypatch.setattr("counterfoil.store.postgresql.KEPT_SECONDS", WAYS[way])


@parametrized(RUNS)
def test_two_writers_come_to_what_one_after_the_other_does(postgres, observer, pair, isolation):
    """Whatever the default isolation is, and whichever statement of whom comes first."""
    interleaved(postgres.book(default_transaction_isolation=isolation), observer, pair)


@parametrized(POOLED)
def test_two_writers_do_so_through_a_pooler(pooled, observer, pair, isolation):
    """Each of their transactions may run in another session, and the one may have the other's last one."""
    interleaved(pooled.book(default_transaction_isolation=isolation), observer, pair, NAMES)


NAMES = ("one", "two")
"""By which each is told where the number of a session's process is invented."""


def interleaved(book, observer, pair, names=("", "")):
    """Play every order of the statements of two writers, and compare with one after the other."""
    scene = Scene()
    count = 0
    urls = [f"{book}&application_name={name}" if name else book for name in names]
    with contextlib.closing(PostgresStore(urls[0])) as one, contextlib.closing(PostgresStore(urls[1])) as two:
        stores = (one, two)
        one._kept = two._kept = one.now()
        serial = []
        for order in ((0, 1), (1, 0)):
            emptied(book, observer)
            scene.prepared(one)
            replies = [None, None]
            for who in order:
                replies[who] = said(scene.act(pair[who], stores[who]))
            serial.append((replies, stands(one)))

        def play(chosen):
            emptied(book, observer)
            scene.prepared(one)
            actors = [
                Actor(store, lambda s, act=act: scene.act(act, s), name)
                for act, store, name in zip(pair, stores, names, strict=True)
            ]
            choices = played(actors, observer, chosen)
            assert ([said(actor.reply) for actor in actors], stands(one)) in serial, chosen
            return choices

        for _ in schedules(play):
            count += 1
    assert count >= SCHEDULES_MIN
