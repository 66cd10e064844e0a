"""A claim: new, existing, held, in conflict or unlucky; and a claim that comes again finds itself."""

from __future__ import annotations

import math
import threading

import msgspec
import pytest
from tests.integration.store.commands import (
    claim,
    claim_again,
    evidence,
    late,
    note,
    observe,
    settle,
    stands,
)

from counterfoil.domain.command import (
    Amended,
    Claimed,
    Collision,
    Conflict,
    Declined,
    Existing,
    NewlyHeld,
    Settled,
)
from counterfoil.domain.errors import StoreUnsafe
from counterfoil.domain.event import EventKind, begun_of
from counterfoil.domain.identifier import operation_id
from counterfoil.domain.steady import stamped
from counterfoil.domain.words import Dispatch, Finding


def test_a_new_claim_is_on_record_for_everybody_when_it_is_answered(store, make_store):
    """Whoever opens the book after the answer reads the receipt: started, unobserved, unresolved, one event."""
    wanted = claim(body=b"s" * 16 + b'{"n":1}')
    reply = store.write(wanted)
    assert isinstance(reply, Claimed)
    history = make_store().load(wanted.id)
    assert history.operation == stands(wanted, reply.at)
    (event,) = history.events
    claimed = stamped(wanted.record, begun_of(event).steady)
    assert (event.kind, event.at, event.record, event.body) == (EventKind.BEGUN, reply.at, claimed, wanted.body)
    assert history.head == reply.head == event.hash


def test_the_same_claim_again_recognises_itself(store):
    """A claim whose first answer was lost is answered as the first time and adds nothing."""
    wanted = claim()
    assert store.write(wanted) == store.write(wanted)
    assert len(store.load(wanted.id).events) == 1


def test_a_claim_that_somebody_wrote_to_since_is_not_claimed_again(store):
    """Once recovery has spoken for it, the claim that comes again may not send."""
    wanted = claim()
    store.write(wanted)
    store.write(observe(wanted.id, evidence(Finding.UNKNOWN)))
    again = store.write(wanted)
    assert isinstance(again, Existing)
    assert len(again.history.events) == 2


def test_a_proposal_that_was_held_is_held_when_it_comes_again(store):
    """The re-run of a held proposal is no claim: answering Claimed would send it beside its holder."""
    store.write(claim(effect="e"))
    wanted = claim(effect="e")
    first = store.write(wanted)
    again = store.write(wanted)
    assert isinstance(first, NewlyHeld)
    assert again == first
    assert store.load(wanted.id).operation.dispatch is Dispatch.NOT_STARTED


def test_the_same_key_answers_with_what_stands_there(store):
    """A second call with one key and one fingerprint gets the first's whole history."""
    first = claim("k")
    store.write(first)
    reply = store.write(claim("k"))
    assert isinstance(reply, Existing)
    assert reply.history == store.load(first.id)


@pytest.mark.parametrize("field", ["tenant", "actor", "action"])
def test_a_key_belongs_to_one_principal(store, field):
    """The same key of another tenant, actor or action is another operation."""
    store.write(claim("k"))
    assert isinstance(store.write(claim("k", **{field: "other"})), Claimed)
    assert len(store.operations(limit=9)) == 2


@pytest.mark.parametrize("holder", [False, True])
@pytest.mark.parametrize("settled", [False, True])
def test_another_fingerprint_is_a_conflict_before_every_other_answer(store, holder, settled):
    """Whether the first is settled, and whether the effect is held or not: nothing is recorded, the first is named."""
    first = claim("k", effect="e")
    reply = store.write(first)
    if settled:
        store.write(settle(first, reply))
    if holder:
        store.write(claim(effect="f"))
    other = claim("k", effect="f", payload=b'{"n":2}')
    assert store.write(other) == Conflict(operation=first.id, stored=first.intent.fingerprint)
    assert other.id not in {o.id for o in store.operations(limit=9)}


def test_another_of_the_same_effect_is_recorded_and_held(store):
    """It keeps its frozen payload and names who holds it; it is neither started nor unresolved."""
    first = claim(effect="e")
    store.write(first)
    wanted = claim(effect="e")
    reply = store.write(wanted)
    assert isinstance(reply, NewlyHeld)
    assert reply.history == store.load(wanted.id)
    operation, (event,) = reply.history.operation, reply.history.events
    assert (operation.held_by, operation.unresolved, operation.attempts) == (first.id, 0, 0)
    assert (operation.dispatch, event.kind, event.body) == (Dispatch.NOT_STARTED, EventKind.HELD, wanted.body)
    assert [o.id for o in store.unresolved()] == [first.id]


def test_settling_lifts_the_hold(store):
    """A new call of the same effect is claimed once the first is settled, not before."""
    first = claim(effect="e")
    reply = store.write(first)
    assert isinstance(store.write(claim(effect="e")), NewlyHeld)
    assert isinstance(store.write(settle(first, reply)), Settled)
    assert isinstance(store.write(claim(effect="e")), Claimed)


def test_an_unknown_outcome_lifts_nothing(store):
    """Unknown is not settled: the effect stays held."""
    first = claim(effect="e")
    store.write(settle(first, store.write(first), evidence(Finding.UNKNOWN)))
    assert isinstance(store.write(claim(effect="e")), NewlyHeld)


def test_a_held_operation_is_claimed_only_when_the_effect_is_free(store):
    """An attempt of a held operation is declined while the holder is unresolved, naming it, and claimed after."""
    first = claim(effect="e")
    reply = store.write(first)
    held = claim(effect="e")
    store.write(held)
    declined = store.write(claim_again(held.id))
    assert isinstance(declined, Declined)
    assert first.id in declined.because[0]
    assert declined.history == store.load(held.id)
    store.write(settle(first, reply))
    assert isinstance(store.write(claim_again(held.id)), Amended)


def test_the_same_row_number_is_a_collision(store):
    """Two processes that drew one number: the second draws again, and nothing of it is recorded."""
    first = claim()
    store.write(first)
    other = claim(n=first.n, id=operation_id(first.n, b"x" * 10))
    assert store.write(other) == Collision()
    assert [o.id for o in store.operations(limit=9)] == [first.id]


def test_a_row_number_that_collides_under_a_hold_is_a_collision_too(store):
    """Being held is no reason to take another operation's row."""
    first = claim(effect="e")
    store.write(first)
    other = claim(n=first.n, id=operation_id(first.n, b"x" * 10), effect="e")
    assert store.write(other) == Collision()


@pytest.mark.parametrize("impossible", [{"value": math.nan}, {"record": None}, {"owner": None}])
def test_a_row_that_cannot_be_is_an_error_and_no_collision(store, impossible):
    """A claim refused by no index would be drawn again for ever: it is an error, and its effect stays free."""
    wanted = claim(effect="e")
    with pytest.raises((StoreUnsafe, TypeError)):
        store.write(msgspec.structs.replace(wanted, **impossible))
    assert store.operations(limit=9) == []
    assert isinstance(store.write(wanted), Claimed)


def test_of_many_racing_for_one_key_one_claims(store, make_store):
    """Thirty-two callers in two openers use one key at once: one sends, the rest are told who does."""
    wanted = [claim("k", effect=f"e{i}") for i in range(32)]
    replies = _at_once(wanted, [store, make_store()])
    assert sorted(type(r).__name__ for r in replies) == ["Claimed"] + ["Existing"] * 31
    assert len({r.history.operation.id for r in replies if isinstance(r, Existing)}) == 1


def test_of_many_racing_for_one_effect_one_claims(store, make_store):
    """Thirty-two callers with keys of their own cause one effect at once: one sends, the rest are held by it."""
    wanted = [claim(effect="e") for _ in range(32)]
    replies = _at_once(wanted, [store, make_store()])
    assert sorted(type(r).__name__ for r in replies) == ["Claimed"] + ["NewlyHeld"] * 31
    (winner,) = store.unresolved()
    assert {r.history.operation.held_by for r in replies if isinstance(r, NewlyHeld)} == {winner.id}


def _at_once(commands, stores):
    replies = [None] * len(commands)
    barrier = threading.Barrier(len(commands))

    def run(i):
        barrier.wait()
        replies[i] = stores[i % len(stores)].write(commands[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(commands))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def test_an_attempt_that_is_claimed_again_finds_itself(store):
    """The re-run of a claim by rule adds no second attempt."""
    first = claim()
    store.write(settle(first, store.write(first), evidence(Finding.NOT_SENT)))
    command = claim_again(first.id)
    assert isinstance(store.write(command), Amended)
    assert isinstance(store.write(command), Declined)
    assert [e.kind for e in store.load(first.id).events].count(EventKind.BEGUN) == 2


def test_a_note_on_the_holder_changes_no_hold(store):
    """Events that settle nothing leave the effect as held as it was."""
    first = claim(effect="e")
    store.write(first)
    store.write(note(first.id, "seen"))
    assert isinstance(store.write(claim(effect="e")), NewlyHeld)
    assert isinstance(store.write(late(first.id)), Amended)
    assert isinstance(store.write(claim(effect="e")), Claimed)
