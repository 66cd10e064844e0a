"""Late evidence is never refused, and an effect with anything unresolved is never claimed beside it."""

from __future__ import annotations

import random
import time

import msgspec
import pytest
from tests.integration.store.commands import claim, claim_again, evidence, late, note, observe, resolve, settle

from counterfoil.domain.command import Amended, Claimed, Declined, Existing, NewlyHeld, Settle, Stale, columns_of
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import EventKind
from counterfoil.domain.words import Discrepancy, Finding, Source
from counterfoil.store.transaction import HOLD_SLOTS_MAX


def settled(store, effect, finding=Finding.REJECTED):
    """An operation of an effect that is over."""
    first = claim(effect=effect)
    store.write(settle(first, store.write(first), evidence(finding)))
    return first


def holding(store, effect):
    """An operation that holds an effect, with what its holder needs to settle it."""
    holder = claim(effect=effect)
    return holder, store.write(holder)


def test_late_evidence_is_taken_while_another_holds_the_effect(store):
    """What was settled is reopened beside the holder; both are unresolved, and neither is lost."""
    first = settled(store, "e")
    holder, _ = holding(store, "e")
    reply = store.write(late(first.id))
    assert isinstance(reply, Amended)
    assert reply.history.operation.discrepancy is Discrepancy.OPEN
    assert {o.id for o in store.unresolved()} == {first.id, holder.id}


def test_news_of_another_is_no_older_than_what_it_comes_after(make_store):
    """Whoever wrote last of the holder may have been ahead of whoever reopens beside it: its time goes on."""
    now = time.time()
    behind, ahead = make_store(clock=lambda: now), make_store(clock=lambda: now + 3600)
    first = settled(behind, "e")
    holder, _ = holding(behind, "e")
    ahead.write(note(holder.id, "assign"))
    behind.write(late(first.id))
    *_, before, last = next(h for h in behind.histories() if h.operation.id == holder.id).events
    assert (before.at, last.kind, last.at) == (now + 3600, EventKind.NOTED, before.at)


def test_the_effect_stays_held_by_what_was_reopened(store):
    """The holder settles, and the reopened one alone still holds the effect: a new claim is held by it."""
    first = settled(store, "e")
    holder, reply = holding(store, "e")
    store.write(late(first.id))
    command = settle(holder, reply)
    assert store.write(command) == Stale()  # its holder must take the slow way, which hands the hold on
    assert isinstance(store.write(observe(holder.id, evidence())), Amended)
    held = store.write(claim(effect="e"))
    assert isinstance(held, NewlyHeld)
    assert held.history.operation.held_by == first.id


def test_the_effect_is_free_when_the_last_is_settled(store):
    """Holder and reopened settle in either order, and only then is a new one claimed."""
    for order in (0, 1):
        effect = f"e{order}"
        first = settled(store, effect)
        holder, _ = holding(store, effect)
        store.write(late(first.id))
        steps = [observe(holder.id, evidence()), resolve(first.id)]
        store.write(steps[order])
        assert isinstance(store.write(claim(effect=effect)), NewlyHeld)
        store.write(steps[1 - order])
        assert isinstance(store.write(claim(effect=effect)), Claimed)


def test_what_is_handed_the_hold_hands_it_on_itself(store):
    """Two are reopened beside a holder: the effect stays held until each of the three is settled, one by one."""
    first, second = settled(store, "e"), settled(store, "e")
    holder, _ = holding(store, "e")
    store.write(late(first.id))
    store.write(late(second.id))
    for step in (observe(holder.id, evidence()), resolve(first.id)):
        assert isinstance(store.write(step), Amended)
        assert isinstance(store.write(claim(effect="e")), NewlyHeld)
    store.write(resolve(second.id))
    assert isinstance(store.write(claim(effect="e")), Claimed)


def test_whoever_is_handed_the_hold_cannot_settle_past_the_others(store):
    """Its claimer knew it by its old slot: the answer from memory is stale, so that the hold is handed on again."""
    first, second = settled(store, "e", Finding.NOT_SENT), settled(store, "e")
    holder, _ = holding(store, "e")
    store.write(late(first.id))
    store.write(late(second.id))
    again = store.write(claim_again(first.id))
    known = again.history
    store.write(observe(holder.id, evidence()))
    answer = Settle(
        n=known.operation.n,
        id=known.operation.id,
        seq=known.operation.seq,
        columns=columns_of(msgspec.structs.replace(known.operation, unresolved=0)),
        head=known.head,
        record=b'{"source":"answer","finding":"succeeded","attempt":2}',
        body=None,
        due_after=0.0,
    )
    assert store.write(answer) == Stale()
    assert isinstance(store.write(claim(effect="e")), NewlyHeld)


def test_reopening_is_limited_by_name(store):
    """As many as there are slots are reopened beside each other; one more is a broken invariant and changes nothing."""
    over = [settled(store, "e") for _ in range(HOLD_SLOTS_MAX)]
    for first in over[:-1]:
        assert isinstance(store.write(late(first.id)), Amended)
    before = store.load(over[-1].id)
    with pytest.raises(InvariantBroken, match="reopened"):
        store.write(late(over[-1].id))
    assert store.load(over[-1].id) == before
    assert len(store.unresolved()) == HOLD_SLOTS_MAX - 1


def test_a_note_for_the_holder_breaks_no_chain(store):
    """The holder's history says why its answer from memory was refused."""
    first = settled(store, "e")
    holder, _ = holding(store, "e")
    store.write(late(first.id))
    events = store.load(holder.id).events
    assert [event.kind for event in events] == ["begun", "noted"]
    assert first.id.encode() in events[-1].record


class Model:
    """What must hold after every step, kept beside the store in the plainest way."""

    def __init__(self, store, dice):
        self.store, self.dice = store, dice
        self.claims = {}
        self.open = {"e": set(), "f": set()}

    def propose(self):
        """A new call: claimed exactly when nothing of its effect is unresolved."""
        effect = self.dice.choice("ef")
        wanted = claim(effect=effect)
        reply = self.store.write(wanted)
        assert isinstance(reply, NewlyHeld if self.open[effect] else Claimed)
        self.claims[wanted.id] = (wanted, reply, effect)
        if isinstance(reply, Claimed):
            self.open[effect].add(wanted.id)
        else:
            assert reply.history.operation.held_by in self.open[effect]

    def again(self):
        """A claim whose answer was lost: it is never claimed beside another."""
        wanted, first, _ = self.pick()
        reply = self.store.write(wanted)
        assert isinstance(reply, type(first) | Existing)

    def answer(self):
        """The claimer's answer from memory, and the slow way where that is stale."""
        wanted, reply, effect = self.pick()
        if not isinstance(reply, Claimed):
            return
        said = evidence(self.dice.choice([Finding.REJECTED, Finding.SUCCEEDED, Finding.NOT_SENT]))
        if isinstance(self.store.write(settle(wanted, reply, said)), Stale):
            self.observe(wanted.id, effect, said)
        else:  # written now, or found to be written when it was said before
            self.told(self.store.load(wanted.id), effect)

    def late(self):
        """Evidence from anywhere, at any time."""
        wanted, _, effect = self.pick()
        said = evidence(self.dice.choice([Finding.REJECTED, Finding.SUCCEEDED, Finding.UNKNOWN]), source=Source.LOOK)
        self.observe(wanted.id, effect, said)

    def observe(self, operation, effect, said):
        """One more piece of evidence, whatever stands there."""
        self.told(self.store.write(observe(operation, said)).history, effect)

    def told(self, history, effect):
        """Believe what the operation itself says."""
        (self.open[effect].add if history.operation.unresolved else self.open[effect].discard)(history.operation.id)

    def resolve(self):
        """A person settles what is open."""
        wanted, reply, effect = self.pick()
        if isinstance(reply, Claimed) and wanted.id in self.open[effect]:
            self.store.write(resolve(wanted.id))
            self.open[effect].discard(wanted.id)

    def attempt(self):
        """A further attempt is claimed exactly when no other of its effect is unresolved."""
        wanted, _, effect = self.pick()
        reply = self.store.write(claim_again(wanted.id))
        if self.open[effect] - {wanted.id} and wanted.id not in self.open[effect]:
            assert isinstance(reply, Declined)
        elif isinstance(reply, Amended):
            self.open[effect].add(wanted.id)

    def note(self):
        """An event that settles nothing."""
        self.store.write(note(self.pick()[0].id, "seen"))

    def pick(self):
        """Any operation there is."""
        if not self.claims:
            self.propose()
        return self.dice.choice(list(self.claims.values()))


@pytest.mark.parametrize("seed", range(6))
def test_no_effect_is_claimed_while_anything_of_it_is_unresolved(store, seed):
    """Whatever comes in whatever order: the store claims and holds exactly as the plainest model does."""
    model = Model(store, random.Random(seed))
    steps = [model.propose, model.propose, model.answer, model.late, model.late, model.resolve, model.attempt]
    steps += [model.again, model.note]
    for _ in range(250):
        model.dice.choice(steps)()
        assert {o.id for o in store.unresolved()} == set().union(*model.open.values())
