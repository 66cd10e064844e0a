"""`counterfoil attempt`: another dispatch only on a basis that is on record, asked for by somebody with a name."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow  # each test starts a provider and at least one interpreter

NAMED = ("--as", "Front Desk", "--reason", "the provider confirmed that nothing was booked")


def operation(shop):
    """The id of the only operation."""
    (found,) = shop("list", "--json").lines
    return found["id"]


def lost(shop, behaviour, action="lab.nothing"):
    """One operation with this accident."""
    shop.faults({"route": "*", "behaviour": behaviour, "times": 1})
    shop.intents(1, action)
    assert shop("run", "lab.jsonl").code == 1
    return operation(shop)


def test_nothing_on_record_permits_a_guess(shop):
    """An unknown outcome without a key is no basis: the refusal names why, and nothing is sent."""
    found = lost(shop, "lose_reply")
    said = shop("attempt", found, "--actions", "lab.yaml", *NAMED)
    assert said.code == 2
    assert "CF-108" in said.err
    assert "Traceback" not in said.err
    assert shop.sends() == 1


def test_a_basis_on_record_is_dispatched_once(shop):
    """Where a person's finding proves that nothing happened, the same operation is dispatched again, and settled."""
    found = lost(shop, "lose_request")
    finding = ("--outcome", "rejected", "--evidence", "ticket=T-1", "--actions", "lab.yaml", *NAMED)
    assert shop("resolve", found, *finding).code == 0
    said = shop("attempt", found, "--basis", "rejected_without_effect", "--actions", "lab.yaml", "--json", *NAMED)
    assert (said.code, said.json["outcome"], said.json["attempts"]) == (0, "succeeded", 2)
    assert shop.effects() == [0]
    again = shop("attempt", found, "--actions", "lab.yaml", "--json", *NAMED)
    assert (again.code, again.json["error"]["code"]) == (2, "CF-108")
    assert shop.sends() == 2


def test_an_attempt_is_a_decision(shop):
    """Without a terminal and without a name nothing is dispatched, and the error says what to add."""
    found = lost(shop, "lose_reply")
    said = shop("attempt", found, "--actions", "lab.yaml", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "CF-109")
    assert "--as NAME and --reason TEXT" in said.json["error"]["message"]
    assert shop.sends() == 1


@pytest.mark.parametrize("basis", ["because", ""])
def test_only_a_basis_that_may_be_asked_for_is_taken(shop, basis):
    """An unknown word is named with those there are."""
    shop.intents(1)
    assert shop("run", "lab.jsonl").code == 0
    said = shop("attempt", operation(shop), "--basis", basis, "--actions", "lab.yaml", *NAMED)
    assert said.code == 2
    assert "same_key_replay" in said.err
    assert shop.sends() == 1


def test_an_unknown_operation_is_named(shop):
    """An id that no operation has is refused before anybody is asked to confirm."""
    shop.intents(1)
    assert shop("run", "lab.jsonl").code == 0
    said = shop("attempt", "op_nope", "--actions", "lab.yaml")
    assert said.code == 2
    assert "op_nope" in said.err
    assert "CF-107" in said.err
