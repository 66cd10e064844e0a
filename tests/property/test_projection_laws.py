"""Whatever is done to a ledger on a real file, its columns are what its events come to, and nothing happens twice."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.crash.world import Scripted, World, die

from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.attempt import fold
from counterfoil.domain.audit import audit
from counterfoil.domain.errors import KeyConflict, NoBasis
from counterfoil.domain.event import attempts_of, first_begun
from counterfoil.domain.words import Dispatch, Outcome, Standing
from counterfoil.plans.late import late
from counterfoil.runtime.drive import drive
from counterfoil.runtime.worker import Worker

FATES = ("answered", "reply_lost", "request_lost", "connect_failed", "refused", "ctrl_c")
KINDS = ("lab.key", "lab.lookup", "lab.nothing")


class Wilful(Scripted):
    """A provider whose next fate the test names, Ctrl+C in the middle of a send included."""

    def send(self, order, flight):
        if self.fates[0] != "ctrl_c":
            return super().send(order, flight)
        flight.may_have_left = True
        self.truth.arrive(order.provider_key, {"amount": 10})
        raise KeyboardInterrupt


class Life(RuleBasedStateMachine):
    """Calls, deaths, sweeps, looks, further attempts, findings and late answers in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="counterfoil-"))

    @initialize(kind=st.sampled_from(KINDS), assumed=st.sampled_from([None, 60.0]))
    def begin(self, kind, assumed):
        self.world = World(self.folder / "world", kind, longest_delivery=assumed)
        self.world.provider = Wilful(self.world.truth, "answered")
        self.ledger = self.world.open()
        self.late = 0

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            die(self.ledger)
        shutil.rmtree(self.folder)

    def operations(self):
        return self.ledger.store.operations(limit=100)

    @rule(key=st.sampled_from("ab"), amount=st.sampled_from([10, 20]), fate=st.sampled_from(FATES))
    def call(self, key, amount, fate):
        """Make a call, or make it again, with whatever becomes of its send."""
        self.world.provider.fates = [fate]
        (registered,) = self.ledger.registry.values()
        order = registered.order({"amount": amount}, actor="agent:pay", scopes={}, key=key)
        before = len(self.world.truth.requests)
        try:
            receipt = self.ledger.call(order)
        except KeyConflict:
            assert len(self.world.truth.requests) == before
        except KeyboardInterrupt:
            assert fate == "ctrl_c"
        else:
            assert receipt.standing is Standing.NEW or len(self.world.truth.requests) == before
        self.world.provider.fates = ["answered"]

    @rule(seconds=st.sampled_from([0.0, 1.0, 70.0, 90_000.0]))
    def wait(self, seconds):
        self.world.now += seconds

    @rule()
    def sweep(self):
        Worker(self.ledger).sweep()

    @rule()
    def restart(self):
        """The process dies and another one opens the file."""
        die(self.ledger)
        self.ledger = self.world.open()

    @rule(number=st.integers(0, 3))
    def look(self, number):
        for operation in self.operations()[number : number + 1]:
            self.ledger.reconcile(operation.id)

    @rule(number=st.integers(0, 3))
    def attempt(self, number):
        """Ask for another attempt on whatever basis is on record."""
        for operation in self.operations()[number : number + 1]:
            before = len(self.world.truth.requests)
            try:
                self.ledger.attempt(operation.id, by="mara")
            except NoBasis:
                assert len(self.world.truth.requests) == before

    @rule(number=st.integers(0, 3))
    def find(self, number):
        """An operator who has seen the truth records it."""
        for operation in self.operations()[number : number + 1]:
            if operation.attempts:
                happened = any(e["name"] == operation.id for e in self.world.truth.effects)
                said = "succeeded" if happened else "rejected"
                self.ledger.resolve(operation.id, said, evidence={"seen": happened}, by="ann")

    @rule(number=st.integers(0, 3), lost=st.booleans())
    def hear_late(self, number, lost):
        """An answer of the last attempt arrives after its caller had gone."""
        for operation in self.operations()[number : number + 1]:
            effects = [e for e in self.world.truth.effects if e["name"] == operation.id]
            if operation.attempts and effects:
                (registered,) = self.ledger.registry.values()
                body = b'{"id":"%s","state":"done"}' % str(effects[0]["id"]).encode()
                answer = Silent(may_have_left=True, reason="reset") if lost else Replied(status=201, body=body)
                draw = self.ledger._drawer.draw()
                plan = late(operation.id, registered.action, operation.attempts, answer, draw)
                drive(plan, self.ledger._executor)

    @invariant()
    def columns_are_the_fold_of_the_events(self):
        """May it go, did it go, what came of it: recomputed from nothing but the events."""
        for history in self.histories():
            operation, begun = history.operation, first_begun(history.events)
            attempts, discrepancy = attempts_of(history.events)
            columns = fold(attempts, discrepancy, follows=bool(begun and begun.follows))
            assert (operation.dispatch, operation.outcome) == (columns.dispatch, columns.outcome)
            assert (operation.exposure, operation.discrepancy) == (columns.exposure, discrepancy)
            assert (operation.attempts, bool(operation.unresolved)) == (len(attempts), columns.unresolved)
            assert audit(history) == ()

    @invariant()
    def nothing_happens_twice_or_is_misreported(self):
        """Per operation one effect at most; what it says happened did, and what it denies did not."""
        for history in self.histories():
            operation = history.operation
            count = sum(e["name"] == operation.id for e in self.world.truth.effects)
            assert count <= 1
            if operation.outcome is Outcome.SUCCEEDED:
                assert count == 1
            if operation.outcome is Outcome.REJECTED or operation.dispatch is Dispatch.NOT_STARTED:
                assert count == 0

    @invariant()
    def one_effect_is_held_by_one(self):
        """No two operations of one effect are unresolved at once while nothing is contradicted."""
        held = [h.operation.effect for h in self.histories() if h.operation.unresolved == 1]
        assert len(held) == len(set(held))

    def histories(self):
        return list(self.ledger.store.histories()) if hasattr(self, "ledger") else []


@pytest.mark.slow
class TestLife(Life.TestCase):
    settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
