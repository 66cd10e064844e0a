"""What surely elapsed: counted from what was recorded after a sender could last write, on the boot of the look."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.keeping import removed, settled
from tests.crash.stepping import NOON, SECONDS, action, claimed, draw, observed, ruled, steady

from counterfoil.domain import looking, rules
from counterfoil.domain.elapsed import reading_of, since_first_claim, since_last_write
from counterfoil.domain.event import begun_of, encode
from counterfoil.domain.retry import RETENTION_OVER
from counterfoil.domain.steady import Steady, stamped
from counterfoil.domain.words import Basis, Finding, Source
from counterfoil.plans.claims import begun_for

HOUR = 3600.0


def looked(history, at, boot="near", *, wall=0.0):
    """The history after a look was paid for, by a wall clock that is so far ahead."""
    pay = looking.pay_look(action().contract, 0, asked=True, by="w")
    return ruled(history, pay, at + wall, read=steady(at, boot))


def silent(at=NOON + 1, **said):
    """A claim at noon, of which nothing was heard."""
    return observed(claimed(), Finding.UNKNOWN, at=at, **said)


def old(history):
    """The same as a version recorded it that had no such clock."""
    events = []
    for event in history.events:
        record = msgspec.json.decode(event.record)
        record.pop("steady", None)
        events.append(msgspec.structs.replace(event, record=encode(record)))
    return msgspec.structs.replace(history, events=tuple(events))


@pytest.mark.parametrize("wall", [0.0, HOUR, -HOUR])
def test_a_look_counts_from_the_senders_deadline(wall):
    """Nothing the wall clock says changes that; before the deadline it is negative."""
    assert since_last_write(looked(silent(), NOON + 71, wall=wall).events) == 71 - SECONDS
    assert since_last_write(looked(silent(), NOON + 4, wall=wall).events) == 4 - SECONDS


def test_a_sender_that_reported_later_counts_from_then():
    """It may have written until it reported, whatever its deadline was."""
    assert since_last_write(looked(silent(NOON + 100), NOON + 171).events) == 71


def test_only_its_first_report_counts():
    """A late answer of an attempt that was quiet already moves nothing."""
    twice = observed(silent(), Finding.UNKNOWN, at=NOON + 100, source=Source.LATE_ANSWER)
    assert since_last_write(looked(twice, NOON + 71).events) == 71 - SECONDS


def test_who_is_not_quiet_yet_counts_by_its_deadline_alone():
    """Whether it may still write is asked for itself."""
    assert since_last_write(looked(silent(NOON + 50, quiesced=False), NOON + 71).events) == 71 - SECONDS


def test_the_first_look_of_another_boot_counts_from_itself():
    """What another machine's clock said is nothing to it; the next look of the same boot counts from the first."""
    once = looked(silent(), NOON + HOUR, "far")
    assert since_last_write(once.events) == -SECONDS
    assert since_last_write(looked(once, NOON + HOUR + 71, "far").events) == 71 - SECONDS
    assert since_last_write(looked(once, NOON + HOUR + 71, "near").events) == HOUR + 71 - SECONDS


def test_a_report_from_another_boot_counts_from_the_next_reading():
    """Whoever found the worker dead after a reboot says since when it is quiet; before that boot nothing is."""
    dead = observed(claimed(read=steady(NOON, "before")), Finding.UNKNOWN, at=NOON + HOUR)
    assert since_last_write(looked(dead, NOON + HOUR + 1).events) == -SECONDS
    elsewhere = observed(claimed(read=steady(NOON, "far")), Finding.UNKNOWN, at=NOON + HOUR)
    looks = looked(looked(elsewhere, NOON + HOUR + 5, "far"), NOON + HOUR + 50, "far")
    assert since_last_write(looks.events) == 45


def test_a_later_attempt_counts_from_its_own_claim():
    """Two attempts: the last write is the later one's, whatever was recorded of the first."""
    begun = begun_for(action(), draw(2), destination="https://api.example")
    again = rules.claim_again(begun, action().contract, longest_delivery=None, automatic=False)
    history = ruled(observed(claimed(), Finding.NOT_SENT), again, NOON + 500)
    assert reading_of(history.events[-1]) == steady(NOON + 500)
    history = observed(history, Finding.UNKNOWN, at=NOON + 501)
    assert since_last_write(looked(history, NOON + 571).events) == 71 - SECONDS


def test_records_without_readings_count_from_the_first_look_that_has_one():
    """What an older version recorded proves nothing by itself, and stands in nobody's way."""
    first = looked(old(silent()), NOON + HOUR)
    assert since_last_write(first.events) == -SECONDS
    assert since_last_write(looked(first, NOON + HOUR + 71).events) == 71 - SECONDS
    assert since_last_write(old(first).events) is None


def test_what_was_removed_counts_from_the_first_look_after_it():
    """Its readings are gone with its events."""
    history = removed(settled(), at=NOON + HOUR)
    reopened = msgspec.structs.replace(history.operation, unresolved=1)  # by late evidence
    history = msgspec.structs.replace(history, operation=reopened)
    first = looked(history, NOON + HOUR + 1)
    assert since_last_write(first.events) == 0.0
    assert since_last_write(looked(first, NOON + HOUR + 61).events) == 60.0


def test_a_key_ages_from_the_first_claim():
    """By the reading of whoever judges it, where both are of one boot."""
    read = msgspec.structs.replace(silent(), read=steady(NOON + HOUR))
    assert since_first_claim(read) == HOUR
    assert since_first_claim(msgspec.structs.replace(read, read=steady(NOON + HOUR, "far"))) is None
    assert since_first_claim(old(read)) is None
    assert since_first_claim(silent()) is None
    assert since_first_claim(msgspec.structs.replace(read, events=())) is None


def test_a_clock_set_back_makes_no_key_younger():
    """The machine slept for a day and its clock was set back: the key is a day old all the same."""
    begun = begun_for(action(), draw(2), destination="https://api.example")
    replay = rules.claim_again(
        begun, action().contract, longest_delivery=None, automatic=True, basis=Basis.SAME_KEY_REPLAY
    )  # fmt: skip
    young = msgspec.structs.replace(silent(), read=steady(NOON + 60))
    aged = msgspec.structs.replace(silent(), read=steady(NOON + 24 * HOUR))
    assert replay(aged, NOON + 60).because == (RETENTION_OVER,)
    assert begun_of(replay(young, NOON + 60).events[0]).steady == steady(NOON + 60)


def test_a_stamped_record_is_what_encoding_it_whole_gives():
    """The store need not read the record to say when it was written."""
    begun = begun_for(action(), draw(2), destination="https://api.example")
    for seconds in (0.0, 0.1, 12345.678901234, 4e9):
        read = Steady("5f3a", seconds)
        assert stamped(encode(begun), read) == encode(msgspec.structs.replace(begun, steady=read))


def test_readings_of_two_boots_say_nothing_of_each_other():
    """Only within one boot is there a difference."""
    assert steady(NOON + 5).since(steady(NOON)) == 5
    assert steady(NOON + 5).since(steady(NOON, "far")) is None
    assert steady(NOON + 5).since(None) is None
