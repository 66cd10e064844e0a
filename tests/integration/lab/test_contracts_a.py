"""Payments and other keyed APIs of the catalogue: each surprise of a provider, as something that would go wrong."""

from __future__ import annotations

import re

import pytest
from tests.integration.lab.playing import outcomes, played, unsafe

from counterfoil import contracts
from counterfoil.domain.absence import NO_POSITIVE, absence
from counterfoil.domain.canonical import canonical
from counterfoil.domain.reach import why_no_absence
from counterfoil.domain.reading import Reading, ReadingKind
from counterfoil.domain.words import Outcome
from counterfoil.lab.behaviour import model
from counterfoil.lab.behaviour.asked import differing
from counterfoil.lab.behaviour.natures import natures
from counterfoil.lab.behaviour.service import Service
from counterfoil.lab.catalogue.sayable import asked_for

TOGETHER = "every clause of protection and repeat"
RETENTION = "protection.retention_seconds"


def sent(name):
    """Our write, as the provider reads it."""
    asked = asked_for(contracts.load(name), model.load(name))
    assert asked is not None
    return asked


def service(name):
    """The provider, kind where its documentation is silent."""
    return Service(next(natures(model.load(name))))


@pytest.mark.parametrize(
    ("name", "scenario", "clause"),
    [
        ("zendesk.tickets_create", "key_expiry", TOGETHER),  # A2: two hours
        ("nylas.messages_send", "key_expiry", RETENTION),  # A2: an hour
        ("truelayer.payments_v3", "key_expiry", TOGETHER),  # A2: six hours, says one page of two
        ("paypal.payouts.create_batch", "key_expiry", TOGETHER),  # A2: thirty days, where refunds have 45
        ("stripe.v1.payment_intents_create", "key_expiry", RETENTION),  # A2: a day, and then a new one
        ("telnyx.email_messages.create", "replayed_error", TOGETHER),  # B6: only successes are kept
        ("emailit.emails_send", "replayed_error", TOGETHER),  # B6: what fails frees its key
    ],
)
def test_a_naive_repeat_doubles_it_and_ours_does_not(name, scenario, clause):
    """Whoever repeats because a key is there makes a second one; the contract knows better."""
    assert unsafe(played(name, scenario, clause)) & {"second_effect", "replay_after_retention"}
    assert unsafe(played(name, scenario)) == set()


def test_a2_of_two_pages_that_contradict_each_other_the_smaller_period_counts():
    """TrueLayer says 30 days, and 6 hours."""
    contract = contracts.load("truelayer.payments_v3")
    assert contract.protection.retention_seconds == 6 * 3600
    assert "30 days" in contract.sources["keys"].says


def test_a3_a_corrected_amount_under_plaids_key_is_a_second_transfer():
    """Its key is a tuple; what is not of the tuple is ignored, and only that makes it compare the answer."""
    name = "plaid.bank_transfer.create"
    there, ours = service(name), sent(name)
    there.arrive(ours, 0.0)
    there.arrive(differing(ours, "/description", "bonus"), 1.0)
    assert len(there.effects) == 1
    there.arrive(differing(ours, "/amount", "11.00"), 2.0)
    assert len(there.effects) == 2
    contract = contracts.load(name)
    assert contract.repeat.other_payload == "second_effect"
    assert "/amount" in contract.protection.compared


@pytest.mark.parametrize(
    ("version", "replayed"), [("v1.payment_intents_create", True), ("v2.outbound_payments_create", False)]
)
def test_b5_stripe_v1_and_v2_treat_an_error_as_opposites(version, replayed):
    """Under one header: v1 repeats a 500 for ever, v2 takes up again what failed. Neither is told as failed."""
    name = f"stripe.{version}"
    contract = contracts.load(name)
    assert contract.protection.carrier == "header:Idempotency-Key"
    assert contract.repeat.errors_replayed is replayed
    results = played(name, "replayed_error")
    assert unsafe(results) == set()
    assert Outcome.REJECTED not in outcomes(results)


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("worldline.direct.create_payment", "answers[0].match /order/amountOfMoney"),
        ("paymongo.transfers.create", "answers[0].match /transfers/0/amount"),
        ("plaid.bank_transfer.create", "answers[0].match /description"),
    ],
)
def test_b7_another_body_under_a_key_is_accepted_silently(name, clause):
    """The kept answer is of somebody else's request: what it says is compared with what was asked for."""
    assert unsafe(played(name, "mismatch", clause)) & {"mismatch_told_as_success", "false_acceptance"}
    results = played(name, "mismatch")
    assert unsafe(results) == set()
    assert any(result.run.stood[-1].contradicted for result in results)


def test_b8_worldline_answers_with_the_current_state():
    """A repeat says what the payment is now, and a payment that was rejected since is no success."""
    assert contracts.load("worldline.direct.create_payment").repeat.same_payload == "returns_current"
    results = played("worldline.direct.create_payment", "other_state")
    assert unsafe(results) == set()
    told = {effect for result in results for effect in result.run.effects.values()}
    assert told <= {"", "accepted by Worldline"}


@pytest.mark.parametrize("name", ["mangopay.transfers.create", "paypal.payouts.create_batch", "bvnk.transfers.create"])
def test_c9_an_error_that_means_that_somebodys_first_landed(name):
    """Read as a rejection it denies what happened, and PayPal's advises to pay everybody again under another id."""
    assert contracts.load(name).answers[1].means == "first_landed"
    assert "false_rejection" in unsafe(played(name, "concurrent_duplicate", "answers[1].finding"))
    assert unsafe(played(name, "concurrent_duplicate")) == set()
    assert unsafe(played(name, "mismatch")) == set()


def test_c9_what_mangopays_409_hides_is_found_by_its_key():
    """The answer that was lost is kept under the key, with what was asked for."""
    assert outcomes(played("mangopay.transfers.create", "lost_response")) >= {Outcome.SUCCEEDED}


def test_c10_zuora_makes_an_order_after_it_timed_out():
    """The call goes on: a 504 denies nothing, and the order is read by its number."""
    results = played("zuora.orders.create", "replayed_error")
    assert unsafe(results) == set()
    assert outcomes(results) == {Outcome.SUCCEEDED, Outcome.UNKNOWN}


def test_c11_nylas_has_two_different_409s():
    """The key that is spent on another mail is never read as sent, the one in flight never as refused."""
    name = "nylas.messages_send"
    rules = {rule.where["/error/type"]: rule.means for rule in contracts.load(name).answers if rule.where}
    assert rules == {
        "api.invalid_idempotent_request": "key_conflict", "api.concurrent_idempotent_request": "in_flight"
    }  # fmt: skip
    assert outcomes(played(name, "mismatch")) == {Outcome.UNKNOWN}
    assert "false_rejection" in unsafe(played(name, "concurrent_duplicate", "answers[2].finding"))


def test_c14_a_200_of_zuora_may_say_that_nothing_came_of_it():
    """Its own word counts: success, and that the order is completed."""
    name = "zuora.orders.create"
    assert "false_success" in unsafe(played(name, "other_state", "answers[0].where /status"))
    assert unsafe(played(name, "other_state")) == set()


@pytest.mark.parametrize("name", ["zendesk.tickets_create", "stripe.v1.payment_intents_create"])
def test_d15_a_search_that_lags_behind_finds_and_never_denies(name):
    """Of each there is a list beside it; what the search does not show is not absent."""
    list_, search = contracts.load(name).looks
    assert (search.consistency, search.lag_seconds) == ("eventual", "unknown")
    assert list_.request.path != search.request.path
    results = played(name, "eventual_read")
    assert unsafe(results) == set()
    assert outcomes(results) <= {Outcome.UNKNOWN, Outcome.SUCCEEDED}


def test_d17_stripes_list_by_group_denies_only_beside_a_control_of_ones_own():
    """A list is read right after a write, unlike a search; that it is the right account's is shown by a known item."""
    (look,) = contracts.load("stripe.v1.transfers_create").looks
    assert why_no_absence(look) == ()
    blind = Reading(kind=ReadingKind.ABSENT, positive_control=False, negative_control=True)
    verdict = absence(
        look=look, reading=blind, looked_at=9e9, elapsed=9e9, deadline=0.0, longest_delivery=60.0, quiesced=True
    )
    assert (verdict.proven, verdict.missing) == (False, (NO_POSITIVE,))


def test_e_telnyx_has_no_key_for_text_messages():
    """What is not declared is not sent in hope: the contract is for mails, whose request declares it."""
    contract = contracts.load("telnyx.email_messages.create")
    assert contract.request is not None
    assert contract.request.path == "/v2/email_messages"
    assert not [name for name in contracts.names() if name.startswith("telnyx.") and name != contract.id]


def test_e_telnyx_compares_byte_for_byte_and_gets_what_was_approved():
    """Nothing is written anew on the way, so a repeat is the same request."""
    name = "telnyx.email_messages.create"
    assert sent(name).body == canonical(model.load(name).played.payload)


def test_e_mangopays_key_has_its_characters():
    """16 to 36 letters, digits and dashes: the ledger's own form holds an underscore."""
    key = sent("mangopay.transfers.create").headers["idempotency-key"]
    assert re.fullmatch(r"[0-9A-Za-z-]{16,36}", key)


def test_e_what_another_body_does_under_dwollas_key_is_not_claimed():
    """A key is said to be paired with a body, and nothing more."""
    contract = contracts.load("dwolla.transfers.create")
    assert contract.repeat.other_payload == "unknown"
    assert unsafe(played("dwolla.transfers.create", "mismatch")) == set()
