"""Barriers: a fence takes the original's place by the original's condition, with nothing in hand, or it is none."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.contract import Match, ProtectionKind, TextCompare, WebhookRule
from counterfoil.domain.soundness import check

S3, ELASTIC, FIRESTORE, STORAGE, KUBERNETES = (
    contracts.load(name)
    for name in (
        "aws.s3.put_if_none_match", "elasticsearch.create", "gcp.firestore.create", "gcp.storage.insert",
        "kubernetes.create",
    )
)  # fmt: skip
KEPT = {"headers": {"if-none-match": "*"}}
ORIGINAL, PLACE, OVER = "it is the original", "it does not go where", "it writes over"
UNCONDITIONED, CONDITION, PAYLOAD = "the original's request carries no condition", "it lacks", "it carries the payload"


def fenced(contract, **request):
    """What the check says of the contract whose fence is requested otherwise."""
    (fence,) = contract.fences
    other = msgspec.structs.replace(fence, request=msgspec.structs.replace(fence.request, **request))
    return flaws(msgspec.structs.replace(contract, fences=(other,)))


def flaws(contract):
    """Path and sentence of each flaw."""
    return [(found.path, found.problem) for found in check(contract)]


def test_the_catalogues_fences_are_fences():
    """Nothing is wrong with any of them, whatever their condition and their body are."""
    fences = [contract for contract in map(contracts.load, contracts.names()) if contract.fences]
    assert len(fences) == 7
    assert [flaws(contract) for contract in fences] == [[]] * 7


@pytest.mark.parametrize(
    ("contract", "request_", "said"),
    [
        (S3, {"body": "json", "without": ("/bucket", "/key")}, ORIGINAL),
        (KUBERNETES, {"without": ()}, ORIGINAL),
        (S3, {"method": "PATCH"}, PLACE),
        (S3, {"method": "DELETE"}, PLACE),
        (S3, {"path": "/x{/payload/key}"}, PLACE),
        (S3, {"headers": {"if-match": "*"}}, OVER),
        (S3, {"headers": {"if-none-match": "*", "if-match": "e1"}}, OVER),
        (S3, {"headers": {"if-none-match": "*", "if-unmodified-since": "x"}}, OVER),
        (S3, {"headers": {}}, CONDITION),
        (S3, {"headers": {"if-none-match": "e1"}}, CONDITION),
        (STORAGE, {"query": {"uploadType": "media", "name": "{payload/name}"}}, CONDITION),
        (STORAGE, {"query": {**STORAGE.request.query, "ifGenerationMatch": "1"}}, CONDITION),
        (S3, {"body": "payload/document"}, PAYLOAD),
        (S3, {"body": "json"}, PAYLOAD),
        (S3, {"body": "form"}, PAYLOAD),
        (S3, {"body": "json", "without": ("/bucket", "/key", "/other")}, PAYLOAD),
        (S3, {"headers": {"if-none-match": "*", "x-note": "{payload/document/note}"}}, PAYLOAD),
        (S3, {"query": {"note": "{payload/document}"}}, PAYLOAD),
        (ELASTIC, {"without": ("/index",)}, PAYLOAD),
        (ELASTIC, {"put": {"/note": "{payload/note}"}}, PAYLOAD),
        (FIRESTORE, {"without": ("/project", "/collection", "/id", "/fields/amount")}, PAYLOAD),
        (KUBERNETES, {"without": ("/metadata",)}, PAYLOAD),
        (S3, {"headers": {"if-none-match": "*", "x-name": "{payload/key}"}}, ""),
        (S3, {"headers": {"if-none-match": "*", "content-type": "text/plain"}}, ""),
        (S3, {"body": "json", "without": ("/bucket", "/key", "/document")}, ""),
        (ELASTIC, {"without": ("/index", "/id", "/document"), "put": {"/name": "{payload/id}"}}, ""),
    ],
)  # fmt: skip
def test_what_is_no_fence_is_refused(contract, request_, said):
    """The write itself, another place, another condition or none, and whatever holds some of what was asked for."""
    found = fenced(contract, **request_)
    assert [path for path, _ in found] == (["$.fences[0].request"] if said else [])
    assert all(problem.startswith(said) for _, problem in found)


def test_a_conditional_write_whose_request_has_no_condition_has_no_fence():
    """What the original does not ask for no fence can answer; a name that is taken once needs no header."""
    plain = msgspec.structs.replace(S3.request, headers={"content-type": "text/plain"})
    (fence,) = S3.fences
    bare = msgspec.structs.replace(fence, request=msgspec.structs.replace(fence.request, headers={}))
    contract = msgspec.structs.replace(S3, request=plain, fences=(bare,))
    assert [problem.startswith(UNCONDITIONED) for _, problem in flaws(contract)] == [True]
    named = msgspec.structs.replace(contract.protection, kind=ProtectionKind.NATURAL_KEY)
    assert flaws(msgspec.structs.replace(contract, protection=named)) == []


def test_a_text_that_is_compared_is_payload():
    """A fence that sends it is the effect once more."""
    (look,) = S3.looks
    text = TextCompare(format="icalendar", payload="/text", properties=("UID",))
    texts = msgspec.structs.replace(look, items="", match=Match(account="scope", reference="path", text=text))
    contract = msgspec.structs.replace(S3, looks=(texts,))
    kept = ("/bucket", "/key", "/document")
    assert [problem.startswith(PAYLOAD) for _, problem in fenced(contract, body="json", without=kept)] == [True]
    assert fenced(contract, body="json", without=(*kept, "/text")) == []


def test_what_an_event_compares_is_payload():
    """Whatever the provider tells the effect by is of the effect."""
    event = WebhookRule(where={"/t": "made"}, finding="succeeded", reference="/key", match={"/note": "/n"}, source="x")
    told = msgspec.structs.replace(S3, sources=S3.sources | {"x": S3.sources["condition"]}, webhooks=(event,))
    told = msgspec.structs.replace(told, webhooks=(msgspec.structs.replace(event, result=told.result),))
    kept = ("/bucket", "/key", "/document")
    assert [problem.startswith(PAYLOAD) for _, problem in fenced(told, body="json", without=kept)] == [True]
    assert fenced(told, body="json", without=(*kept, "/note")) == []


def test_the_whole_payload_is_never_left_out_in_part():
    """Where the effect is told by all of it, a fence has no body at all."""
    (look,) = S3.looks
    whole = msgspec.structs.replace(look, match=msgspec.structs.replace(look.match, material={"": "/document"}))
    contract = msgspec.structs.replace(S3, looks=(whole,))
    assert [path for path, _ in fenced(contract, body="json", without=("/document",))] == ["$.fences[0].request"]
    assert fenced(contract) == []
