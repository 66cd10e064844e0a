"""Events: read by the contract's own clauses, compared with what was asked for, and sound only where they name it."""

from __future__ import annotations

import json

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.contract import Contract, WebhookRule
from counterfoil.domain.matching import Named
from counterfoil.domain.soundness import check
from counterfoil.domain.webhook import hear, judge
from counterfoil.domain.words import Coverage, Finding, Source

PLACES = {"account": "/account", "reference": "/ref", "external_id": "/id", "source": "service"}
RESULT = {"id": "/id", "state": "/state"}
DONE = WebhookRule(where={"/type": "done"}, finding="succeeded", match={"/amount": "/amount"}, result=RESULT, **PLACES)
FAILED = WebhookRule(where={"/type": "failed"}, finding="rejected", **PLACES)
TAKEN = WebhookRule(where={"/type": "taken"}, finding="accepted", effect="taken in", result=RESULT, **PLACES)
EVENT = {"type": "done", "account": "acct", "ref": "op_1", "id": "e-1", "amount": 10, "state": "paid"}
PAYLOAD = b'{"amount":10}'


def knowing(*rules: WebhookRule, name: str = "lab.key") -> Contract:
    """A contract with these clauses."""
    return msgspec.structs.replace(contracts.load(name), webhooks=rules)


CONTRACT = knowing(DONE, FAILED, TAKEN)


def heard(**changes):
    """The event with some members of its own."""
    return hear(CONTRACT, json.dumps(EVENT | changes).encode(), "acct_endpoint")


def judged(payload=PAYLOAD, **changes):
    """What that event proves."""
    return judge(CONTRACT, heard(**changes), effect="pay", payload=payload)


def test_the_first_clause_that_holds_speaks_of_it():
    """With the names that stand at its places; without one nobody is named."""
    assert heard().named == Named(account="acct", reference="op_1", external_id="e-1")
    assert heard(type="failed").rule == 1
    assert heard(account=None, ref=7, id=True).named == Named(reference="7")
    assert heard(type="other") is None
    assert hear(CONTRACT, b"{", "acct") is None


@pytest.mark.parametrize(("place", "named"), [("scope", "acct_endpoint"), ("unknown", ""), ("/account", "acct")])
def test_the_account_is_the_endpoints_only_where_the_clause_says_so(place, named):
    """What an event does not say is not said."""
    rule = msgspec.structs.replace(DONE, account=place)
    assert hear(knowing(rule), json.dumps(EVENT).encode(), "acct_endpoint").named.account == named


def test_what_agrees_proves_what_its_clause_says():
    """Finding, effect, name and result; the effect is the clause's where it names one."""
    said = judged()
    assert (said.source, said.finding, said.rule, said.effect) == (
        Source.WEBHOOK, Finding.SUCCEEDED, "webhooks[0]", "pay",
    )  # fmt: skip
    assert (said.external_id, said.result) == ("e-1", {"id": "e-1", "state": "paid"})
    assert not said.quiesced
    assert judged(type="taken").effect == "taken in"
    failed = judged(type="failed")
    assert (failed.finding, failed.effect, failed.result) == (Finding.REJECTED, "", None)
    assert failed.facts


def test_another_content_contradicts_and_a_missing_one_proves_nothing():
    """Neither is success, and only what differs contradicts."""
    other = judged(amount=11)
    assert (other.finding, other.contradicts, other.reason) == (Finding.UNKNOWN, True, "other_content")
    for missing in (judged(b""), judge(CONTRACT, heard(amount=None), effect="pay", payload=b"{}")):
        assert (missing.finding, missing.contradicts, missing.reason) == (Finding.UNKNOWN, False, "field_missing")


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"reference": "", "external_id": ""}, "$.webhooks[0]"),
        ({"account": "header:x-account"}, "$.webhooks[0].account"),
        ({"finding": "rejected"}, "$.webhooks[0].match"),
        ({"coverage": Coverage.OPERATION}, "$.webhooks[0].coverage"),
        ({"result": {}}, "$.webhooks[0].result"),
        ({"source": "nowhere"}, "$.webhooks[0].source"),
    ],
)
def test_a_clause_that_claims_too_much_is_found(changes, where):
    """No name, a header, a comparison of what did not happen, too wide a coverage, another type of result."""
    assert [found.path for found in check(knowing(msgspec.structs.replace(DONE, **changes)))] == [where]
    assert check(knowing(DONE, FAILED, TAKEN)) == ()


def test_only_a_key_lets_an_event_speak_for_all_attempts():
    """Where each send is an effect of its own, each event is about one."""
    wide = msgspec.structs.replace(DONE, coverage=Coverage.PROVIDER_KEY)
    assert check(knowing(wide)) == ()
    assert [found.path for found in check(knowing(wide, name="lab.lookup"))] == ["$.webhooks[0].coverage"]
