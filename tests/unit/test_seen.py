"""What a person saw: the contract's own names for the object, and the fields that must be as they were asked for."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.canonical import canonical
from counterfoil.domain.contract import WebhookRule
from counterfoil.domain.seen import comparable, compared, external_id, names

STRIPE, SLACK, PLAIN = (
    contracts.load(name) for name in ("stripe.v1.refunds_create", "slack.chat_post_message", "function.plain")
)


def test_the_contracts_name_for_the_object_comes_first():
    """A message is named by its `ts`; without a contract's word `id` or `external_id` is."""
    assert names(SLACK) == ("ts", "id", "external_id")
    assert names(PLAIN) == ("id", "external_id")
    assert external_id(SLACK, {"ts": "17.5", "id": "x"}) == "17.5"
    assert external_id(SLACK, {"external_id": 7}) == "7"
    assert external_id(SLACK, {"ticket": "T-1"}) == ""


def test_what_the_contract_compares_is_compared():
    """Of answers, looks and events alike, by the field's own name; the payload as a whole is no field."""
    assert comparable(STRIPE) == {"amount": "/amount", "payment_intent": "/payment_intent"}
    assert comparable(contracts.load("lab.key")) == {}
    rule = WebhookRule(where={"/t": 1}, finding="succeeded", match={"/a/b": "/c"}, external_id="/d/e", source="s")
    hooked = msgspec.structs.replace(PLAIN, webhooks=(rule,))
    assert (comparable(hooked), names(hooked)[0]) == ({"b": "/a/b"}, "e")


@pytest.mark.parametrize(
    ("asked", "seen", "found"),
    [
        (1500, "1500", "equal"), (1500, " 1500.00", "equal"), (25, 25, "equal"), (1500, "1501", "different"),
        (Decimal("15.00"), "15", "equal"), ("EUR", "EUR ", "equal"), ("EUR", "eur", "different"), ("1", 1, "equal"),
        (True, "1", "different"), (True, True, "equal"), (None, "None", "different"), ("NaN", "nan", "different"),
        ([1], [1], "equal"), ([1], "1", "different"),
    ],
)  # fmt: skip
def test_a_text_is_what_somebody_typed(asked, seen, found):
    """Numbers by their value, texts by their characters, everything else only as itself."""
    assert compared(STRIPE, {"amount": seen}, canonical({"amount": asked})) == {"amount": found}


def test_what_cannot_be_compared_is_missing():
    """Not in the payload, erased, or not seen at all."""
    for payload in (b"{}", None):
        assert compared(STRIPE, {"amount": "1", "ticket": "T"}, payload) == {"amount": "missing"}
    assert compared(STRIPE, {"ticket": "T"}, b"{}") == {}
