"""Surprises of providers whose things have a name of the client's: refused as taken, not found, or written over."""

from __future__ import annotations

import msgspec
import pytest
from tests.integration.lab.playing import claiming, of, outcomes, unsafe

from counterfoil import contracts
from counterfoil.domain import reach
from counterfoil.lab.behaviour import model
from counterfoil.lab.catalogue.fences import fences
from counterfoil.lab.catalogue.weaken import weakened

TOGETHER = "every clause of protection and repeat"
STRONG = (
    "atproto.put_record",
    "aws.s3.put_if_none_match",
    "azure.blob.put",
    "cloudflare.r2.put_if_none_match",
    "consul.kv.create",
    "elasticsearch.create",
    "gcp.firestore.create",
    "gcp.storage.insert",
    "kubernetes.create",
)
"""Their documentation, or source, says that a read by name shows every write that was answered before."""
FENCED = (
    "aws.s3.put_if_none_match",
    "azure.blob.put",
    "cloudflare.r2.put_if_none_match",
    "elasticsearch.create",
    "gcp.firestore.create",
    "gcp.storage.insert",
    "kubernetes.create",
)
"""A placeholder under the same name keeps a late original out."""


def played(name, scenario, contract=None):
    """Play one scenario of a contract, as it stands or another; every result."""
    return of(contract or contracts.load(name), model.load(name), scenario)


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("aws.dynamodb.transact_write", "key_expiry"),  # A2: ten minutes after the first has completed
        ("google_calendar.events_insert", "lost_response"),  # C12: an id that is taken may go unnoticed
        ("gcp.cloudtasks.create", "ended"),  # C13: executed looks like never created
        ("elasticsearch.create", "ended"),  # a deleted document's id is free again
        ("salesforce.upsert_external_id", "lost_response"),  # E22: it is written over, each time
    ],
)
def test_a_naive_repeat_does_it_again_and_ours_does_not(name, scenario):
    """Whoever trusts the name or the token for longer than it holds writes twice."""
    clauses = [found.clause for found in weakened(contracts.load(name))]
    clause = TOGETHER if TOGETHER in clauses else "protection.retention_seconds"
    assert unsafe(played(name, scenario, claiming(name, clause))) & {"second_effect", "replay_after_retention"}
    assert unsafe(played(name, scenario)) == set()


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("alpaca.orders.create", 3),
        ("atproto.put_record", 2),
        ("azure.blob.put", 1),
        ("azure.dns.record_set", 1),
        ("cloudflare.r2.put_if_none_match", 1),
        ("consul.kv.create", 1),
        ("elasticsearch.create", 1),
        ("gcp.cloudtasks.create", 1),
        ("gcp.firestore.create", 1),
        ("gcp.storage.insert", 1),
        ("github.contents_put", 1),
        ("google_calendar.events_insert", 1),
        ("google_drive.files_create", 1),
        ("hetzner.servers.create", 1),
    ],
)
def test_c9_taken_means_that_somebodys_first_landed(name, index):
    """Never a rejection, which denies what an earlier copy did; never a success, as it may be another's."""
    assert contracts.load(name).answers[index].means == "first_landed"
    assert unsafe(played(name, "concurrent_duplicate")) == set()
    assert unsafe(played(name, "mismatch")) == set()
    if name != "atproto.put_record":  # there the very same again is a success, and only another's is refused
        naive = claiming(name, f"answers[{index}].finding")
        assert "false_rejection" in unsafe(played(name, "concurrent_duplicate", naive))


def test_b7_coinbase_returns_the_order_that_has_the_id():
    """Whatever was asked for now: product and side are compared before it is a success."""
    naive = claiming("coinbase.advanced.create_order", "answers[0].match /side")
    assert "mismatch_told_as_success" in unsafe(played("coinbase.advanced.create_order", "mismatch", naive))
    results = played("coinbase.advanced.create_order", "mismatch")
    assert unsafe(results) == set()
    assert any(result.run.stood[-1].contradicted for result in results)


def test_b8_a_repeat_at_the_at_protocol_is_a_200_that_wrote_nothing():
    """The very same record stands once, however often it is put; whoever hears of it hears of a success."""
    results = played("atproto.put_record", "concurrent_duplicate")
    assert all(len(result.effects) == 1 for result in results)
    assert outcomes(results[:2]) == {"succeeded"}


def test_c12_google_calendar_shows_what_was_deleted_as_cancelled():
    """It is there, and is no event any more."""
    assert "false_success" in unsafe(
        played(
            "google_calendar.events_insert",
            "other_state",
            claiming("google_calendar.events_insert", "looks[0].match.state /status"),
        )
    )
    assert unsafe(played("google_calendar.events_insert", "other_state")) == set()


def test_c13_a_task_that_is_not_found_may_have_been_executed():
    """It stays unknown, and is never told as failed."""
    assert contracts.load("gcp.cloudtasks.create").looks[0].absence_means == "not_now"
    assert "unknown" in outcomes(played("gcp.cloudtasks.create", "ended"))
    assert "rejected" not in outcomes(played("gcp.cloudtasks.create", "ended"))


def test_c14_a_200_of_consul_may_say_that_nothing_was_put():
    """The whole body is one word: false is somebody's first, and no success."""
    naive = claiming("consul.kv.create", "answers[0].where ")
    assert "mismatch_told_as_success" in unsafe(played("consul.kv.create", "mismatch", naive))
    assert unsafe(played("consul.kv.create", "mismatch")) == set()


def test_c14_a_200_of_coinbase_may_say_that_no_order_was_made():
    """It is looked for then, as its reasons are not documented to prove anything."""
    assert outcomes(played("coinbase.advanced.create_order", "refused")) == {"unknown"}


@pytest.mark.parametrize("name", STRONG)
def test_d15_a_strong_read_finds_what_was_lost_and_never_denies_it(name):
    """Found is a success; not found proves nothing, as it may have been there and gone."""
    contract = contracts.load(name)
    assert (contract.looks[0].consistency, contract.looks[0].lag_seconds) == ("strong", 0)
    assert contract.looks[0].absence_means == "not_now"
    assert outcomes(played(name, "lost_response")) == {"succeeded"}
    assert outcomes(played(name, "lost_request")) == {"unknown"}


def test_d15_a_read_at_consul_is_strong_in_one_mode_alone():
    """In the default mode an old leader may answer; both controls are asked in the same mode as the look."""
    look = contracts.load("consul.kv.create").looks[0]
    asked = (look.request, look.controls.positive, look.controls.negative)
    assert [template.query["consistent"] for template in asked] == ["true"] * 3


def test_d15_a_look_at_binance_is_late_by_an_unnamed_time():
    """Asynchronous by its own documentation: what is not shown yet is not absent."""
    look = contracts.load("binance.spot.new_order").looks[0]
    assert (look.consistency, look.lag_seconds) == ("eventual", "unknown")
    assert outcomes(played("binance.spot.new_order", "eventual_read")) == {"unknown"}


@pytest.mark.parametrize("name", FENCED)
def test_d17_a_placeholder_closes_the_name(name):
    """Its answer says which of the two came first; a fence that always wins would deny what happened."""
    contract, behaviour = contracts.load(name), model.load(name)
    assert fences(contract, behaviour) == []
    assert reach.disproves(contract)
    (fence,) = contract.fences
    everything = msgspec.structs.replace(fence, won=(*fence.won, *fence.lost))
    assert fences(msgspec.structs.replace(contract, fences=(everything,)), behaviour) != []


@pytest.mark.parametrize("name", ["azure.dns.record_set", "azure.blob.put", "cloudflare.r2.put_if_none_match"])
def test_e22_a_put_writes_over_what_is_there_but_for_its_condition(name):
    """Without If-None-Match the same request, delivered twice, is two writes."""
    contract = contracts.load(name)
    assert contract.request.headers["if-none-match"] == "*"
    headers = {key: value for key, value in contract.request.headers.items() if key != "if-none-match"}
    bare = msgspec.structs.replace(contract, request=msgspec.structs.replace(contract.request, headers=headers))
    assert len(played(name, "concurrent_duplicate", bare)[0].effects) == 2
    assert len(played(name, "concurrent_duplicate")[0].effects) == 1


def test_e22_salesforce_writes_over_and_says_which_it_was():
    """Several records of one external id are a 300, by which nothing was written."""
    contract = contracts.load("salesforce.upsert_external_id")
    assert (contract.repeat.same_payload, contract.repeat.other_payload) == ("overwrites", "overwrites")
    assert outcomes(played("salesforce.upsert_external_id", "refused")) == {"rejected"}
