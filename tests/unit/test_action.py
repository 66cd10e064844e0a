"""Actions and what one call draws: data, from which everything a claim says follows."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.stepping import PAYLOAD, action, draw, order

from counterfoil import contracts
from counterfoil.domain.action import Order
from counterfoil.domain.errors import InvariantBroken
from counterfoil.domain.event import Begun
from counterfoil.domain.payload import SALT_BYTES, content, salted_digest
from counterfoil.plans.claims import ClaimForm, assumptions_of, begun_for, first_claim


def test_a_sender_has_the_contracts_time():
    """How long a claim may be sent for is the contract's, not the caller's."""
    assert action("lab.key").send_seconds == contracts.load("lab.key").send_deadline_seconds


def test_a_call_that_states_no_value_counts_as_one():
    """Where nobody says what is at risk, exposure counts operations."""
    made = order()
    assert Order(intent=made.intent, action=made.action).value == 1.0


def test_a_negative_control_cannot_exist():
    """Its reference holds the draw's own random bytes, another for every draw."""
    assert draw(1).negative == "cf-absent-" + "ff" * 16
    other = msgspec.structs.replace(draw(1), salts=bytes(32))
    assert other.negative != draw(1).negative


def test_a_claim_says_everything_before_anything_leaves():
    """Intent, contract, code, attempt, provider key with its scope and time: all of it is in the first record."""
    made = order(action("lab.key", code="fn1:x"), mentioned={"tool_call_id": "call_7"})
    claim = first_claim(made, draw())
    begun = msgspec.json.decode(claim.record, type=Begun)
    assert claim.intent == made.intent
    assert (begun.provider_key, begun.key_scope, begun.key_valid_seconds) == (claim.id, "account", 86_400)
    assert (begun.contract, begun.contract_id, begun.code) == (made.action.contract_digest, "lab.key", "fn1:x")
    assert (begun.attempt.number, begun.attempt.token, begun.attempt.worker) == (1, "w.1", "w")
    assert begun.mentioned == {"tool_call_id": "call_7"}
    assert begun.destination == "https://api.example"


def test_the_payload_stands_outside_the_record():
    """The record holds a salted digest only: the payload can be erased and cannot be guessed at."""
    claim = first_claim(order(), draw())
    assert content(claim.body) == PAYLOAD
    assert claim.body[:SALT_BYTES] == draw().salts[:SALT_BYTES]
    assert PAYLOAD not in claim.record
    assert msgspec.json.decode(claim.record, type=Begun).payload_digest == salted_digest(claim.body)


def test_a_form_that_would_write_another_record_is_refused():
    """Fields that look like a form's gaps, or like its marks, never end up in each other's places."""
    with pytest.raises(InvariantBroken, match="another order"):
        ClaimForm(order(action(account="\x02gap-6\x03")))
    percent = order(action(account="100%s"), key="50%")
    assert first_claim(msgspec.structs.replace(percent, form=ClaimForm(percent)), draw()) == first_claim(
        percent, draw()
    )


def test_a_key_of_unknown_time_promises_none():
    """Where retention is unknown no number of seconds is written down."""
    assert begun_for(action("lab.lookup"), draw(), destination="").key_valid_seconds is None


def test_an_assumption_is_printed_with_its_name_and_reason():
    """What a receipt rests on is on it: how many seconds, by whom, why; nothing where nothing is assumed."""
    assert assumptions_of(action()) == {}
    assumed = action(longest_delivery=0.0, longest_delivery_by="ann", longest_delivery_why="measured")
    assert assumptions_of(assumed) == {"longest_delivery": {"seconds": 0.0, "by": "ann", "why": "measured"}}
    assert begun_for(assumed, draw(), destination="").assumptions == assumptions_of(assumed)
