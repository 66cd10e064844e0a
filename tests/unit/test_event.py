"""The history: what its events fold to, and the chain that no edit survives."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from counterfoil.domain.attempt import Attempt
from counterfoil.domain.event import (
    Begun,
    Event,
    EventKind,
    History,
    Noted,
    attempts_of,
    chain,
    destination_of,
    encode,
    first_begun,
    quiet_since,
)  # fmt: skip
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import Discrepancy, Finding, Source


def event(seq, kind, record, at=100.0):
    return Event(n=1, seq=seq, kind=kind, at=at, record=encode(record), body=None, hash=bytes([seq]))


def begun(number):
    return Begun(
        attempt=Attempt(number=number, token=f"w.{number}", send_seconds=10.0), provider_key="op_1", contract="ct1:x",
        contract_id="lab.key",
    )  # fmt: skip


def observed(finding, attempt=1, **said):
    return Evidence(source=Source.ANSWER, finding=finding, attempt=attempt, **said)


def test_attempts_start_at_their_claims():
    """An attempt's clock is the store's at its claim, not what its record could have said."""
    attempts, discrepancy = attempts_of((event(1, EventKind.BEGUN, begun(1), at=123.5),))
    assert (attempts[0].started_at, attempts[0].deadline, discrepancy) == (123.5, 133.5, Discrepancy.NONE)


def test_all_evidence_is_folded_in_order():
    """Claims and observations come together; notes and looks change no attempt."""
    events = (
        event(1, EventKind.BEGUN, begun(1)),
        event(2, EventKind.OBSERVED, observed(Finding.UNKNOWN)),
        event(3, EventKind.LOOKING, Noted(note="look")),
        event(4, EventKind.BEGUN, begun(2)),
        event(5, EventKind.OBSERVED, observed(Finding.REJECTED, 2)),
    )
    attempts, discrepancy = attempts_of(events)
    assert [a.finding for a in attempts] == [Finding.UNKNOWN, Finding.REJECTED]
    assert discrepancy is Discrepancy.NONE


@pytest.mark.parametrize(
    "last", [observed(Finding.REJECTED), observed(Finding.SUCCEEDED, contradicts=True)], ids=["denied", "duplicate"]
)
def test_a_contradiction_is_in_the_history(last):
    """Evidence that contradicts, and evidence that cannot stand beside the intent, open a discrepancy in the fold."""
    events = (
        event(1, EventKind.BEGUN, begun(1)),
        event(2, EventKind.OBSERVED, observed(Finding.SUCCEEDED)),
        event(3, EventKind.OBSERVED, last),
        event(4, EventKind.OBSERVED, observed(Finding.SUCCEEDED)),
    )
    assert attempts_of(events)[1] is Discrepancy.OPEN


def test_evidence_without_an_attempt_is_not_folded():
    """What was only proposed has no attempt that evidence could speak of."""
    assert attempts_of((event(1, EventKind.OBSERVED, observed(Finding.SUCCEEDED)),)) == ((), Discrepancy.NONE)
    assert attempts_of(()) == ((), Discrepancy.NONE)


def test_the_first_claim_is_found():
    """The first `begun` names the provider key for all that follow; a proposal has none."""
    held = event(1, EventKind.HELD, Noted(note="held by op_2"))
    assert first_begun((held,)) is None
    assert first_begun((held, event(2, EventKind.BEGUN, begun(1)), event(3, EventKind.BEGUN, begun(2)))) == begun(1)


def test_a_destination_is_frozen_with_the_first_record():
    """A claim and a proposal both say where it goes; only a history that says nothing leaves it to the action."""
    claim = event(1, EventKind.BEGUN, msgspec.structs.replace(begun(1), destination="https://a.example"))
    proposal = event(1, EventKind.HELD, Noted(note="held by op_2", facts={"destination": "https://b.example"}))
    assert destination_of((claim,), "https://c.example") == "https://a.example"
    assert destination_of((proposal,), "https://c.example") == "https://b.example"
    assert destination_of((proposal, claim), "https://c.example") == "https://a.example"
    asked = event(1, EventKind.PROPOSED, {"bound": {"destination": "https://d.example"}})
    assert destination_of((asked,), "https://c.example") == "https://d.example"
    assert destination_of((claim, asked), "https://c.example") == "https://d.example"
    assert destination_of((event(1, EventKind.NOTED, Noted(note="x")),), "https://c.example") == "https://c.example"


def test_a_worker_is_quiet_from_its_first_report():
    """The last worker to report back decides, each by its first report; who has not reported is quiet at no time."""
    events = (
        event(1, EventKind.BEGUN, begun(1), at=100.0),
        event(2, EventKind.OBSERVED, observed(Finding.UNKNOWN), at=110.0),
        event(3, EventKind.OBSERVED, observed(Finding.UNKNOWN, quiesced=True), at=150.0),
        event(4, EventKind.OBSERVED, observed(Finding.UNKNOWN, quiesced=True), at=190.0),
        event(5, EventKind.OBSERVED, observed(Finding.UNKNOWN, 2, quiesced=True), at=130.0),
    )
    assert quiet_since(events[:2]) == 0.0
    assert quiet_since(events) == 150.0


def test_the_chain_covers_every_field():
    """Another operation, number, kind, time, record or predecessor makes another hash."""
    arguments = [b"", "op_1", 1, "begun", 100.0, b"{}"]
    changed = [b"x", "op_2", 2, "held", 100.5, b"[]"]
    hashes = {chain(*arguments)}
    for place, value in enumerate(changed):
        hashes.add(chain(*arguments[:place], value, *arguments[place + 1 :]))
    assert len(hashes) == 7
    assert all(len(h) == 32 for h in hashes)


def test_the_chain_has_no_two_readings():
    """Fields cannot be moved across their borders: no two different events hash alike by running into each other."""
    made = [
        chain(b"", op, seq, kind, 1.0, b"r") for op, seq, kind in itertools.product(["a", "a\n1"], [1, 11], ["k", ""])
    ]
    assert len(set(made)) == len(made)


def test_the_head_is_the_last_hash():
    """The next event is chained onto the last one; an empty history has no head."""
    events = (event(1, EventKind.BEGUN, begun(1)), event(2, EventKind.OBSERVED, observed(Finding.UNKNOWN)))
    assert History(operation=None, events=events).head == b"\x02"
    assert History(operation=None, events=()).head == b""
