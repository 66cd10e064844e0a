"""Whatever is done to a ledger, a receipt replayed event by event ends where its row stands, and explains itself."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant
from tests.property.test_retention_lives import Kept

from counterfoil.runtime import queue
from counterfoil.runtime.replay import columns_of, replay
from counterfoil.runtime.sampling import judge


class Told(Kept):
    """A life of which every receipt is read again after each step."""

    @invariant()
    def the_last_event_leaves_the_columns_of_the_row(self):
        """And each event goes on from where the one before it left them."""
        for history in self.histories() if hasattr(self, "sent") else ():
            told = replay(history)
            assert told[-1].after == columns_of(history.operation)
            assert [h.before for h in told[1:]] == [h.after for h in told[:-1]]

    @invariant()
    def what_is_resolved_explains_itself(self):
        """Erased and removed on record included."""
        for history in self.histories() if hasattr(self, "sent") else ():
            if not history.operation.unresolved:
                assert judge(history).because == ()

    @invariant()
    def what_is_unresolved_stands_in_the_queue(self):
        """Each once, and nothing that waits for nobody."""
        if hasattr(self, "sent"):
            waiting, _ = queue.read(self.ledger)
            wanted = [o.id for o in self.operations() if o.unresolved or o.step]
            assert sorted(w.operation.id for w in waiting) == sorted(wanted)


@pytest.mark.slow
class TestTold(Told.TestCase):
    settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
