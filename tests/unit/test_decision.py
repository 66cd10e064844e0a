"""Decisions: a name, a reason, what was seen, one event; and never one by an agent."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import LEA, MARA, NOOR, asked, who
from tests.crash.stepping import NOON, declined, ruled

from counterfoil.domain.care import assign
from counterfoil.domain.command import Amendment, Declined
from counterfoil.domain.decision import ALREADY, HOUSE, Verb, changed_since, decided, not_entitled
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import Decided, EventKind


def agreed(history, now):
    """A judge that takes every decision."""
    return history.operation, {"at": now}


def test_a_decision_is_one_event_that_says_everything():
    """Who, why, how they were authenticated, what they had seen, and the facts: on record, and nothing else moves."""
    history = asked()
    found = decided(who(history), Verb.ASSIGN, agreed)(history, NOON + 5)
    assert isinstance(found, Amendment)
    (event,) = found.events
    assert event.kind is EventKind.DECIDED
    assert msgspec.json.decode(event.record, type=Decided) == Decided(
        decision="assign", by=MARA, reason="looked at it", how="terminal", seen_seq=1, facts={"at": NOON + 5}
    )
    assert found.operation == history.operation
    assert not found.claims


@pytest.mark.parametrize(
    ("said", "field"), [({"by": ""}, "by"), ({"reason": ""}, "reason"), ({"by": "agent:pay"}, "by")]
)
def test_a_decision_without_a_person_or_a_reason_is_none(said, field):
    """Nobody, for no reason, or an agent: it is refused before anything is read."""
    with pytest.raises(BadValue) as refused:
        decided(who(asked(), **said), Verb.ASSIGN, agreed)
    assert field in str(refused.value)


@pytest.mark.parametrize("verb", sorted(set(Verb) - {Verb.ESCALATE, Verb.EXPIRE}))
def test_the_house_decides_nothing_that_people_decide(verb):
    """Whoever writes the house's name gets none of its rights: it passes up and lets expire, and no more."""
    with pytest.raises(BadValue, match="house"):
        decided(who(asked(), by=HOUSE), verb, agreed)


def test_the_house_passes_up_without_a_reason():
    """What a rule on record does, it does without words."""
    history = asked()
    rule = decided(who(history, by=HOUSE, reason=""), Verb.ESCALATE, agreed)
    assert isinstance(rule(history, NOON), Amendment)


@pytest.mark.parametrize("seen", [0, 1, 3])
def test_whoever_saw_another_version_decides_again(seen):
    """Older or not there yet: the decision names the last event there is, or nothing is written."""
    history = asked()
    history = ruled(history, decided(who(history, NOOR), Verb.ASSIGN, agreed))
    late = decided(who(history, seen=seen), Verb.ASSIGN, agreed)
    assert declined(history, late) == (changed_since(seen, 2),)


def test_the_same_decision_twice_is_one():
    """Its answer was lost and it is written again: it is recognised, by whom, what and what they saw."""
    history = asked()
    rule = decided(who(history), Verb.ASSIGN, agreed)
    history = ruled(history, rule)
    assert declined(history, rule) == (ALREADY,)
    stale = (changed_since(1, 2),)
    assert declined(history, decided(who(history, NOOR, seen=1), Verb.ASSIGN, agreed)) == stale
    assert declined(history, decided(who(history, seen=1), Verb.ESCALATE, agreed)) == stale


def test_a_like_decision_on_a_later_version_is_another():
    """The same person may decide the same again once they have seen what came of it."""
    history = asked()
    for _ in range(2):
        history = ruled(history, decided(who(history), Verb.ASSIGN, agreed))
    assert history.operation.seq == 3


def test_what_the_judge_refuses_is_not_written():
    """Its reasons come back as they are."""
    history = asked()
    refused = decided(who(history), Verb.ASSIGN, lambda *_: Declined(because=("no",)))
    assert declined(history, refused) == ("no",)


@pytest.mark.parametrize(
    ("by", "entitled", "says"),
    [
        (MARA, (), ""),
        (MARA, (MARA, NOOR), ""),
        (f"{MARA} (uid 7)", (MARA,), ""),
        (LEA, (MARA, NOOR), f"{LEA} is not one of {MARA}, {NOOR}"),
        ("agent:other", (), "an agent decides nothing"),
        ("agent:pay", (), "asked for it"),
        ("agent:pay (uid 7)", (), "asked for it"),
    ],
)
def test_who_is_entitled(by, entitled, says):
    """Anybody but the requester and any agent; only the named where any are named; from whatever terminal."""
    found = "; ".join(not_entitled(asked().operation, by, entitled))
    assert says in found
    assert bool(says) == bool(found)


def test_a_person_who_asked_does_not_decide():
    """The requester is refused by name, also where the requester is a person at a terminal."""
    operation = msgspec.structs.replace(asked().operation, actor=f"{MARA} (uid 7)")
    assert not_entitled(operation, MARA, ()) == (f"{MARA} asked for it, so somebody else decides",)
    assert not_entitled(operation, NOOR, ()) == ()


def test_the_same_words_about_another_thing_are_another_decision():
    """Nobody is told that it is done where something else was: it is judged on what they saw, and is stale."""
    history = asked()
    history = ruled(history, assign(who(history), "treasury"))
    assert declined(history, assign(who(history, seen=1), "treasury")) == (ALREADY,)
    assert declined(history, assign(who(history, seen=1), "finance")) == (changed_since(1, 2),)
