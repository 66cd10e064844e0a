"""The judge: what each answer to a send proves, and that nothing else proves anything."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.answer import Refused, Replied, Returned, Silent
from counterfoil.domain.contract import AnswerRule, Terminal
from counterfoil.domain.judge import REFUSAL_CHARS_MAX, judge
from counterfoil.domain.payload import RESULT_BYTES_MAX
from counterfoil.domain.words import Coverage, Finding, Source

CATALOGUE = {name: contracts.load(name) for name in contracts.names()}
KEY, NOTHING = CATALOGUE["lab.key"], CATALOGUE["lab.nothing"]
CALDAV, FUNCTION = CATALOGUE["caldav.put_event"], CATALOGUE["function.plain"]
DONE = {"id": "ef_1", "state": "done", "account": "a"}


def replied(status, content=None, *, complete=True, headers=(), reason="body_cut"):
    """A reply with a JSON body, or with the bytes given."""
    body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
    return Replied(status=status, body=body, headers=headers, complete=complete, reason="" if complete else reason)


def judged(answer, contract=KEY):
    """The evidence of attempt 2 of an effect called `pay`."""
    return judge(contract, answer, 2, "pay")


def test_only_provably_nothing_is_not_sent():
    """Silence is unknown, unless not one byte left; the reason is kept either way."""
    unsent = judged(Silent(may_have_left=False, reason="connect_failed"))
    assert (unsent.finding, unsent.source, unsent.reason) == (Finding.NOT_SENT, Source.TRANSPORT, "connect_failed")
    silent = judged(Silent(may_have_left=True, reason="read_timeout"))
    assert (silent.finding, silent.source, silent.reason) == (Finding.UNKNOWN, Source.TRANSPORT, "read_timeout")


@pytest.mark.parametrize(
    "answer",
    [
        Silent(may_have_left=True, reason="reset"),
        replied(201, DONE),
        replied(500),
        replied(201, complete=False),
        Returned(value=1),
        Refused(reason="no"),
    ],
    ids=repr,
)
def test_whoever_reports_back_is_quiesced(answer):
    """An answered attempt's worker cannot write any more, and its evidence names its attempt."""
    evidence = judged(answer)
    assert evidence.quiesced
    assert evidence.attempt == 2


def test_the_documented_success_names_effect_and_object():
    """A success carries the effect, the provider's id, the declared result and whom it speaks for."""
    evidence = judged(replied(201, DONE))
    assert (evidence.finding, evidence.rule, evidence.effect) == (Finding.SUCCEEDED, "answers[0]", "pay")
    assert (evidence.external_id, evidence.result) == ("ef_1", {"id": "ef_1", "state": "done"})
    assert evidence.coverage is Coverage.PROVIDER_KEY
    assert evidence.facts == {"status": 201}


@pytest.mark.parametrize(
    "answer",
    [
        replied(201, b"<html>created</html>"),
        replied(201, b""),
        replied(201, b'{"id":"e","state":"done","state":"done"}'),
        replied(201, b'{"id":"e","state":"do'),
        replied(201, {"id": "e", "state": "failed"}),
        replied(201, {"id": "e"}),
        replied(200, DONE),
        replied(202, DONE),
        replied(204),
        replied(301),
        replied(404, {"error": "gone"}),
        replied(422, {"error": "something else"}),
        replied(403, b"<html>"),
        replied(401, b"<html>proxy</html>"),
    ],
    ids=lambda answer: f"{answer.status} {answer.body[:24]!r}",
)
def test_what_no_rule_names_is_unknown(answer):
    """Fail closed: another status, another body or an unreadable one proves nothing, 4xx included."""
    evidence = judged(answer)
    assert (evidence.finding, evidence.reason, evidence.rule) == (Finding.UNKNOWN, "no_rule", "")
    assert evidence.result is None


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("name", [name for name, one in CATALOGUE.items() if one.request is not None])
def test_a_server_in_trouble_proves_nothing(name, status):
    """5xx, 429, 408, 409 and 425 are unknown in every contract over HTTP without an exact body."""
    if (name, status) == ("caldav.put_event", 409):
        return  # a violated precondition, as RFC 4918 section 16 documents it
    assert judged(replied(status, b"<html>"), CATALOGUE[name]).finding is Finding.UNKNOWN


def test_the_providers_word_on_waiting_is_kept():
    """Retry-After is a fact, where no rule judged and where the rule asks for it; never elsewhere."""
    wait = (("retry-after", "7"),)
    assert judged(replied(503, headers=wait)).facts == {"status": 503, "retry_after_seconds": 7.0}
    assert judged(replied(409, {"error": "key_in_use"}, headers=wait)).facts["retry_after_seconds"] == 7.0
    assert judged(replied(401, {"error": "unauthorized"}, headers=wait)).facts == {"status": 401}


def test_a_documented_refusal_is_rejected():
    """Rejected means proof of no effect: no effect is named, and it speaks for its own attempt alone."""
    evidence = judged(replied(422, {"error": "refused"}))
    assert (evidence.finding, evidence.effect, evidence.result) == (Finding.REJECTED, "", None)
    assert evidence.coverage is Coverage.ATTEMPT


def test_r38_a_key_conflict_is_a_class_of_its_own():
    """Key used with other parameters: an earlier request exists, so look; never failed."""
    evidence = judged(replied(422, {"error": "key_reused"}))
    assert (evidence.finding, evidence.reason) == (Finding.UNKNOWN, "key_conflict")


def test_r39_a_key_in_use_is_in_flight():
    """The first request still runs: unknown, to be polled by reads."""
    evidence = judged(replied(409, {"error": "key_in_use"}))
    assert (evidence.finding, evidence.reason) == (Finding.UNKNOWN, "in_flight")


def test_r42_a_replayed_server_error_stays_unknown():
    """A stored 500 that comes again for the same key proves no more than it did at first."""
    for attempt in (1, 2, 3):
        assert judge(KEY, replied(500, {"error": "internal"}), attempt, "pay").finding is Finding.UNKNOWN


def test_somebodys_first_landed_is_not_ours_yet():
    """412 under If-None-Match says that something stands there: unknown until a look compares."""
    evidence = judged(replied(412), CALDAV)
    assert (evidence.finding, evidence.reason) == (Finding.UNKNOWN, "first_landed")


def test_a_bodiless_success_needs_no_json():
    """Where the contract asks for no JSON the status proves it; the id may stand in a header."""
    evidence = judged(replied(201, headers=(("location", "/cal/u.ics"),)), CALDAV)
    assert (evidence.finding, evidence.external_id, evidence.result) == (Finding.SUCCEEDED, "/cal/u.ics", None)


def rules(*answers, contract=NOTHING):
    """A contract with these rules and no look."""
    return msgspec.structs.replace(
        contract, answers=tuple(AnswerRule(source="service", **answer) for answer in answers), result={}
    )


def test_the_first_rule_that_matches_wins():
    """Rules are ordered."""
    contract = rules(
        {"status": ("200",), "where": {"/n": 1}, "finding": "succeeded"},
        {"status": ("2xx",), "finding": "accepted", "effect": "accepted by lab"},
    )
    assert judged(replied(200, {"n": 1}), contract).finding is Finding.SUCCEEDED
    second = judged(replied(200, {"n": True}), contract)
    assert (second.rule, second.effect) == ("answers[1]", "accepted by lab")
    assert second.result == {"n": True}
    assert judged(replied(200, {"n": 1.0}), contract).rule == "answers[1]"
    assert judged(replied(200, b"text"), contract).rule == "answers[1]"


@pytest.mark.parametrize(("named", "effect"), [({}, "accepted by lab"), ({"effect": "queued at lab"}, "queued at lab")])
def test_what_is_taken_in_is_the_effect_where_nothing_later_is_named(named, effect):
    """It has succeeded, and that it was taken in is all that is said; with a later end named it is only accepted."""
    contract = rules({"status": ("202",), "finding": "accepted"} | named)
    promised = judged(replied(202), contract)
    assert (promised.finding, promised.effect) == (Finding.SUCCEEDED, effect)
    end = Terminal(source="service", state={"/state": ("sent",)}, finding="succeeded")
    followed = judged(replied(202), msgspec.structs.replace(contract, terminal=(end,)))
    assert (followed.finding, followed.effect) == (Finding.ACCEPTED, effect)


@pytest.mark.parametrize("content", [b"", b"<html>", b'{"a":1,"a":1}'])
def test_a_rule_that_asks_for_json_takes_nothing_else(content):
    """A 2xx whose body is no JSON is not the documented success, whatever its status."""
    contract = rules({"status": ("200",), "content": "json", "finding": "succeeded"})
    assert judged(replied(200, content), contract).finding is Finding.UNKNOWN
    assert judged(replied(200, b"null"), contract).finding is Finding.SUCCEEDED


def test_a_result_over_the_limit_is_not_kept():
    """More than a replay may return leaves the finding alone and the result empty."""
    contract = rules({"status": ("200",), "finding": "succeeded"})
    evidence = judged(replied(200, "x" * RESULT_BYTES_MAX), contract)
    assert (evidence.finding, evidence.result) == (Finding.SUCCEEDED, None)


@pytest.mark.parametrize("status", [200, 201, 401, 409, 412, 422, 500])
@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("content", [DONE, {"error": "refused"}, {"error": "unauthorized"}])
def test_r65_a_cut_answer_never_rejects_and_never_succeeds(name, status, content):
    """A status line with a broken body is accepted at most: never rejected, never not_sent, never succeeded."""
    evidence = judged(replied(status, content, complete=False), CATALOGUE[name])
    assert evidence.finding in {Finding.UNKNOWN, Finding.ACCEPTED}
    assert (evidence.reason, evidence.facts["cut"]) == ("answer_cut", "body_cut")
    assert evidence.result is None


def test_r65_a_cut_success_is_accepted_where_no_look_could_tell_more():
    """2xx seen, body lost: the effect is accepted and its result unreadable, if every rule for it is positive."""
    created = {"status": ("201",), "finding": "succeeded"}
    cut = replied(201, complete=False)
    evidence = judged(cut, rules(created))
    assert (evidence.finding, evidence.rule, evidence.effect) == (Finding.ACCEPTED, "answers[0]", "pay")
    by = judged(cut, rules(created | {"effect": "accepted by lab"}))
    assert by.effect == "accepted by lab"
    with_body = created | {"where": {"/state": "done"}}
    denied = {"status": ("201",), "finding": "rejected", "where": {"/state": "no"}}
    looks = {"looks": KEY.looks}
    for contract in (
        rules(with_body),
        rules(created, denied),
        rules(),
        rules(created | {"status": ("303",)}),
        msgspec.structs.replace(rules(created), **looks),
    ):
        status = 303 if contract.answers and contract.answers[0].status == ("303",) else 201
        assert judged(replied(status, complete=False), contract).finding is Finding.UNKNOWN


def test_a_function_that_returns_has_done_it():
    """A plain return is the action's declared effect, with the value as JSON."""
    evidence = judged(Returned(value={"id": 1}), FUNCTION)
    assert (evidence.finding, evidence.effect, evidence.rule) == (Finding.SUCCEEDED, "pay", "function.returned")
    assert (evidence.result, evidence.facts) == ({"id": 1}, {})
    assert judged(Returned(), FUNCTION).facts == {}


def test_a_value_that_cannot_be_kept_changes_no_outcome():
    """The effect took place; only what a replay returns is missing, and that is said."""
    evidence = judged(Returned(kept=False), FUNCTION)
    assert (evidence.finding, evidence.result) == (Finding.SUCCEEDED, None)
    assert evidence.facts == {"result": "not_kept"}


def test_a_functions_result_may_be_narrowed_by_its_contract():
    """Declared pointers pick the same parts from a value as from an answer's body."""
    contract = msgspec.structs.replace(FUNCTION, result={"id": "/ticket/id"})
    assert judged(Returned(value={"ticket": {"id": 7, "note": "x"}}), contract).result == {"id": 7}


def test_a_function_that_refuses_proves_no_effect():
    """`Rejected` is the function's proof; its sentence is cut, and is never the fixed reason."""
    evidence = judged(Refused(reason="x" * 999), FUNCTION)
    assert (evidence.finding, evidence.reason) == (Finding.REJECTED, "refused")
    assert evidence.facts == {"refusal": "x" * REFUSAL_CHARS_MAX}


ECHO = AnswerRule(status=("201",), finding="succeeded", match={"/amount": "/amount"}, source="docs")
ECHOING = msgspec.structs.replace(
    NOTHING, answers=(ECHO, AnswerRule(status=("2xx",), finding="accepted", source="docs"))
)


@pytest.mark.parametrize(
    ("content", "finding", "reason", "contradicts"),
    [
        ({"amount": 7}, Finding.SUCCEEDED, "", False),
        ({"amount": 8}, Finding.UNKNOWN, "other_content", True),
        ({"amount": "7"}, Finding.UNKNOWN, "other_content", True),
        ({"id": 1}, Finding.UNKNOWN, "field_missing", False),
        (b"not json", Finding.UNKNOWN, "field_missing", False),
    ],
)
def test_an_answer_that_speaks_of_another_effect_is_no_success(content, finding, reason, contradicts):
    """What it says it did is compared with what was asked for; no later rule makes a success of another amount."""
    evidence = judge(ECHOING, replied(201, content), 1, "pay", b'{"amount":7}')
    assert (evidence.finding, evidence.reason, evidence.contradicts) == (finding, reason, contradicts)
    assert evidence.rule == "answers[0]"


def test_without_the_payload_nothing_compared_holds():
    """Whoever judges without knowing what was sent cannot say that it is the same; nor can a body that was cut."""
    assert judge(ECHOING, replied(201, {"amount": 7}), 1, "pay").reason == "field_missing"
    assert judge(ECHOING, replied(201, b"{", complete=False), 1, "pay", b'{"amount":7}').finding is Finding.UNKNOWN


@pytest.mark.parametrize(
    ("headers", "finding"),
    [
        ((("etag", "x"), ("v", "1")), Finding.SUCCEEDED),
        ((("etag", "x"), ("v", "2")), Finding.UNKNOWN),
        ((("v", "1"),), Finding.UNKNOWN),
        ((("etag", ""), ("v", "1")), Finding.UNKNOWN),
        ((("etag", "x"), ("etag", "y"), ("v", "1")), Finding.UNKNOWN),
    ],
)
def test_a_rule_may_ask_for_headers(headers, finding):
    """A page of something in between has the status and none of them."""
    rule = AnswerRule(status=("200",), finding="succeeded", headers={"etag": "*", "v": "1"}, source="docs")
    contract = msgspec.structs.replace(NOTHING, answers=(rule,))
    assert judged(replied(200, b"<h1>", headers=headers), contract).finding is finding


def test_every_answer_is_judged():
    """Total: no status, body or cut makes the judge raise, in any contract."""
    bodies = [b"", b"null", b"[]", b"\xff", b'{"error":{"a":[]}}']
    for name, status, content, complete in itertools.product(
        CATALOGUE, (100, 199, 201, 302, 404, 422, 599), bodies, (True, False)
    ):
        answer = replied(status, content, complete=complete)
        assert judged(answer, CATALOGUE[name]).attempt == 2
