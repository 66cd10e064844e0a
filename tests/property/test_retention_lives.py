"""Retention and erasure at any moment of any life: every record verifies, and no finished key is ever sent again."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from tests.integration.store.keeping import adopt
from tests.property.test_projection_laws import KINDS, Life

from counterfoil.domain import retention
from counterfoil.domain.errors import NotDecided
from counterfoil.domain.event import removed_of
from counterfoil.domain.policy import Retention


class Kept(Life):
    """A life under a policy that keeps bodies for a minute and receipts for an hour."""

    @initialize(kind=st.sampled_from(KINDS), assumed=st.sampled_from([None, 60.0]))
    def begin(self, kind, assumed):
        super().begin(kind, assumed)
        kept = Retention(sensitivity="ordinary", bodies_seconds=60.0, receipts_seconds=3_600.0)
        adopt(self.ledger.store, kept)
        self.ledger.governance.refresh()
        self.sent: dict[str, int] = {}
        """Of each operation whose record was removed: the requests that had arrived by then."""

    @rule(limit=st.sampled_from([None, 1]))
    def retain(self, limit):
        """The house keeps what the policy says, or begins to."""
        open_before = [h for h in self.histories() if retention.against(h)]
        for done in self.ledger.retain(limit=limit):
            assert done.did in ("removed", "erased")
        assert [self.ledger.history(h.operation.id) for h in open_before] == open_before
        arrived = Counter(self.world.truth.requests)
        for history in self.histories():
            if removed_of(history.events):
                self.sent.setdefault(history.operation.id, arrived[history.operation.id])

    @rule(number=st.integers(0, 3))
    def erase(self, number):
        """A person decides that a payload must go."""
        for operation in self.operations()[number : number + 1]:
            before = self.ledger.history(operation.id)
            try:
                self.ledger.erase(operation.id, by="user:ann", reason="asked to")
            except NotDecided:
                assert retention.against(before)
                assert self.ledger.history(operation.id) == before
            else:
                assert all(event.body is None for event in self.ledger.history(operation.id).events)

    @invariant()
    def what_was_removed_is_never_sent_again(self):
        """Whatever is called, looked at, attempted, found or heard afterwards."""
        arrived = Counter(self.world.truth.requests) if hasattr(self, "sent") else {}
        assert {operation: arrived[operation] for operation in getattr(self, "sent", {})} == getattr(self, "sent", {})


@pytest.mark.slow
class TestKept(Kept.TestCase):
    settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
